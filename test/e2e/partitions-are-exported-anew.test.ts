import { existsSync } from 'node:fs'
import { copyFile, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { change, flipped } from '../fault/damage.ts'
import { diskFault, hashesBesideRecord, shardHashes } from '../fault/support.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-04-01' }
const parts = (load = {}): PipelineParts => ({
  // A service that is down is not waited for.
  service: { retries: 0 },
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 10 },
  load,
})
const JANUARY = 'domain.quillmere.net/2024-01-01..2024-02-01'

async function holdsEverything(here: Workspace): Promise<void> {
  await here.expectRows(DOMAINS, RANGE)
  const { value } = await exits(0, here.json('verify'))
  expect(value).toMatchObject({ ok: true, problems: [] })
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
}

async function runIsKilled(here: Workspace, call: string, ...flags: string[]): Promise<void> {
  const failing = here.with(diskFault(here.output, `kill:${call}`))
  expect((await failing.start('run', PIPELINE, ...flags).result).signal).toBe('SIGKILL')
}

it('--redo of one partition requests only that one and gives the same bytes, under another name', async () => {
  const here = await exportedWorkspace(parts())
  const before = await here.manifest()
  const sent = here.searches().length
  await exits(0, here.run('--redo', JANUARY))
  expect(here.searched(sent)).toEqual(['quillmere.net 2024-01-01'])
  const renamed = ({ path, ...shard }: (typeof before.shards)[number]) =>
    shard.partitions.includes(JANUARY) ? path.replace('part-00000', 'part-00001') : path
  const shards = before.shards.map((shard) => ({ ...shard, path: renamed(shard) }))
  expect((await here.manifest()).shards).toEqual(shards)
  await holdsEverything(here)
})

it.runIf(THOROUGH)(
  'a --fresh that is killed leaves no manifest that names shards which are gone; any command finishes it',
  async () => {
    const here = await exportedWorkspace(parts())
    const [path] = (await shardPaths(here.output)) as [string]
    await runIsKilled(here, `rmdir ${dirname(path)}`, '--fresh', '--yes')
    expect(await shardPaths(here.output)).not.toContain(path)
    for (const name of ['_SUCCESS', '_manifest.json', '_report.html'])
      expect(existsSync(join(here.output, name)), name).toBe(false)
    await exits(0, here.call('plan'))
    const { stdout } = await exits(1, here.call('verify'))
    expect(stdout).toContain('NOT FINISHED')
    await exits(0, here.call('compact'))
    expect(await shardPaths(here.output)).toEqual([])
    await exits(0, here.run())
    await holdsEverything(here)
  },
)

it('verify prints the command that repairs all damage, and as JSON the keys; it sends nothing', async () => {
  const here = await exportedWorkspace(parts())
  const [first, second, third] = (await shardPaths(here.output)) as [string, string, string]
  await rm(join(here.output, first))
  await change(join(here.output, second), (bytes) => flipped(bytes, bytes.length >> 1))
  const stranger = join(here.output, third.replace('part-00000', 'part-00009'))
  await copyFile(join(here.output, third), stranger)

  const sent = here.sandbox.requests.length
  const { value } = await here.json('verify')
  const { shards } = await here.manifest()
  const damaged = [first, second].flatMap((path) => shards.find((shard) => shard.path === path)!.partitions)
  expect(value).toMatchObject({ ok: false, repair: damaged.sort() })
  const { stdout } = await exits(1, here.call('verify'))
  const [, words = ''] = /^ {2}spillway run pipeline\.yaml (--redo .*)$/m.exec(stdout)!
  expect(here.sandbox.requests).toHaveLength(sent)

  expect(stdout).toContain('Move what the manifest does not name out of the data set')
  await rm(stranger)
  await exits(0, here.run(...words.replaceAll("'", '').split(' ')))
  await holdsEverything(here)
  expect((await here.json('verify')).value).toMatchObject({ ok: true, repair: [] })
})

