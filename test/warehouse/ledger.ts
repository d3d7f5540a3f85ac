import { expect } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import type { Workspace } from '../support/workspace.ts'
import { loadHere } from './in-process.ts'
import type { TestTarget } from './targets.ts'

/** Every row of the data set is in the table once, and the ledger has every shard; other data sets do not matter. */
export async function holdsAll(here: Workspace, target: TestTarget): Promise<void> {
  const { shards, totals, data_set_id: id } = await here.manifest()
  const [table] = await target.rows(
    `select count(*) as n, count(distinct spillway_partition) as p from credentials where spillway_data_set = '${id}'`,
  )
  const [ledger] = await target.rows(
    `select count(*) as n, sum(rows) as r from spillway_loads where data_set = '${id}'`,
  )
  expect([Number(table?.n), Number(table?.p)]).toEqual([totals.rows, shards.length])
  expect([Number(ledger?.n), Number(ledger?.r)]).toEqual([shards.length, totals.rows])
}

/**
 * Loads another data set into the table, of the same name, with the same names of partitions and shards.
 * @returns a check that it is unchanged
 */
export async function neighbour(here: Workspace, target: TestTarget): Promise<() => Promise<void>> {
  const windows = { from: '2024-01-01', until: '2024-03-10', every: 'week' }
  const beside = await exportedWorkspace({ extract: { domains: ['quillmere.net'], windows } })
  await loadHere(beside, { url: target.url.replace('duckdb:', `duckdb:${here.folder}/`) })
  await holdsAll(beside, target)
  return () => holdsAll(beside, target)
}

/** The rows in the table are those of the ledger's shards, whatever happened before. */
export async function isHonest(target: TestTarget): Promise<void> {
  const wrong = await target
    .rows(
      `select count(*) as n from (select spillway_data_set as d, spillway_partition as p, count(*) as c from credentials group by 1, 2) t
       full join (select data_set as d, spillway_partition as p, rows as c from spillway_loads) l on t.d = l.d and t.p = l.p
       where t.c is distinct from l.c`,
    )
    // Killed before the tables were created.
    .catch((error: Error) => (/does not exist/i.test(error.message) ? [{ n: 0 }] : Promise.reject(error)))
  expect(Number(wrong[0]?.n)).toBe(0)
}
