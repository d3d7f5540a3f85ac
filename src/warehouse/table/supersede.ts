import { ExportError } from '../../core/index.ts'
import {
  countRows,
  deleteRows,
  enter,
  type Loaded,
  type Loading,
  type LoadTarget,
  loadedShards,
  type OtherDataSet,
  otherDataSets,
  type Reading,
} from './load-rows.ts'
import { shownName } from './table.ts'
import type { Database } from './warehouse.ts'

/** Stands for the shard in the only ledger entry that a superseded data set has; no path of a shard begins with it. */
const MARK = 'superseded by '

const markOf = ({ dataSet: { id } }: Loading): string => `${MARK}${id}`

/** Another data set of the table. */
const other = <T extends Loading>(target: T, id: string): T => ({
  ...target,
  dataSet: { ...target.dataSet, id },
})

/**
 * @param wanted the id that is to be superseded; null: none @param entries ledger entries of the loaded data set
 * @returns that id; null: none, or it is superseded already
 * @throws ExportError `config`: it is not in the table, or the loaded data set itself was superseded there
 */
export async function toSupersede(
  database: Reading,
  target: Loading,
  wanted: string | null,
  entries: readonly Loaded[],
): Promise<string | null> {
  const by = entries.find(isMark)?.shard.slice(MARK.length)
  if (wanted !== null && (wanted === by || !(await isSuperseded(database, target, wanted)))) return wanted
  if (by === undefined) return null
  throw new ExportError({
    kind: 'config',
    what: `The data set ${by} has superseded this one in the table`,
    where: shownName(target.table, target.table.name),
    next: `Load that one, and take this one off the schedule; or load this one in its place: \`load --supersede ${by}\`. No row was changed.`,
  })
}

/** Whether it is done. @throws ExportError `config` when the table has no such data set, or it is the loaded one */
async function isSuperseded(database: Reading, target: Loading, wanted: string): Promise<boolean> {
  const former = other(target, wanted)
  const entries = await loadedShards(database, former)
  const isThere = entries.some((entry) => !isMark(entry)) || (await countRows(database, former)) > 0
  const isDone = !isThere && entries.some(({ shard }) => shard === markOf(target))
  if ((isThere || isDone) && wanted !== target.dataSet.id) return isDone
  throw notThere(target, wanted, await otherDataSets(database, target))
}

/** @param there what the table has */
export function notThere(
  { dataSet, table }: Loading,
  wanted: string,
  there: readonly OtherDataSet[],
): ExportError {
  const names = there.map(({ id, pipeline }) => `${id} (${pipeline})`).join(', ')
  return new ExportError({
    kind: 'config',
    what:
      wanted === dataSet.id
        ? 'A data set cannot supersede itself'
        : `The table ${shownName(table, table.name)} has no data set ${JSON.stringify(wanted)}`,
    where: '--supersede',
    next: `${names === '' ? 'There is no other one: leave the flag out' : `Name one that is there: ${names}`}. No row was changed.`,
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
