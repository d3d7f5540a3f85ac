import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { encodeLine } from '../../src/state/log/lines.ts'
import { rowsOf } from '../fault/rows.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

const MONTHS = { from: '2024-01-01', until: '2024-05-01', every: 'month' }
const parts = (load: PipelineParts['load'] = {}): PipelineParts => ({
  extract: { domains: ['scatterholt.com', 'quillmere.net'], windows: MONTHS, page_size: 10, concurrency: 1 },
  load: { format: 'csv', ...load },
})

const state = (here: Workspace) => join(here.output, '_state')

const checkpoint = (here: Workspace) => join(state(here), 'checkpoint.jsonl')
const OF_ANOTHER_VERSION = encodeLine({ kind: 'header', version: 99 }, 0).line

const LOSSES = {
  'the folder _state': (here: Workspace) => rm(state(here), { recursive: true }),
  'the checkpoint': (here: Workspace) => rm(checkpoint(here)),
  'what only another version reads': (here: Workspace) => writeFile(checkpoint(here), OF_ANOTHER_VERSION),
} as const
type Loss = keyof typeof LOSSES

async function finishes(here: Workspace, rows: ReadonlyMap<string, number>): Promise<void> {
  expect(await rowsOf(here.output)).toEqual(rows)
  expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true, complete: true })
}

it.each(some(Object.keys(LOSSES) as Loss[], 2))(
  'without %s a finished data set is what it was: nothing is requested, and only what is new in a wider file',
  async (loss) => {
    const here = await exportedWorkspace(parts({ partition_by: ['query', 'window'] }))
    const rows = await rowsOf(here.output)
    const before = await here.manifest()
    await LOSSES[loss](here)
    const sent = here.sandbox.requests.length
    expect((await here.json('plan')).value).toMatchObject({ partitions: { total: 8, done: 8 } })
    expect((await here.json('status')).value).toMatchObject({ totals: { done: 8 } })
    expect((await here.run()).summary).toMatchObject({ status: 'complete', requests: 0 })
    expect(here.sandbox.requests).toHaveLength(sent)
    await finishes(here, rows)
    // The scope names the service, which had another port.
    const { runs: _, scope: __, ...after } = await here.manifest()
    expect(before).toMatchObject(after)
    // Its checkpoint is one like any other.
    expect((await here.run()).summary).toMatchObject({ status: 'complete', requests: 0 })

    if (!THOROUGH && loss !== 'the checkpoint') return
    await LOSSES[loss](here)
    const windows = { ...MONTHS, until: '2024-06-01' }
    await here.write({ ...parts(), extract: { ...parts().extract, windows } })
    const { summary } = await here.run()
    expect(summary).toMatchObject({ status: 'complete', partitions: { total: 10, done: 10 } })
    expect(summary.requests).toBeLessThan(8)
    expect((await here.json('verify', '--complete')).code).toBe(0)
  },
)

it.each(some(['query', 'none', '[query, window]'], 1))(
  'what is not finished is requested again, and no row is there twice: partition_by %s',
  async (by) => {
    const load = { partition_by: by === '[query, window]' ? ['query', 'window'] : by, shard_rows: 15 }
    const here = await newWorkspace(parts(load))
    expect((await here.run('--max-requests', '5')).code).toBe(4)
    await LOSSES['the folder _state'](here)
    expect((await here.run()).code).toBe(0)
    const whole = await exportedWorkspace(parts(load))
    await finishes(here, await rowsOf(whole.output))
  },
)

it.each(some(['compact', 'prune', 'forget'], 1))('%s works where the state is lost', async (command) => {
  const here = await exportedWorkspace(parts({ partition_by: ['query', 'window'], shard_rows: 5 }))
  const rows = await rowsOf(here.output)
  await here.write(parts({ partition_by: ['query', 'window'], shard_rows: 5000 }))
  expect((await here.run()).code).toBe(0)
  await writeFile(join(here.folder, 'people.txt'), 'nobody@nowhere.example\n')
  const flags = {
    compact: ['--min-shards', '2'],
    prune: ['--older-than', '1200mo', '--yes'],
    forget: ['--identities', 'people.txt', '--yes'],
  }[command]!
  const used = new Set(await shardPaths(here.output))
  await LOSSES['the folder _state'](here)
  const sent = here.sandbox.requests.length
  await exits(0, here.call(command, ...flags))
  expect(here.sandbox.requests).toHaveLength(sent)
  await finishes(here, rows)
  if (command !== 'compact') return
  // No path is used again, not those that are gone either.
  const compacted = await shardPaths(here.output)
  for (const path of compacted) expect(used).not.toContain(path)
  for (const path of compacted) used.add(path)
  await LOSSES['the folder _state'](here)
  await exits(0, here.run('--redo', '*'))
  for (const path of await shardPaths(here.output)) expect(used).not.toContain(path)
})

it('where people were forgotten and their list is lost, nothing is done; with the list they stay out', async () => {
  const here = await exportedWorkspace(parts())
  const all = await rowsOf(here.output)
  const identities = [...all.keys()].map((row) => String(JSON.parse(row)[2]))
  const person = identities.find((identity) => /^[\w.]+@[a-z.]+$/.test(identity))
  await writeFile(join(here.folder, 'people.txt'), `${person}\n`)
  await exits(0, here.call('forget', '--identities', 'people.txt', '--yes'))
  const rows = await rowsOf(here.output)
  expect(rows.size).toBeLessThan(all.size)
  await LOSSES['the checkpoint'](here)
  await exits(0, here.run('--redo', '*'))
  await finishes(here, rows)
  const list = await readFile(join(state(here), 'suppression.json'))
  await LOSSES['the folder _state'](here)
  const sent = here.sandbox.requests.length
  await exits(2, here.run('--redo', '*'), /list of the people .* Restore it from a backup/)
  await exits(2, here.call('compact', '--min-shards', '2'))
  expect(here.sandbox.requests).toHaveLength(sent)
  await writeFile(join(state(here), 'suppression.json'), list)
  await exits(0, here.run('--redo', '*'))
  await finishes(here, rows)
})

it('another mask key is refused', async () => {
  const env = { SPILLWAY_MASK_KEY: 'a'.repeat(40) }
  const here = await newWorkspace({ ...parts(), transform: { secret: 'hmac' } }, {}, env)
  expect((await here.run()).code).toBe(0)
  await LOSSES['the folder _state'](here)
  const other = here.with({ SPILLWAY_MASK_KEY: 'b'.repeat(40) })
  await exits(2, other.run(), 'the mask key is not the one used so far')
  expect((await here.run()).summary).toMatchObject({ requests: 0, status: 'complete' })
})
