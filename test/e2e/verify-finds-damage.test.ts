import { spawnSync } from 'node:child_process'
import { copyFile, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readPipeline } from '../../src/pipeline/index.ts'
import { flipped } from '../fault/damage.ts'
import { diskFault } from '../fault/support.ts'
import { verificationShape } from '../support/json-shapes.ts'
import { shardPaths } from '../support/read-shards.ts'
import { verifyAs } from '../support/rooms.ts'
import { CLI, exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'

const WINDOWS = { from: '2024-01-01', until: '2024-04-01', every: 'month' }
const parts = (format: string) => ({
  extract: { domains: ['scatterholt.com'], windows: WINDOWS },
  load: { format },
})

async function verified(here: Workspace) {
  const { code, value } = await here.json('verify')
  return { code, ...verificationShape.parse(value) }
}

it.each(some(['parquet', 'csv'], 1))(
  'an intact %s data set has no problems; what is missing, truncated, changed or unknown is named',
  async (format) => {
    const here = await newWorkspace(parts(format))
    await exits(0, here.run())
    const { rows } = (await here.manifest()).totals
    const none = { code: 0, ok: true, shards: 3, rows, problems: [], repair: [] }
    expect(await verified(here)).toEqual(none)

    const [first, second] = (await shardPaths(here.output)) as [string, string]
    const unknown = first.replace('part-00000', 'part-00007')
    const at = (path: string): string => join(here.output, path)
    const bytes = await readFile(at(first))
    const json = '_manifest.json'
    const text = await readFile(at(json), 'utf8')
    const wrong = JSON.parse(text)
    wrong.shards[0].rows += 1
    for (const [path, damage] of [
      [first, () => rm(at(first))],
      [first, () => truncate(at(first), bytes.length - 1)],
      [first, () => writeFile(at(first), flipped(bytes, bytes.length >> 1))],
      [first, () => copyFile(at(second), at(first))],
      [unknown, () => copyFile(at(first), at(unknown))],
      [wrong.shards[0].path, () => writeFile(at(json), JSON.stringify(wrong))],
      [json, () => rm(at(json))],
      [json, () => writeFile(at(json), '{"version":1')],
    ] as const) {
      await damage()
      const { problems, ...found } = await verified(here)
      expect(found, `${damage}`).toMatchObject({ code: 1, ok: false })
      expect(problems.map((problem) => problem.path)).toEqual([path])
      await writeFile(at(first), bytes)
      await writeFile(at(json), text)
      await rm(at(unknown), { force: true })
    }
  },
)

const MASKED = [
  { written: { secret: 'plaintext' }, promised: { secret: 'redact' }, column: 'hash' },
  { written: { secret: 'partial' }, promised: { secret: 'hmac' }, column: 'hash' },
  { written: { identity: 'keep' }, promised: { identity: 'hmac' }, column: 'identity_name' },
]

it.each(some(MASKED, 1))(
  'values that $promised cannot produce are a problem, and are not shown',
  async ({ written, promised, column }) => {
    const env = { SPILLWAY_MASK_KEY: 'k'.repeat(32) }
    const here = await newWorkspace({ ...parts('parquet'), transform: written }, {}, env)
    await exits(0, here.run('--allow-plaintext'))
    await here.write({ ...parts('parquet'), transform: promised })
    // The data set itself says how it is masked, so it is asked as if it promised the other.
    const pipeline = await readPipeline('pipeline.yaml', { env: here.env, cwd: here.folder })
    const found = await verifyAs(pipeline)
    expect(found.ok).toBe(false)
    const problem = expect.stringMatching(`${column}.*not masked`)
    const paths = await shardPaths(here.output)
    const ofShards = found.problems.filter(({ path }) => paths.includes(path))
    expect(ofShards).toEqual(paths.map((path) => ({ path, problem, cause: 'unmasked' })))
    const said = JSON.stringify(found)
    const query = { type: 'domain', fqdn: 'scatterholt.com' } as const
    for (const { hash, identity_name } of here.sandbox.expected({ query })) {
      if (hash !== null && hash.length > 8) expect(said).not.toContain(hash)
      expect(said).not.toContain(identity_name)
    }
  },
)

/** A data set with shards that a later run, whose shards are larger, leaves small. */
async function withSmallShards(): Promise<Workspace> {
  const here = await newWorkspace({})
  for (const shard_rows of [5, 1000]) {
    await here.write({ ...parts('csv'), load: { format: 'csv', partition_by: ['query'], shard_rows } })
    await exits(0, here.run())
  }
  return here
}

it('a data set that a killed command left is not called damaged, and a plain run finishes it', async () => {
  const here = await withSmallShards()
  const failing = here.with(diskFault(here.output, 'kill:rename _manifest.json'))
  expect((await failing.start('compact', PIPELINE).result).signal).toBe('SIGKILL')
  const { stdout } = await exits(1, here.call('verify'))
  expect(stdout).not.toContain('DAMAGED')
  expect(stdout).toContain('NOT FINISHED')
  expect((await here.json('verify')).value).toMatchObject({ ok: false, unfinished: true, repair: [] })
  await exits(0, here.run())
  expect((await here.json('verify')).value).toMatchObject({ ok: true, unfinished: false })
})

it('a manifest that is replaced meanwhile is read again before a problem is reported', async () => {
  const here = await withSmallShards()
  const { totals } = await here.manifest()
  const pipeline = await readPipeline('pipeline.yaml', { env: here.env, cwd: here.folder })
  const compacted: unknown[] = []
  const found = await verifyAs(pipeline, {
    // The first shard is named and the manifest is read: now all shards are replaced.
    onShard: () => {
      if (compacted.length > 0) return
      const where = { cwd: here.folder, env: here.env }
      compacted.push(spawnSync(process.execPath, [CLI, 'compact', 'pipeline.yaml'], where))
    },
  })
  expect(found).toMatchObject({ ok: true, rows: totals.rows })
  expect(found.shards).toBeLessThan(totals.shards)
})
