import { standsFor } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { LEDGER_COLUMNS } from './prepare-table.ts'
import { columnList, partitionOf } from './shard-rows.ts'
import { DATA_SET_COLUMN, LEDGER, literal, PARTITION_COLUMN, qualified, type TableSpec } from './table.ts'
import type { Database, DataSet, LoadMode } from './warehouse.ts'

/** What is loaded where. */
export type LoadTarget = {
  readonly dataSet: DataSet
  readonly table: TableSpec
  readonly mode: LoadMode
  /** The same for all that one command loads: ISO 8601. */
  readonly loadedAt: string
  /** SQL of the rows of shards, as DuckDB reads them, with data set and partition as last columns. */
  readonly rowsOf: (shards: readonly ManifestShard[]) => string
}

/** A ledger entry: a shard that was loaded. */
export type Loaded = {
  readonly shard: string
  readonly sha256: string
  /** What its rows have as `spillway_partition`. */
  readonly partition: string
  readonly rows: number
}

/** The ledger entries of a data set in a table. */
export async function loadedShards(
  { query }: Database,
  { dataSet, table }: LoadTarget,
): Promise<readonly Loaded[]> {
  const rows = await query(
    `SELECT shard, sha256, ${PARTITION_COLUMN.name} AS partition, rows::float8 AS rows FROM ${entriesOf(dataSet, table)}`,
  )
  return rows as unknown as readonly Loaded[]
}

/**
 * Tells the ledger which shards stand for those whose rows the table has, since they were compacted; no row moves. Where
 * not all of a shard's rows are there, or rows of other shards have the same `spillway_partition`, it is loaded.
 * @returns the entries after it
 */
export async function adoptCompacted(
  { run }: Database,
  shards: readonly ManifestShard[],
  loaded: readonly Loaded[],
  { dataSet, table }: LoadTarget,
): Promise<readonly Loaded[]> {
  const entries = entriesOf(dataSet, table)
  const known = new Set(loaded.map(({ shard }) => shard))
  let left = loaded
  for (const shard of shards) {
    if (shard.stands_for === undefined || known.has(shard.path)) continue
    const partition = partitionOf(shard)
    const former = left.filter((entry) => standsFor(shard, entry.shard))
    const labels = new Set(former.map((entry) => entry.partition))
    labels.delete(partition)
    const others = left.filter((entry) => !former.includes(entry))
    const isWhole = former.length > 0 && former.reduce((sum, entry) => sum + entry.rows, 0) === shard.rows
    if (!isWhole || others.some((entry) => labels.has(entry.partition))) continue
    for (const some of namesAtOnce(labels))
      await run(
        `UPDATE ${qualified(table, table.name)} SET ${PARTITION_COLUMN.name} = ${literal(partition)} WHERE ${DATA_SET_COLUMN.name} = ${literal(dataSet.id)} AND ${PARTITION_COLUMN.name} IN (${some})`,
      )
    const names = [...namesAtOnce(former.map((entry) => entry.shard))]
    await run(
      `INSERT INTO ${qualified(table, LEDGER)} (${LEDGER_NAMES}) SELECT data_set, ${literal(shard.path)}, ${literal(shard.sha256)}, ${shard.rows}, max(loaded_at), table_name, ${literal(partition)}, pipeline FROM ${entries} AND (${names.map((some) => `shard IN (${some})`).join(' OR ')}) GROUP BY data_set, table_name, pipeline`,
    )
    for (const some of names) await run(`DELETE FROM ${entries} AND shard IN (${some})`)
    left = [...others, { shard: shard.path, sha256: shard.sha256, partition, rows: shard.rows }]
  }
  return left
}

/** The number of rows of a data set in a table. */
export async function countRows({ query }: Database, { dataSet, table }: LoadTarget): Promise<number> {
  const [counted] = await query(`SELECT count(*)::float8 AS rows FROM ${rowsOf(dataSet, table)}`)
  return Number(counted?.rows)
}

/** Identities of other data sets of the same pipeline with rows in the table. */
export async function otherDataSets(
  { query }: Database,
  { dataSet: { id, pipeline }, table }: LoadTarget,
): Promise<readonly string[]> {
  const others = await query(
    `SELECT DISTINCT data_set AS name FROM ${qualified(table, LEDGER)} WHERE table_name = ${literal(table.name)} AND pipeline = ${literal(pipeline)} AND data_set <> ${literal(id)} AND rows > 0 ORDER BY name`,
  )
  return others.map(({ name }) => String(name))
}