it('an impossible --redo is refused with exit 2, and nothing changes', async () => {
  const here = await exportedWorkspace(parts({ partition_by: 'none' }))
  const checkpoint = await readFile(join(here.output, '_state/checkpoint.jsonl'))
  const sent = here.sandbox.requests.length

  await exits(2, here.run('--redo', 'domain.nobody.example'), 'domain.nobody.example')
  expect((await here.run('--redo', JANUARY, '--fresh', '--yes')).code).toBe(2)

  const extract = { ...parts().extract, domains: [DOMAINS[1]] }
  await here.write({ ...parts({ partition_by: 'none' }), extract })
  await exits(2, here.run('--redo', JANUARY), 'domain.scatterholt.com/')

  expect(await readFile(join(here.output, '_state/checkpoint.jsonl'))).toEqual(checkpoint)
  expect(here.sandbox.requests).toHaveLength(sent)
})

it.each(['an empty folder', 'a run that was killed'])(
  'a --redo that matches nothing writes nothing: %s',
  async (where) => {
    const here = await newWorkspace(parts({ partition_by: 'query', shard_rows: 5 }))
    if (where !== 'an empty folder') {
      // What it had sealed waits.
      const call = 'link credentials/query=domain.quillmere.net/part-00000.parquet'
      await runIsKilled(here, call)
    }
    const files = async () => [...(await hashesBesideRecord(here.output))].filter(([, hash]) => hash !== '')
    const isOwners = ([path]: readonly [string, string]) => /_state\/(?:open|lock)\./.test(path)
    const before = (await files()).filter((file) => !isOwners(file))
    expect((await here.run('--redo', 'domain.nobody.example')).code).toBe(2)
    expect(await files()).toEqual(before)
    if (where === 'an empty folder') expect(existsSync(here.output)).toBe(false)
    expect((await here.run()).summary.status).toBe('complete')
  },
)

/** What readers find: shards with their digests, those of the manifest, rows, and what says that all is there. */
async function whatReadersFind(here: Workspace) {
  return {
    files: await shardHashes(here.output),
    shards: (await here.manifest()).shards,
    isMarked: existsSync(join(here.output, '_SUCCESS')),
    complete: (await here.json('verify', '--complete')).value.complete,
  }
}

// By default the folders that several partitions share, where more can go wrong; other tests here have one for each.
it.each(some(['query', 'none', ['query', 'window']], 1))(
  'until a --redo is finished all stays as it was: a budget, a service that is down, a rejected token; by %j',
  async (partition_by) => {
    const here = await exportedWorkspace(parts({ partition_by, format: 'csv' }))
    const before = await whatReadersFind(here)
    expect(before).toMatchObject({ isMarked: true, complete: true })
    await exits(4, here.run('--redo', '*', '--max-requests', '1'))
    expect(await whatReadersFind(here)).toEqual(before)

    const status = await here.call('status')
    expect(status.stdout).toMatch(/6 to be exported again/)
    const { value } = await here.json('status')
    const rows = before.shards.reduce((sum, shard) => sum + shard.rows, 0)
    expect(value.totals).toMatchObject({ partitions: 6, redo: 6, rows })
    expect((await here.call('verify', '--complete')).code).toBe(0)

    for (const [code, env] of [
      [1, { SPILLWAY_BASE_URL: 'http://127.0.0.1:9' }],
      [3, { SPILLWAY_TOKEN: 'no-token-of-the-service' }],
    ] as const) {
      await exits(code, here.with({ ...env }).call('run', '--redo', '*', '--fail-fast'))
      expect(await whatReadersFind(here)).toEqual(before)
    }

    // A plain run goes on with it.
    const sent = here.searches().length
    expect((await here.run()).code).toBe(0)
    expect(here.searched(sent).length).toBeGreaterThan(1)
    await holdsEverything(here)
    const after = await here.manifest()
    const paths = new Set(before.shards.map(({ path }) => path))
    expect(after.shards.filter(({ path }) => paths.has(path))).toEqual([])
    expect(await shardPaths(here.output)).toEqual(after.shards.map(({ path }) => path))
    expect((await here.json('status')).value).toMatchObject({ totals: { redo: 0, done: 6 } })
  },
)
