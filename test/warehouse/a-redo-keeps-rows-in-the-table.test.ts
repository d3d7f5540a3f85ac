import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { some } from '../support/thorough.ts'
import type { Workspace } from '../support/workspace.ts'
import { newTarget, type TestTarget } from './targets.ts'

const parts = (by: unknown) => ({
  service: { retries: 0 },
  extract: {
    domains: ['scatterholt.com', 'quillmere.net'],
    windows: { from: '2024-01-01', until: '2024-04-01', every: 'month' },
    page_size: 5,
  },
  load: { partition_by: by },
})

async function load(here: Workspace, target: TestTarget): Promise<unknown> {
  const { code, stdout, stderr } = await here.cli('load', 'pipeline.yaml', '--to', target.url, '--json')
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

async function idsIn(target: TestTarget): Promise<readonly unknown[]> {
  return (await target.rows('SELECT id::text AS id FROM credentials ORDER BY 1')).map(({ id }) => id)
}

it.each(some([[['query', 'window']], ['query'], ['none']], 1))(
  'a partition keeps its rows in the table until its new ones are there: partition_by %s',
  async (by) => {
    const here = await exportedWorkspace(parts(by))
    const target = await newTarget('duckdb', here)
    await load(here, target)
    const ids = await idsIn(target)
    expect(ids.length).toBe((await here.manifest()).totals.rows)

    // Runs that stop at their budgets, each with a load, then the rest.
    const stops = [
      ['--redo', '*', '--max-requests', '1'],
      ['--max-requests', '4'],
      ['--max-requests', '6'],
    ]
    for (const flags of [...some(stops, 1), []]) {
      expect((await here.run(...flags, '--concurrency', '1')).code).toBe(flags.length === 0 ? 0 : 4)
      await load(here, target)
      expect(await idsIn(target)).toEqual(ids)
      const ledger = await target.rows('SELECT shard FROM spillway_loads ORDER BY 1')
      expect(ledger.map(({ shard }) => shard)).toEqual((await here.manifest()).shards.map(({ path }) => path))
    }
    expect(await load(here, target)).toMatchObject({ shards: { loaded: 0, replaced: 0 }, rows: 0 })

    // A service that is down.
    const env = { ...here.env }
    Object.assign(here.env, { SPILLWAY_BASE_URL: 'http://127.0.0.1:9' })
    await here.run('--redo', '*', '--fail-fast', '--max-requests', '1')
    Object.assign(here.env, env)
    await load(here, target)
    expect(await idsIn(target)).toEqual(ids)
  },
)
