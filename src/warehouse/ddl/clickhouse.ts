import { type ColumnSpec, type ColumnType, ExportError } from '../../core/index.ts'
import { literal } from '../table/table.ts'
import {
  BUCKET,
  backslashed,
  type DdlInput,
  type Dialect,
  backtickedEscaped as quoted,
  shardGlob,
} from './dialect.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'Int64',
  text: 'String',
  boolean: 'Bool',
  timestamp: "DateTime64(6, 'UTC')",
  list: 'Array(Nullable(String))',
}

/** Source: https://clickhouse.com/docs/sql-reference/table-functions/file and …/interfaces/formats/Parquet */
export const clickhouse: Dialect = (input) => {
  const { table, columns, format } = input
  const lines = columns.map(
    (column) => `  ${quoted(column.name)} ${typeOf(column)} COMMENT ${backslashed(column.meaning)}`,
  )
  const order = ['query_type', 'query_value', 'imported_at', 'id'].filter((name) =>
    columns.some((column) => column.name === name && !column.nullable),
  )
  const source = sourceOf(input)
  const names = columns.map(({ name }) => quoted(name)).join(', ')
  const structure = columns
    .map(({ name, type, nullable }) => `${quoted(name)} ${fieldType(type, nullable)}`)
    .join(', ')
  const terms = columns.map(({ name, type }) =>
    type === 'list' ? `JSONExtract(ifNull(${quoted(name)}, '[]'), 'Array(Nullable(String))')` : quoted(name),
  )
  const select =
    format.kind === 'parquet'
      ? `SELECT ${names}\nFROM ${source}, 'Parquet')`
      : `SELECT ${terms.join(', ')}\nFROM ${source}, 'CSVWithNames', ${backslashed(structure)})
SETTINGS format_csv_null_representation = '', input_format_csv_empty_as_default = 0, date_time_input_format = 'best_effort',
  -- Otherwise blanks and tabs around a value would go, and a quote at its beginning.
  input_format_csv_trim_whitespaces = 0, format_csv_allow_single_quotes = 0`
  return `-- ClickHouse: times before 1900 and after 2299 do not fit DateTime64
CREATE TABLE ${quoted(table)} (
${lines.join(',\n')}
)
ENGINE = MergeTree
ORDER BY ${order.length === 0 ? 'tuple()' : `(${order.map(quoted).join(', ')})`};

${noteOn(input)}
INSERT INTO ${quoted(table)} (${names})
${select};
`
}

/** The table function that reads the files, up to their format. */
function sourceOf(input: DdlInput): string {
  if (/[{}*?]/.test(input.path)) throw isPattern(input.path)
  // There is a function for Azure, which needs account and key first.
  const glob = shardGlob(input.path.startsWith('az://') ? { ...input, path: BUCKET } : input)
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.*)$/.exec(glob) ?? []
  return bucket === undefined
    ? `file(${literal(glob)}`
    : `s3(${literal(`https://${bucket}.s3.amazonaws.com/${key}`)}`
}

function isPattern(path: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'ClickHouse reads {, }, * and ? of a path as a pattern, and has no way to write them otherwise',
    where: path,
    next: 'Copy or move the data set to a path without them.',
  })
}

function noteOn({ path }: DdlInput): string {
  return /^(?:s3|az):/.test(path)
    ? '-- Key and secret may follow the address; other stores than AWS have other addresses.'
    : "-- The file function reads below the server's user_files_path; s3(…) takes the same format."
}

/** Arrays cannot be null there. */
function typeOf({ type, nullable }: ColumnSpec): string {
  return nullable && type !== 'list' ? `Nullable(${TYPES[type]})` : TYPES[type]
}

function fieldType(type: ColumnType, nullable: boolean): string {
  const plain = type === 'list' ? 'String' : TYPES[type]
  return nullable ? `Nullable(${plain})` : plain
}
