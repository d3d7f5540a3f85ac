import { spawnSync } from 'node:child_process'
import { copyFile, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifyDataSet } from '../../src/data-set/index.ts'
import { readPipeline } from '../../src/pipeline/index.ts'
import { diskFault } from '../fault/support.ts'
import { verificationShape } from '../support/json-shapes.ts'
import { shardPaths } from '../support/read-shards.ts'
import { CLI, runCli } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

const parts = (format: string) => ({
  extract: {
    domains: ['scatterholt.com'],
    windows: { from: '2024-01-01', until: '2024-04-01', every: 'month' },
  },
  load: { format },
})

async function verified(here: Workspace) {
  const { code, value } = await here.json('verify')
  return { code, ...verificationShape.parse(value) }
}

/** Damages the given files, verifies, and restores the files. */
async function afterDamage(here: Workspace, files: readonly string[], damage: () => Promise<unknown>) {
  for (const file of files) await copyFile(file, join(here.folder, `kept-${files.indexOf(file)}`))
  await damage()
  const found = await verified(here)
  for (const file of files) await rename(join(here.folder, `kept-${files.indexOf(file)}`), file)
  return found
}

describe.each(some(['parquet', 'csv'], 1))('%s', (format) => {
  it('an intact data set has no problems; a shard that is missing, truncated, changed or unknown is named', async () => {
    const here = await newWorkspace(parts(format))
    expect((await here.run()).code).toBe(0)
    const { totals } = await here.manifest()
    expect(await verified(here)).toEqual({
      ...{ code: 0, ok: true, shards: 3, rows: totals.rows, problems: [], repair: [] },
    })

    const paths = await shardPaths(here.output)
    const [first, second] = paths as [string, string]
    const [one, two] = [join(here.output, first), join(here.output, second)]
    const bytes = await readFile(one)
    const stranger = join(here.output, first.replace('part-00000', 'part-00007'))

    const damages: Readonly<Record<string, readonly [file: string, damage: () => Promise<unknown>]>> = {
      missing: [first, () => rm(one)],
      short: [first, () => truncate(one, bytes.length - 1)],
      'a bit flipped': [first, () => writeFile(one, flipped(bytes))],
      'replaced by another one': [first, () => copyFile(two, one)],
      'one too many': [first.replace('part-00000', 'part-00007'), () => copyFile(one, stranger)],
    }
    for (const [what, [path, damage]] of Object.entries(damages)) {
      const found = await afterDamage(here, [one], damage)
      await rm(stranger, { force: true })
      expect(found, what).toMatchObject({ code: 1, ok: false })
      expect(
        found.problems.map((problem) => problem.path),
        what,
      ).toEqual([path])
    }
  })
})

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const middle = copy.length >> 1
  copy[middle] = copy[middle]! ^ 1
  return copy
}

it('a manifest that contradicts the checkpoint is named', async () => {
  const here = await newWorkspace(parts('parquet'))
  expect((await here.run()).code).toBe(0)
  const file = join(here.output, '_manifest.json')
  const text = await readFile(file, 'utf8')
  const manifest = JSON.parse(text)
  manifest.shards[0].rows += 1
  const wrong = await afterDamage(here, [file], () => writeFile(file, JSON.stringify(manifest)))
  expect(wrong).toMatchObject({ code: 1, problems: [{ path: manifest.shards[0].path }] })
  for (const damage of [() => rm(file), () => writeFile(file, '{"version":1')]) {
    const found = await afterDamage(here, [file], damage)
    expect(found).toMatchObject({ code: 1, problems: [{ path: '_manifest.json' }] })
  }
})

const MASKED = [
  { written: { secret: 'plaintext' }, promised: { secret: 'redact' }, column: 'hash' },
  { written: { secret: 'partial' }, promised: { secret: 'hmac' }, column: 'hash' },
  { written: { identity: 'keep' }, promised: { identity: 'hmac' }, column: 'identity_name' },
]

it.each(some(MASKED, 1))(
  'values that $promised cannot produce are a problem, and are not shown',
  async ({ written, promised, column }) => {
    const here = await newWorkspace(
      { ...parts('parquet'), transform: written },
      {},
      { SPILLWAY_MASK_KEY: 'k'.repeat(32) },
    )
    expect((await here.run('--allow-plaintext')).code).toBe(0)
    await here.write({ ...parts('parquet'), transform: promised })
    // The data set itself says how it is masked, so it is asked as if it promised the other.
    const pipeline = await readPipeline('pipeline.yaml', { env: here.env, cwd: here.folder })
    const found = await verifyDataSet(pipeline)
    expect(found.ok).toBe(false)
    const paths = await shardPaths(here.output)
    expect(found.problems.map(({ path }) => path).filter((path) => paths.includes(path))).toEqual(paths)
    for (const { path, problem } of found.problems) {
      if (paths.includes(path))
        expect(problem).toMatch(new RegExp(`${column}.*not masked|not masked.*${column}`))
    }
    const said = JSON.stringify(found)
    for (const { hash, identity_name } of here.sandbox.expected({
      query: { type: 'domain', fqdn: 'scatterholt.com' },
    })) {
      if (hash !== null && hash.length > 8) expect(said).not.toContain(hash)
      expect(said).not.toContain(identity_name)
    }
  },
)

const smallShards = (rows: number) => ({
  ...parts('csv'),
  load: { format: 'csv', partition_by: ['query'], shard_rows: rows },
})

/** Shards that a later run, whose shards are larger, leaves small. */
async function withSmallShards(here: Workspace): Promise<void> {
  expect((await here.run()).code).toBe(0)
  await here.write(smallShards(1000))
  expect((await here.run()).code).toBe(0)
}

it('a data set that a killed command left is not called damaged, and a plain run finishes it', async () => {
  const here = await newWorkspace(smallShards(5))
  await withSmallShards(here)
  const killed = await runCli({
    args: ['compact', 'pipeline.yaml'],
    cwd: here.folder,
    env: { ...here.env, ...diskFault(here.output, 'kill:rename _manifest.json') },
  })
  expect(killed.signal).toBe('SIGKILL')
  const { code, stdout } = await here.call('verify')
  expect(code).toBe(1)
  expect(stdout).not.toContain('DAMAGED')
  expect(stdout).toContain('NOT FINISHED')
  expect((await here.json('verify')).value).toMatchObject({ ok: false, unfinished: true, repair: [] })
  expect((await here.run()).code).toBe(0)
  expect((await here.json('verify')).value).toMatchObject({ ok: true, unfinished: false })
})

it('a manifest that is replaced meanwhile is read again before a problem is reported', async () => {
  const here = await newWorkspace(smallShards(5))
  await withSmallShards(here)
  const { totals } = await here.manifest()
  const pipeline = await readPipeline('pipeline.yaml', { env: here.env, cwd: here.folder })
  const compacted: unknown[] = []
  const found = await verifyDataSet(pipeline, {
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
