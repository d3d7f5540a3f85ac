import { join } from 'node:path'
import { type ColumnSpec, ExportError, type Format } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { DUCKDB_TYPES, identifier, literal, rowColumns, type TableSpec } from './table.ts'
import type { PartitionRule, ShardRows } from './warehouse.ts'

/** Where the shards of a data set lie, and how they are written. */
type ShardSource = {
  /** Absolute path of the data set. */
  readonly root: string
  readonly format: Format
}

/** The table of partition rules, replaced for each shard of several partitions. */
const RULES = 'spillway_partition_rules'

/**
 * SQL by which DuckDB reads the rows of a shard with the types of the table, `spillway_data_set` and
 * `spillway_partition` last. In a shard of several partitions, query and `imported_at` decide which one a row belongs
 * to.
 * @param dataSet its identity
 * @param rulesOf how the rows of each partition are known
 * @throws ExportError `config` when the columns that it takes are not exported
 */
export function shardRows(
  source: ShardSource,
  dataSet: string,
  table: TableSpec,
  shard: ManifestShard,
  rulesOf: (partitions: readonly string[]) => readonly PartitionRule[],
): ShardRows {
  const columns = rowColumns(table)
  const reader = readerOf(source, [shard.path], columns)
  const values = [...columns.map((column) => typedValue(column, source.format)), literal(dataSet)]
  const [only, ...others] = shard.partitions
  if (others.length === 0) {
    return { setup: [], select: `SELECT ${[...values, literal(only ?? '')].join(', ')} FROM ${reader} s` }
  }
  const rules = rulesOf(shard.partitions)
  const conditions = conditionsFor(rules, columns, shard.path)
  return {
    setup: [rulesTable(rules)],
    select: `SELECT ${[...values, 'r.partition_key'].join(', ')} FROM ${reader} s LEFT JOIN ${RULES} r ON ${conditions.join(' AND ')}`,
  }
}

/** The same rows of a whole data set, without `spillway_partition`. */
export function dataSetRows(
  source: ShardSource,
  columns: readonly ColumnSpec[],
  paths: readonly string[],
): string {
  const terms = columns.map((column) => `${typedValue(column, source.format)} AS ${identifier(column.name)}`)
  if (paths.length > 0) return `SELECT ${terms.join(', ')} FROM ${readerOf(source, paths, columns)} s`
  const nulls = columns.map(({ name, type }) => `NULL::${DUCKDB_TYPES[type]} AS ${identifier(name)}`)
  return `SELECT ${nulls.join(', ')} LIMIT 0`
}

function readerOf(
  { root, format }: ShardSource,
  paths: readonly string[],
  columns: readonly ColumnSpec[],
): string {
  const file = `[${paths.map((path) => literal(join(root, path))).join(', ')}]`
  if (format.kind === 'parquet') return `read_parquet(${file}, hive_partitioning = false)`
  const types = columns.map(({ name }) => `${literal(name)}: 'VARCHAR'`).join(', ')
  // By default DuckDB reads "" as null and guesses types.
  return `read_csv(${file}, header = true, auto_detect = false, columns = {${types}}, delim = ',', quote = '"', escape = '"', new_line = '\\n', nullstr = '', allow_quoted_nulls = false, max_line_size = 268435456, parallel = false, hive_partitioning = false)`
}

/** A column of a shard, cast to the type of the table. */
function typedValue({ name, type }: ColumnSpec, format: Format): string {
  const column = `s.${identifier(name)}`
  if (format.kind === 'parquet') return type === 'timestamp' ? `${column}::TIMESTAMPTZ` : column
  switch (type) {
    case 'text':
      return column
    case 'int64':
      return `${column}::BIGINT`
    case 'boolean':
      return `${column}::BOOLEAN`
    case 'timestamp':
      return `${column}::TIMESTAMPTZ`
    case 'list':
      return `from_json(${column}, '["VARCHAR"]')`
  }
}

function rulesTable(rules: readonly PartitionRule[]): string {
  const value = (given: string | number | null): string =>
    given === null ? 'NULL' : typeof given === 'number' ? String(given) : literal(given)
  const rows = rules.map(
    ({ key, queryType, queryValue, from, until, id }) =>
      `(${[key, queryType, queryValue, from, until, id].map(value).join(', ')})`,
  )
  return `CREATE OR REPLACE TEMP TABLE ${RULES} AS SELECT col0 AS partition_key, col1::VARCHAR AS query_type, col2::VARCHAR AS query_value, col3::BIGINT AS from_us, col4::BIGINT AS until_us, col5::BIGINT AS id FROM (VALUES ${rows.join(', ')})`
}

function conditionsFor(
  rules: readonly PartitionRule[],
  columns: readonly ColumnSpec[],
  path: string,
): readonly string[] {
  const need = (...names: string[]): void => {
    const missing = names.filter((name) => !columns.some((column) => column.name === name))
    if (missing.length > 0) throw cannotTell(missing, path)
  }
  if (rules.some(({ id }) => id !== null)) {
    need('id')
    return ['s.id::BIGINT = r.id']
  }
  requireDifferent(rules, path)
  const conditions: string[] = []
  if (new Set(rules.map(({ queryType, queryValue }) => `${queryType} ${queryValue}`)).size > 1) {
    need('query_type', 'query_value')
    conditions.push('s.query_type = r.query_type', 's.query_value = r.query_value')
  }
  if (new Set(rules.map(({ from, until }) => `${from} ${until}`)).size > 1) {
    need('imported_at')
    const at = 'epoch_us(s.imported_at::TIMESTAMPTZ)'
    conditions.push(`(r.from_us IS NULL OR (${at} >= r.from_us AND ${at} < r.until_us))`)
  }
  return conditions
}

/** If secrets or identities are masked to one constant, rows do not show which query they belong to. */
function requireDifferent(rules: readonly PartitionRule[], path: string): void {
  const keys = new Map<string, string>()
  for (const { key, queryType, queryValue, from, until } of rules) {
    const looks = JSON.stringify([queryType, queryValue, from, until])
    const other = keys.get(looks)
    if (other !== undefined) throw lookAlike(key, other, path)
    keys.set(looks, key)
  }
}

function lookAlike(one: string, other: string, path: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The shard holds rows of ${one} and of ${other}, and their query_value is masked to one and the same text`,
    where: path,
    next: 'Export with load.partition_by: [query, window], or with query in it.',
  })
}

function cannotTell(missing: readonly string[], path: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `Shards hold several partitions, whose rows can only be told apart by columns that are not exported: ${missing.join(', ')}`,
    where: path,
    next: `Export with ${missing.join(' and ')} among transform.columns, or with load.partition_by: [query, window].`,
  })
}

/** The table's columns as a list of names. */
export function columnList(table: TableSpec): string {
  return table.columns.map(({ name }) => identifier(name)).join(', ')
}
