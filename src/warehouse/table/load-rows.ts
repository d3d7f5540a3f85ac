import { ExportError, inGroups } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { LEDGER_COLUMNS } from './prepare-table.ts'
import { columnList } from './shard-rows.ts'
import {
  DATA_SET_COLUMN,
  LEDGER,
  literal,
  qualified,
  SHARD_COLUMN,
  shownName,
  type TableSpec,
} from './table.ts'
import { type Database, type DataSet, type LoadMode, requireAcknowledged } from './warehouse.ts'

/** What is loaded where. */
export type LoadTarget = {
  readonly dataSet: DataSet
  readonly table: TableSpec
  readonly mode: LoadMode
  /** The same for all that one command loads: ISO 8601. */
  readonly loadedAt: string
  /** SQL of the rows of shards, as DuckDB reads them, with data set and shard as last columns. */
  readonly rowsOf: (dataSet: string, shards: readonly ManifestShard[]) => string
}

/** A data set and its table. */
export type Loading = Pick<LoadTarget, 'dataSet' | 'table'>
export type Reading = Pick<Database, 'query'>

/** A ledger entry: a shard that was loaded. */
export type Loaded = {
  readonly shard: string
  readonly sha256: string
  readonly rows: number
  readonly partitions: readonly string[]
}

export async function loadedShards(
  { query }: Reading,
  { dataSet, table }: Loading,
): Promise<readonly Loaded[]> {
  const rows = await query(
    `SELECT shard, sha256, rows::float8 AS rows, partitions FROM ${entriesOf(dataSet, table)}`,
  )
  return rows.map(({ partitions, ...entry }) => ({ ...entry, partitions: partitions ?? [] })) as Loaded[]
}

export async function countRows({ query }: Reading, { dataSet, table }: Loading): Promise<number> {
  const [counted] = await query(`SELECT count(*)::float8 AS rows FROM ${rowsOf(dataSet, table)}`)
  return Number(counted?.rows)
}

export type OtherDataSet = { readonly id: string; readonly pipeline: string; readonly rows: number }

/** Those in the table besides, as the ledger lists them: first those of the same pipeline, the newest first. */
export async function otherDataSets(
  { query }: Reading,
  { dataSet: { id, pipeline }, table }: Loading,
): Promise<readonly OtherDataSet[]> {
  const others = await query(
    `SELECT data_set AS id, max(pipeline) AS pipeline, sum(rows)::float8 AS rows FROM ${qualified(table, LEDGER)} WHERE table_name = ${literal(table.name)} AND data_set <> ${literal(id)} AND rows > 0 GROUP BY data_set ORDER BY max(pipeline) <> ${literal(pipeline)}, max(loaded_at) DESC, id`,
  )
  return others as unknown as readonly OtherDataSet[]
}

/** Deletes rows of a data set, and their ledger entries. @param shards null: all, also those that no entry lists */
export async function deleteRows(
  database: Database,
  { dataSet, table }: LoadTarget,
  shards: readonly Loaded[] | null,
): Promise<void> {
  for (const some of shards === null ? [null] : inGroups(shards, NAMES_AT_ONCE)) {
    const names = some?.map(({ shard }) => literal(shard)).join(', ')
    const among = (column: string): string => (names === undefined ? '' : ` AND ${column} IN (${names})`)
    const rows = `${rowsOf(dataSet, table)}${among(SHARD_COLUMN.name)}`
    await remove(database, rows, shownName(table, table.name))
    await remove(database, `${entriesOf(dataSet, table)}${among('shard')}`, LEDGER)
  }
}

/** @param name of the table, as it is shown @throws ExportError `target` when the database keeps some */
async function remove({ query, run }: Database, from: string, name: string): Promise<void> {
  await run(`DELETE FROM ${from}`)
  if ((await query(`SELECT 1 FROM ${from} LIMIT 1`)).length === 0) return
  throw new ExportError({
    kind: 'target',
    what: 'The database keeps rows that were to be deleted: a trigger or a rule of the table prevents that',
    where: name,
    next: 'Take it away, or load into another --table; nothing was loaded partially.',
  })
}

/** In one statement: it is short enough for the parsers. */
const NAMES_AT_ONCE = 1000

