import { join } from 'node:path'
import type { Format } from '../../core/index.ts'
import type { ColumnSpec } from '../../rows/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { DUCKDB_TYPES, duckdbPath, identifier, literal, rowColumns, type TableSpec } from './table.ts'

/** Where the shards of a data set lie, and how they are written. */
type ShardSource = {
  /** Absolute path of the data set. */
  readonly root: string
  readonly format: Format
  /** Whether some shards may lack some columns, which are null then. */
  readonly isMixed: boolean
}

/** SQL by which DuckDB reads rows with the types of the table, `spillway_data_set` and `spillway_shard` last. */
export function shardRows(
  source: ShardSource,
  dataSet: string,
  table: TableSpec,
  shards: readonly ManifestShard[],
): string {
  const columns = rowColumns(table)
  const values = columns.map((column) => typedValue(column, source.format))
  const paths = shards.map(({ path }) => path)
  // Characters, as DuckDB counts them.
  const first = [...join(source.root, '/')].length + 1
  const label = `substr(s.${FILE}, ${first})`
  return `SELECT ${[...values, literal(dataSet), label].join(', ')} FROM ${readerOf(source, paths, columns)} s`
}

/** The column with the path of the file that a row is read from. */
const FILE = 'spillway_file'

/** The same rows of a whole data set, without these two. */
export function dataSetRows(
  source: ShardSource,
  columns: readonly ColumnSpec[],
  paths: readonly string[],
): string {
  const terms = columns.map((column) => `${typedValue(column, source.format)} AS ${identifier(column.name)}`)
  if (paths.length > 0) return `SELECT ${terms.join(', ')} FROM ${readerOf(source, paths, columns)} s`
  return noRows(columns)
}

function noRows(columns: readonly ColumnSpec[]): string {
  const nulls = columns.map(({ name, type }) => `NULL::${DUCKDB_TYPES[type]} AS ${identifier(name)}`)
  return `SELECT ${nulls.join(', ')} WHERE false`
}

const MAX_LINE_BYTES = 1 << 28

function readerOf(source: ShardSource, paths: readonly string[], columns: readonly ColumnSpec[]): string {
  const file = `[${paths.map((path) => literal(duckdbPath(join(source.root, path)))).join(', ')}]`
  const common = `hive_partitioning = false, filename = ${literal(FILE)}`
  if (source.format.kind === 'parquet') {
    if (!source.isMixed) return `read_parquet(${file}, ${common})`
    return `(FROM read_parquet(${file}, union_by_name = true, ${common}) UNION ALL BY NAME (${noRows(columns)}))`
  }
  const types = columns.map(({ name }) => `${literal(name)}: 'VARCHAR'`).join(', ')
  // By default DuckDB reads "" as null, guesses types and, by the name, the compression, and takes sixteen times the
  // longest line for a buffer.
  return `read_csv(${file}, compression = ${literal(source.format.compression)}, header = true, auto_detect = false, columns = {${types}}, delim = ',', quote = '"', escape = '"', new_line = '\\n', nullstr = '', allow_quoted_nulls = false, max_line_size = ${MAX_LINE_BYTES}, buffer_size = ${MAX_LINE_BYTES}, parallel = false, ${common})`
}

/** A column of a shard, cast to the type of the table. */
function typedValue({ name, type }: ColumnSpec, format: Format): string {
  const column = `s.${identifier(name)}`
  if (format.kind === 'parquet') return type === 'timestamp' ? `${column}::TIMESTAMPTZ` : column
  switch (type) {
    case 'text':
      // The rows are what the service sent.
      return format.escapeFormulas ? `regexp_replace(${column}, '^''(''*[-=+@\\t\\r])', '\\1')` : column
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

export function columnList(table: TableSpec): string {
  return table.columns.map(({ name }) => identifier(name)).join(', ')
}
