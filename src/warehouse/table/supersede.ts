import { ExportError } from '../../core/index.ts'
import {
  countRows,
  deleteRows,
  enter,
  type Loaded,
  type LoadTarget,
  loadedShards,
  otherDataSets,
} from './load-rows.ts'
import { shownName, type TableSpec } from './table.ts'
import type { Database } from './warehouse.ts'

/** Stands for the shard in the only ledger entry that a superseded data set has; no path of a shard begins with it. */
const MARK = 'superseded by '

const markOf = ({ dataSet: { id } }: LoadTarget): string => `${MARK}${id}`

/** The data set whose place another one has taken in the table. */
const other = (target: LoadTarget, id: string): LoadTarget => ({
  ...target,
  dataSet: { ...target.dataSet, id },
})

/**
 * @param wanted the id that is to be superseded; null: none @param entries ledger entries of the loaded data set
 * @returns that id; null: none, or it is superseded already
 * @throws ExportError `config`: it is not in the table, or the loaded data set itself was superseded there
 */
export async function toSupersede(
  database: Database,
  target: LoadTarget,
  wanted: string | null,
  entries: readonly Loaded[],
): Promise<string | null> {
  const isAnswer = wanted !== null && entries.some(({ shard }) => shard === `${MARK}${wanted}`)
  if (wanted !== null && (isAnswer || !(await isSuperseded(database, target, wanted)))) return wanted
  requireInForce(target.table, entries)
  return null
}

/** @param entries ledger entries of a data set @throws ExportError `config`: another one has superseded it */
export function requireInForce(table: TableSpec, entries: readonly Loaded[]): void {
  const by = entries.find(isMark)?.shard.slice(MARK.length)
  if (by === undefined) return
  throw new ExportError({
    kind: 'config',
    what: `The data set ${by} has superseded this one in the table`,
    where: shownName(table, table.name),
    next: `Load that one, and take this load off the schedule; or load this one in its place: \`load --supersede ${by}\`. No row was changed.`,
  })
}

/** Whether it is done. @throws ExportError `config` when the table has no such data set, or it is the loaded one */
async function isSuperseded(database: Database, target: LoadTarget, wanted: string): Promise<boolean> {
  const { dataSet, table } = target
  const former = other(target, wanted)
  const entries = await loadedShards(database, former)
  const isThere = entries.some((entry) => !isMark(entry)) || (await countRows(database, former)) > 0
  if (wanted !== dataSet.id && (isThere || entries.some(({ shard }) => shard === markOf(target))))
    return !isThere
  const there = (await otherDataSets(database, target)).map(({ id, pipeline }) => `${id} (${pipeline})`)
  throw new ExportError({
    kind: 'config',
    what:
      wanted === dataSet.id
        ? 'A data set cannot supersede itself'
        : `The table ${shownName(table, table.name)} has no data set ${JSON.stringify(wanted)}`,
    where: '--supersede',
    next: `${there.length === 0 ? 'There is no other one: leave the flag out' : `Name one that is there: ${there.join(', ')}`}. No row was changed.`,
  })
}

/**
 * Its rows and ledger entries go, and a mark takes their place. @param entries of the loaded data set: its mark goes
 * @returns how many rows have gone
 */
export async function supersede(
  database: Database,
  target: LoadTarget,
  id: string,
  entries: readonly Loaded[],
): Promise<number> {
  const former = other(target, id)
  const rows = await countRows(database, former)
  await deleteRows(database, former, null)
  await enter(database, former, [{ shard: markOf(target), sha256: '', rows: 0, partitions: [] }])
  await deleteRows(database, target, entries.filter(isMark))
  return rows
}

export function isMark({ shard }: Loaded): boolean {
  return shard.startsWith(MARK)
}
