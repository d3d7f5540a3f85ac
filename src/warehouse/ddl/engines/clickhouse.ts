import { ExportError } from '../../../core/index.ts'
import type { ColumnSpec, ColumnType } from '../../../rows/index.ts'
import {
  BY_HAND,
  backslashed,
  bucketOf,
  type DdlInput,
  type Dialect,
  hiveColumns,
  namesOf,
  backtickedEscaped as quoted,
  type SyncInput,
  type Syntax,
  shardGlob,
  tableColumns,
} from '../dialect.ts'
import { addColumns, ledgerTable, listOf, shardPattern, syncScript } from '../sync.ts'

const TYPES: Syntax['types'] = {
  int64: 'Int64',
  text: 'String',
  boolean: 'Bool',
  timestamp: "DateTime64(6, 'UTC')",
  list: 'Array(Nullable(String))',
}
const SYNTAX: Syntax = { types: TYPES, quoted, text: backslashed }

/**
 * Source: https://clickhouse.com/docs/interfaces/formats/Parquet and …/sql-reference/table-functions/file, …/iceberg and
 * …/deltalake
 */
export const clickhouse: Dialect = {
  statements,
  sync,
  mounts: {
    iceberg: ({ iceberg }, name) => `-- The Iceberg table, always as of its current snapshot
CREATE VIEW ${quoted(name)} AS
SELECT * FROM ${tableFunction('iceberg', iceberg)};`,
    delta: ({ root }, name) => `-- The Delta table, always as of its current version
CREATE VIEW ${quoted(name)} AS
SELECT * FROM ${tableFunction('deltaLake', root)};`,
  },
}

function statements(input: DdlInput): string {
  const { terms, source, settings } = filesOf(input)
  return `-- ClickHouse: times before 1900 and after 2299 do not fit DateTime64
${tablesOf(input).join(';\n\n')};

${BY_HAND}
${noteOn(input)}
INSERT INTO ${quoted(input.table)} (${namesOf(input, quoted)})
SELECT ${terms}
FROM ${source}${settings};
`
}

function sync(input: SyncInput): string {
  // `**` gives paths with two slashes.
  const files = `${input.resource}/${'*/'.repeat(hiveColumns(input).length)}*${input.extension}`
  const { terms, source, settings } = filesOf(input, files)
  const [name, list] = [input.table, listOf(input.table)].map(quoted) as [string, string]
  const match = (text: string, pattern: string): string => `extract(${text}, ${backslashed(pattern)})`
  const shard = match('_path', shardPattern(input))
  return syncScript(input, {
    ...SYNTAX,
    tables: [
      // The same rows may come again, after they were deleted.
      'SET insert_deduplicate = 0',
      // Of statements that ask other tables what to delete. They are done when they return.
      'SET allow_nondeterministic_mutations = 1',
      'SET mutations_sync = 2',
      ...tablesOf(input),
      ...addColumns(input, name, SYNTAX, typeOf),
    ],
    listFrom,
    match,
    lines: `SELECT line FROM ${sourceOf(input, '_manifest.json')}, 'LineAsString')`,
    makeList: (select) => [`CREATE OR REPLACE TABLE ${list} ENGINE = MergeTree ORDER BY shard AS\n${select}`],
    deleteFrom: (table, where) => `ALTER TABLE ${table} DELETE\nWHERE ${where}`,
    copy: [
      `${noteOn(input)}
INSERT INTO ${name} (${namesOf(input, quoted)}, spillway_data_set, spillway_shard)
SELECT ${terms}, (SELECT max(data_set) FROM ${list}), ${shard}
FROM ${source}
WHERE ${shard} IN (SELECT shard FROM ${list} WHERE state = 'missing')${settings}`,
    ],
    now: 'now64(6)',
  })
}

