import { setTimeout as wait } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { pgClient, pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { exits, start } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { monthsUntil, type PipelineParts, SMALL, type Workspace } from '../support/workspace.ts'
import { exportHere } from './in-process.ts'
import { holdsAll } from './ledger.ts'
import { columnOf, loadInto, type loadValues, setInDatabase, tableWith } from './load-values.ts'
import { newTarget, type TestTarget } from './targets.ts'

const parts = (until: string): PipelineParts => ({
  extract: { domains: SMALL.domains, windows: monthsUntil(until) },
  // Each run adds a shard to each folder.
  load: { partition_by: ['query'] },
})

/** Starts a load that finds its target in use. */
async function waitingLoad(here: Workspace, target: TestTarget) {
  const load = start(['load', 'pipeline.yaml', '--to', target.url, '--json'], here.folder, here.env)
  await load.until((text) => text.includes('waiting for it to end'))
  return load
}

async function loadedBy({ result }: Awaited<ReturnType<typeof waitingLoad>>): Promise<number> {
  return JSON.parse((await exits(0, result)).stdout).shards.loaded
}

it.each(['duckdb', 'postgres'] as const)(
  '%s: loads that wait load what is there when their turn comes, and take nothing for gone that came meanwhile',
  async (kind) => {
    const here = await exportedWorkspace(parts('2024-02-01'))
    const target = await newTarget(kind, here)
    Object.assign(here.env, target.env)
    const release = await target.hold()
    const first = await waitingLoad(here, target)
    await here.write(parts('2024-04-01'))
    await exportHere(here)
    const second = await waitingLoad(here, target)
    await release()
    const loaded = await Promise.all([loadedBy(first), loadedBy(second)])
    // Whoever comes first finds all that is there by then.
    expect(Math.max(...loaded)).toBe((await here.manifest()).shards.length)
    expect(Math.min(...loaded)).toBe(0)
    await holdsAll(here, target)
  },
)

const TABLE = tableWith([columnOf('id', 'int64')])
const SHARDS = Object.fromEntries(['a', 'b', 'c'].map((path, id) => [path, [`${id}::BIGINT`]]))

const load = (url: string, options?: Parameters<typeof loadValues>[3]) =>
  loadInto(url, TABLE, SHARDS, options)

const rowsIn = (url: string) =>
  pgRows(url, 'select id::int, spillway_shard as shard from credentials order by 1')
const ROWS = Object.keys(SHARDS).map((shard, id) => ({ id, shard }))

const SETTINGS = [
  ...["default_transaction_isolation = ''repeatable read''", 'default_transaction_isolation = serializable'],
  ...["lock_timeout = ''1s''", "statement_timeout = ''1s''"],
]

it.each(some(SETTINGS, 1))('PostgreSQL with %s: loads take turns all the same', async (setting) => {
  const url = await newDatabase()
  await setInDatabase(url, setting)
  const here = { folder: '', env: {} } as unknown as Workspace
  await load(url)
  await pgRows(url, 'delete from credentials; delete from spillway_loads')
  const release = await (await newTarget('postgres', here, async () => url)).hold()
  const loads = [load(url), load(url)]
  await expect
    .poll(() =>
      pgRows(
        url,
        "select 1 from pg_stat_activity where datname = current_database() and wait_event = 'advisory' and now() - query_start > interval '1200ms'",
      ),
    )
    .toHaveLength(2)
  await release()
  const counts = (await Promise.all(loads)).map(({ shards }) => shards.loaded + shards.skipped)
  expect(counts).toEqual([3, 3])
  expect(await rowsIn(url)).toEqual(ROWS)
})

/** But for those that ask this, or have asked nothing yet. */
const OTHERS_AT_WORK = `select state, query from pg_stat_activity where datname = current_database()
  and backend_type = 'client backend' and state <> 'idle' and query <> '' and query !~ 'pg_stat_activity'`

it('shards are fetched before a transaction, side by side: none waits for them', async () => {
  const url = await newDatabase()
  let fetching = 0
  const busy: unknown[] = []
  const onDownload = async (): Promise<void> => {
    fetching++
    await expect.poll(() => fetching).toBe(3)
    busy.push(...(await pgRows(url, OTHERS_AT_WORK)))
  }
  expect(await load(url, { onDownload })).toMatchObject({ shards: { loaded: 3 } })
  expect(busy).toEqual([])
  expect(await rowsIn(url)).toEqual(ROWS)
})

it.each([
  ["lock_timeout = ''100ms''", 'lock_timeout', '55P03'],
  ["idle_in_transaction_session_timeout = ''100ms''", 'idle_in_transaction_session_timeout', '25P03'],
])('the error of %s names the code, and what to raise', async (setting, name, code) => {
  const url = await newDatabase()
  await load(url)
  await pgRows(url, 'delete from credentials; delete from spillway_loads')
  // Its own session has no limit.
  const client = await pgClient(url)
  await setInDatabase(url, setting)
  const held = name === 'lock_timeout' ? await lockedTable(url) : async () => {}
  const onManifest = async () => void (name.startsWith('idle_in') && (await wait(600)))
  const error = await load(url, { onManifest }).catch((thrown: unknown) => thrown)
  await held()
  expect(error).toMatchObject({
    kind: 'target',
    what: expect.stringContaining(`(${code})`),
    next: expect.stringContaining('ALTER ROLE … SET lock_timeout'),
  })
  expect((await client.query('select * from credentials')).rows).toEqual([])
  await client.end()
})

/** Another session changes the table. @returns what ends that */
async function lockedTable(url: string): Promise<() => Promise<void>> {
  const client = await pgClient(url)
  await client.query('begin; lock table credentials in share mode')
  return () => client.end()
}
