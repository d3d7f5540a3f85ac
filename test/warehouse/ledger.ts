import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { madeOnce } from '../support/made-once.ts'
import { THOROUGH } from '../support/thorough.ts'
import type { PipelineParts, Workspace } from '../support/workspace.ts'
import { loadHere } from './in-process.ts'
import { newTarget, type TargetKind, type TestTarget } from './targets.ts'

/** Every row of the data set is in the table once, and the ledger has every shard; other data sets do not matter. */
export async function holdsAll(here: Workspace, target: TestTarget): Promise<void> {
  const { shards, totals, data_set_id: id } = await here.manifest()
  const [table] = await target.rows(
    `select count(*) as n, count(distinct spillway_shard) as p from credentials where spillway_data_set = '${id}'`,
  )
  const [ledger] = await target.rows(
    `select count(*) as n, sum(rows) as r from spillway_loads where data_set = '${id}'`,
  )
  expect([Number(table?.n), Number(table?.p)]).toEqual([totals.rows, shards.length])
  expect([Number(ledger?.n), Number(ledger?.r)]).toEqual([shards.length, totals.rows])
}

/**
 * A data set, and a table that holds another one of the same name, with the same names of partitions and shards:
 * `neighbour.isUnchanged` checks that loads of the one do not change the other.
 */
export async function exportedBeside(kind: TargetKind, parts: PipelineParts) {
  const here = await exportedWorkspace(parts)
  const target = await newTarget(kind, here)
  // With another token it is another export of the same rows.
  const beside = await exportedWorkspace({ ...parts, load: {} }, { token: 'a token of its own' })
  const sameTable = { ...target, url: target.url.replace('duckdb:', `duckdb:${here.folder}/`) }
  await load(beside, here, sameTable)
  const { data_set_id: id, totals, resource } = await beside.manifest()
  const theirs = async () => ({
    rows: await target.rows(
      `select spillway_shard as p, count(*) as n, sum(id) as ids from ${resource} where spillway_data_set = '${id}' group by 1 order by 1`,
    ),
    ledger: await target.rows(
      `select shard, sha256, rows, loaded_at from spillway_loads where data_set = '${id}' order by shard`,
    ),
  })
  const before = await theirs()
  expect(before.rows.length).toBeGreaterThan(0)
  const neighbour = {
    id,
    rows: totals.rows,
    workspace: beside,
    target: sameTable,
    /** Its rows and ledger are as before. @param loads and a load of it has nothing to load */
    async isUnchanged(loads = THOROUGH) {
      expect(await theirs()).toEqual(before)
      if (!loads) return
      const { shards, removed } = await loadHere(beside, sameTable)
      expect({ ...shards, removed }).toEqual({
        loaded: 0,
        skipped: before.ledger.length,
        replaced: 0,
        removed: 0,
      })
    },
  }
  return { here, target, neighbour }
}

/** With DuckDB what was loaded is a file, which is made once. */
async function load(beside: Workspace, { folder }: Workspace, target: TestTarget): Promise<void> {
  if (!target.url.startsWith('duckdb:')) return void (await loadHere(beside, target))
  const { data_set_id: id } = await beside.manifest()
  const kept = await madeOnce(['loaded', id], async (path) => {
    await loadHere(beside, { url: `duckdb:${path}` })
  })
  await cp(kept, join(folder, 'leaks.db'))
}

/** The rows in the table are those of the ledger's shards, whatever happened before. */
export async function isHonest(target: TestTarget): Promise<void> {
  const wrong = await target
    .rows(
      `select count(*) as n from (select spillway_data_set as d, spillway_shard as p, count(*) as c from credentials group by 1, 2) t
       full join (select data_set as d, shard as p, rows as c from spillway_loads) l on t.d = l.d and t.p = l.p
       where t.c is distinct from l.c`,
    )
    // Killed before the tables were created.
    .catch((error: Error) => (/does not exist/i.test(error.message) ? [{ n: 0 }] : Promise.reject(error)))
  expect(Number(wrong[0]?.n)).toBe(0)
}