const LEDGER_NAMES = LEDGER_COLUMNS.map(({ name }) => name).join(', ')

/** Inserts their ledger entries as well. @returns the number of rows with strings that were changed to fit */
export async function insertShards(
  database: Database,
  shards: readonly ManifestShard[],
  target: LoadTarget,
): Promise<number> {
  const { dataSet, table, mode, rowsOf } = target
  const select = rowsOf(dataSet.id, shards)
  const changed =
    mode === 'upsert'
      ? await upsert(database, shards, select, target)
      : await database.insert(shards, select, table, qualified(table, table.name))
  await enter(
    database,
    target,
    shards.map(({ path, ...shard }) => ({ shard: path, ...shard })),
  )
  return changed
}

/** Inserts ledger entries. */
async function enter(
  { run }: Database,
  { dataSet, table, loadedAt }: LoadTarget,
  entries: readonly Loaded[],
): Promise<void> {
  for (const some of inGroups(entries, NAMES_AT_ONCE)) {
    const values = some.map(({ shard, sha256, rows, partitions }) => {
      const texts = [dataSet.id, shard, sha256].map(literal).join(', ')
      const keys = `ARRAY[${partitions.map(literal).join(', ')}]::text[]`
      const about = [table.name, dataSet.pipeline].map(literal).join(', ')
      return `(${texts}, ${rows}, ${literal(loadedAt)}::timestamptz, ${keys}, ${about})`
    })
    const acknowledged = await run(
      `INSERT INTO ${qualified(table, LEDGER)} (${LEDGER_NAMES}) VALUES ${values.join(', ')}`,
    )
    const shards = some.map(({ shard }) => shard)
    requireAcknowledged(LEDGER, shards, some.length, acknowledged)
  }
}

const INCOMING = 'spillway_incoming'

/** Of each credential of a query the row with the latest `imported_at` stays, whatever comes first. */
async function upsert(
  database: Database,
  shards: readonly ManifestShard[],
  select: string,
  { dataSet, table }: LoadTarget,
): Promise<number> {
  const { query, run, insert } = database
  const [into, columns] = [qualified(table, table.name), columnList(table)]
  const name = shownName(table, table.name)
  const isSame = `t.${DATA_SET_COLUMN.name} = ${literal(dataSet.id)} AND t.query_type = n.query_type AND t.query_value = n.query_value AND t.id = n.id`
  await run(`CREATE TEMP TABLE ${INCOMING} AS SELECT ${columns} FROM ${into} LIMIT 0`)
  const changed = await insert(shards, select, table, INCOMING)
  const isLater = `SELECT 1 FROM ${INCOMING} n WHERE ${isSame} AND n.imported_at >= t.imported_at`
  await remove(database, `${into} t WHERE EXISTS (${isLater})`, name)
  await run(`DELETE FROM ${INCOMING} n WHERE EXISTS (SELECT 1 FROM ${into} t WHERE ${isSame})`)
  const [counted] = await query(
    `SELECT count(*)::float8 AS rows FROM (SELECT DISTINCT query_type, query_value, id FROM ${INCOMING}) n`,
  )
  await run(
    `INSERT INTO ${into} (${columns}) SELECT DISTINCT ON (query_type, query_value, id) ${columns} FROM ${INCOMING} ORDER BY query_type, query_value, id, imported_at DESC, ${SHARD_COLUMN.name} DESC`,
  )
  const paths = shards.map(({ path }) => path)
  // A rule may redirect rows: then the statement's own count has them.
  const [stored] = await query(
    `SELECT count(*)::float8 AS rows FROM ${rowsOf(dataSet, table)} AND ${SHARD_COLUMN.name} IN (${paths.map(literal).join(', ')})`,
  )
  requireAcknowledged(name, paths, Number(counted?.rows), Number(stored?.rows))
  await run(`DROP TABLE ${INCOMING}`)
  return changed
}

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

function rowsOf({ id }: DataSet, table: TableSpec): string {
  return `${qualified(table, table.name)} WHERE ${DATA_SET_COLUMN.name} = ${literal(id)}`
}

function entriesOf({ id }: DataSet, table: TableSpec): string {
  return `${qualified(table, LEDGER)} WHERE data_set = ${literal(id)} AND table_name = ${literal(table.name)}`
}