function tablesOf({ table, columns }: DdlInput): readonly string[] {
  const lines = tableColumns(columns).map(
    (column) => `  ${quoted(column.name)} ${typeOf(column)} COMMENT ${backslashed(column.meaning)}`,
  )
  const order = ['query_type', 'query_value', 'imported_at', 'id'].filter((name) =>
    columns.some((column) => column.name === name && !column.nullable),
  )
  return [
    `CREATE TABLE IF NOT EXISTS ${quoted(table)} (
${lines.join(',\n')}
)
ENGINE = MergeTree
ORDER BY ${order.length === 0 ? 'tuple()' : `(${order.map(quoted).join(', ')})`}`,
    // Without `Nullable`, no column takes null.
    `${ledgerTable(SYNTAX).replaceAll(' NOT NULL', '')}\nENGINE = MergeTree\nORDER BY (data_set, table_name, shard)`,
  ]
}

function listFrom(json: string): string {
  return `JSONExtract(${json}, ${backslashed(TYPES.list)})`
}

/** The columns of the files, the table function that reads them, and settings that follow the query. */
function filesOf(
  input: DdlInput,
  files?: string,
): { readonly [part in 'terms' | 'source' | 'settings']: string } {
  const { columns, format } = input
  const source = sourceOf(input, files)
  const structure = columns
    .map(({ name, type, nullable }) => `${quoted(name)} ${fieldType(type, nullable)}`)
    .join(', ')
  const terms = columns.map(({ name, type }) =>
    type === 'list' ? listFrom(`ifNull(${quoted(name)}, '[]')`) : quoted(name),
  )
  if (format.kind === 'parquet') {
    // Without a structure the first file tells the columns.
    const types = columns.map((column) => `${quoted(column.name)} ${typeOf(column)}`).join(', ')
    const given = input.added.length === 0 ? '' : `, ${backslashed(types)}`
    return { terms: namesOf(input, quoted), source: `${source}, 'Parquet'${given})`, settings: '' }
  }
  return {
    terms: terms.join(', '),
    source: `${source}, 'CSVWithNames', ${backslashed(structure)})`,
    settings: `
SETTINGS format_csv_null_representation = '', input_format_csv_empty_as_default = 0, date_time_input_format = 'best_effort',
  -- Otherwise blanks and tabs around a value would go, and a quote at its beginning.
  input_format_csv_trim_whitespaces = 0, format_csv_allow_single_quotes = 0`,
  }
}

function tableFunction(kind: 'iceberg' | 'deltaLake', address: string): string {
  const [, bucket, key] = /^s3a?:\/\/([^/]+)\/(.*)$/.exec(address) ?? []
  if (bucket !== undefined) return `${kind}S3(${backslashed(`https://${bucket}.s3.amazonaws.com/${key}/`)})`
  if (address.startsWith('file://')) return `${kind}Local(${backslashed(address.slice('file://'.length))})`
  const [, container, account, path] = /^abfss?:\/\/([^@]+)@([^/]+)\/(.*)$/.exec(address) ?? []
  const [url, inside, below] =
    container === undefined
      ? ['https://YOUR-ACCOUNT.blob.core.windows.net', 'YOUR-CONTAINER', 'PREFIX/']
      : [`https://${account!.replace('.dfs.', '.blob.')}`, container, `${path}/`]
  return `${kind}Azure(${[url, inside, below, 'YOUR-ACCOUNT', 'YOUR-KEY'].map((each) => backslashed(each!)).join(', ')})`
}

/** The table function that reads the files, up to their format. */
function sourceOf(given: DdlInput, files?: string): string {
  if (/[{}*?]/.test(given.path))
    throw new ExportError({
      kind: 'config',
      what: 'ClickHouse reads {, }, * and ? of a path as a pattern, and has no way to write them otherwise',
      where: given.path,
      next: 'Copy or move the data set to a path without them.',
    })
  // There are functions for other stores, which need account and key first.
  const input = given.path.includes('://') ? { ...given, path: bucketOf(given) } : given
  const glob = files === undefined ? shardGlob(input) : `${input.path}/${files}`
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.*)$/.exec(glob) ?? []
  return bucket === undefined
    ? `file(${backslashed(glob)}`
    : `s3(${backslashed(`https://${bucket}.s3.amazonaws.com/${key}`)}`
}

function noteOn({ path }: DdlInput): string {
  return path.includes('://')
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