/** Deletes rows of a data set, and their ledger entries. @param partitions null: all */
export async function deleteRows(
  { run }: Database,
  { dataSet, table }: LoadTarget,
  partitions: ReadonlySet<string> | null,
): Promise<void> {
  const [rows, entries] = [rowsOf(dataSet, table), entriesOf(dataSet, table)]
  if (partitions === null) {
    await run(`DELETE FROM ${rows}`)
    await run(`DELETE FROM ${entries}`)
    return
  }
  for (const names of namesAtOnce(partitions)) {
    await run(`DELETE FROM ${rows} AND ${PARTITION_COLUMN.name} IN (${names})`)
    await run(`DELETE FROM ${entries} AND ${PARTITION_COLUMN.name} IN (${names})`)
  }
}

/** Literals, so many at once that statements are short enough for the parsers. */
function* namesAtOnce(names: Iterable<string>): Generator<string> {
  const all = [...names].map(literal)
  for (let at = 0; at < all.length; at += NAMES_AT_ONCE) yield all.slice(at, at + NAMES_AT_ONCE).join(', ')
}

const NAMES_AT_ONCE = 1000

const LEDGER_NAMES = LEDGER_COLUMNS.map(({ name }) => name).join(', ')

/** Those of a few shards that the ledger lacks. */
export async function missingShards(
  { query }: Database,
  shards: readonly ManifestShard[],
  { dataSet, table }: LoadTarget,
): Promise<readonly ManifestShard[]> {
  const names = shards.map(({ path }) => literal(path)).join(', ')
  const found = await query(`SELECT shard FROM ${entriesOf(dataSet, table)} AND shard IN (${names})`)
  return shards.filter(({ path }) => !found.some(({ shard }) => shard === path))
}

/**
 * Inserts the rows of a few shards, and their ledger entries.
 * @returns the number of rows with strings that were changed to fit
 */
export async function insertShards(
  database: Database,
  shards: readonly ManifestShard[],
  target: LoadTarget,
): Promise<number> {
  const { dataSet, table, mode, loadedAt, rowsOf } = target
  const select = rowsOf(shards)
  const changed =
    mode === 'upsert'
      ? await upsert(database, shards, select, target)
      : await database.insert(shards, select, table, qualified(table, table.name))
  const entries = shards.map((shard) => {
    const texts = [dataSet.id, shard.path, shard.sha256].map(literal).join(', ')
    const about = [table.name, partitionOf(shard), dataSet.pipeline].map(literal).join(', ')
    return `(${texts}, ${shard.rows}, ${literal(loadedAt)}::timestamptz, ${about})`
  })
  await database.run(`INSERT INTO ${qualified(table, LEDGER)} (${LEDGER_NAMES}) VALUES ${entries.join(', ')}`)
  return changed
}

/** The rows of the shards before an upsert. */
const INCOMING = 'spillway_incoming'

/** Of each credential of a query the row with the latest `imported_at` stays, whatever comes first. */
async function upsert(
  { run, insert }: Database,
  shards: readonly ManifestShard[],
  select: string,
  { dataSet, table }: LoadTarget,
): Promise<number> {
  const [into, columns] = [qualified(table, table.name), columnList(table)]
  const isSame = `t.${DATA_SET_COLUMN.name} = ${literal(dataSet.id)} AND t.query_type = n.query_type AND t.query_value = n.query_value AND t.id = n.id`
  await run(`CREATE TEMP TABLE ${INCOMING} AS SELECT ${columns} FROM ${into} LIMIT 0`)
  const changed = await insert(shards, select, table, INCOMING)
  await run(
    `DELETE FROM ${into} t USING (SELECT query_type, query_value, id, max(imported_at) AS imported_at FROM ${INCOMING} GROUP BY 1, 2, 3) n WHERE ${isSame} AND t.imported_at <= n.imported_at`,
  )
  await run(
    `INSERT INTO ${into} (${columns}) SELECT DISTINCT ON (query_type, query_value, id) ${columns} FROM ${INCOMING} n WHERE NOT EXISTS (SELECT 1 FROM ${into} t WHERE ${isSame}) ORDER BY query_type, query_value, id, imported_at DESC, ${PARTITION_COLUMN.name} DESC`,
  )
  await run(`DROP TABLE ${INCOMING}`)
  return changed
}

function rowsOf({ id }: DataSet, table: TableSpec): string {
  return `${qualified(table, table.name)} WHERE ${DATA_SET_COLUMN.name} = ${literal(id)}`
}

function entriesOf({ id }: DataSet, table: TableSpec): string {
  return `${qualified(table, LEDGER)} WHERE data_set = ${literal(id)} AND table_name = ${literal(table.name)}`
}
