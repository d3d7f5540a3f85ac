import type { ManifestShard } from '../../state/index.ts'
import { columnList } from './shard-rows.ts'
import { DATA_SET_COLUMN, LEDGER, literal, PARTITION_COLUMN, qualified, type TableSpec } from './table.ts'
import {
  type Loaded,
  type LoadedRows,
  type LoadTarget,
  type LoadUnit,
  type RunQuery,
  type ShardRows,
  takeReplaced,
} from './warehouse.ts'

/** What differs between databases in how rows get into tables, and out of them. */
export type RowLoader = {
  readonly query: RunQuery
  /** @returns the number of rows that the statement changed */
  readonly run: (sql: string) => Promise<number>
  /**
   * Inserts the rows of a shard.
   * @param into qualified name of the table
   * @returns the number of rows with strings that were changed to fit
   * @throws ExportError `damaged` when there are more or fewer than the manifest says
   */
  readonly insert: (shard: ManifestShard, rows: ShardRows, table: TableSpec, into: string) => Promise<number>
  /** Carries out a DELETE that returns a `name` for each row. @returns how many rows it deleted, by name */
  readonly remove: (deletion: string) => Promise<ReadonlyMap<string, number>>
}

// Keeps statements short enough for the parsers.
const NAMES_AT_ONCE = 1000

function* slices(names: readonly string[]): Generator<string> {
  for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
    yield names
      .slice(at, at + NAMES_AT_ONCE)
      .map(literal)
      .join(', ')
  }
}

/** `Warehouse.loaded`, in SQL that DuckDB and PostgreSQL both understand, like all that follows. */
export async function loadedShards(
  query: RunQuery,
  dataSet: string,
  table: TableSpec,
  about: readonly ManifestShard[] | null,
): Promise<readonly Loaded[]> {
  const ledger = `SELECT shard, sha256, partitions, rows::float8 AS rows FROM ${qualified(table, LEDGER)} WHERE ${entriesOf(dataSet, table)}`
  const found: unknown[] = []
  for (const condition of conditionsAbout(about)) {
    // One by one: a spread of 100,000 arguments overflows the stack.
    for (const row of await query(`${ledger} AND ${condition}`)) found.push(row)
  }
  return found as readonly Loaded[]
}

function entriesOf(dataSet: string, table: TableSpec): string {
  return `data_set = ${literal(dataSet)} AND table_name = ${literal(table.name)}`
}

function* conditionsAbout(about: readonly ManifestShard[] | null): Generator<string> {
  if (about === null) return yield 'true'
  for (const paths of slices(about.map(({ path }) => path))) yield `shard IN (${paths})`
  for (const keys of slices(about.flatMap(({ partitions }) => partitions)))
    yield `partitions && ARRAY[${keys}]::text[]`
}

/** `Warehouse.load`, within a transaction. */
export async function loadUnit(
  loader: RowLoader,
  { shards, stale, forgotten }: LoadUnit,
  target: LoadTarget,
): Promise<LoadedRows> {
  const { dataSet, table } = target
  const isOwn = `${DATA_SET_COLUMN.name} = ${literal(dataSet.id)}`
  for (const keys of slices(stale))
    await loader.run(
      `DELETE FROM ${qualified(table, table.name)} WHERE ${isOwn} AND ${PARTITION_COLUMN.name} IN (${keys})`,
    )
  for (const paths of slices(forgotten))
    await loader.run(
      `DELETE FROM ${qualified(table, LEDGER)} WHERE ${entriesOf(dataSet.id, table)} AND shard IN (${paths})`,
    )
  let [rows, replacedTexts] = [0, 0]
  for (const shard of shards) {
    replacedTexts += await insertShard(loader, shard, target)
    rows += shard.rows
  }
  return { rows, replacedTexts }
}

/** Inserts the rows of a shard, and its ledger entry. @returns how many texts were changed to fit */
async function insertShard(loader: RowLoader, shard: ManifestShard, target: LoadTarget): Promise<number> {
  const { dataSet, table, mode, loadedAt, rowsOf } = target
  const into = qualified(table, table.name)
  let [replaced, replacedTexts] = [0, 0]
  if (mode === 'upsert') {
    const columns = columnList(table)
    await loader.run(`CREATE TEMP TABLE ${INCOMING} AS SELECT * FROM ${into} LIMIT 0`)
    replacedTexts = await loader.insert(shard, rowsOf(shard), table, INCOMING)
    const gone = await loader.remove(
      `DELETE FROM ${into} t USING (SELECT DISTINCT query_type, query_value, id FROM ${INCOMING}) n WHERE t.${DATA_SET_COLUMN.name} = ${literal(dataSet.id)} AND t.query_type = n.query_type AND t.query_value = n.query_value AND t.id = n.id RETURNING t.${PARTITION_COLUMN.name} AS name`,
    )
    await takeReplaced(loader.query, dataSet.id, table, gone)
    const inserted = await loader.run(
      `INSERT INTO ${into} (${columns}) SELECT DISTINCT ON (query_type, query_value, id) ${columns} FROM ${INCOMING} ORDER BY query_type, query_value, id, imported_at DESC`,
    )
    replaced = shard.rows - inserted
    await loader.run(`DROP TABLE ${INCOMING}`)
  } else replacedTexts = await loader.insert(shard, rowsOf(shard), table, into)
  const texts = [dataSet.id, shard.path, shard.sha256].map(literal).join(', ')
  const partitions = shard.partitions.map(literal).join(', ')
  await loader.run(
    `INSERT INTO ${qualified(table, LEDGER)} (data_set, shard, sha256, rows, loaded_at, table_name, partitions, pipeline, replaced) VALUES (${texts}, ${shard.rows}, ${literal(loadedAt)}::timestamptz, ${literal(table.name)}, ARRAY[${partitions}]::text[], ${literal(dataSet.pipeline)}, ${replaced})`,
  )
  return replacedTexts
}

/** The rows of one shard before an upsert. */
const INCOMING = 'spillway_incoming'
