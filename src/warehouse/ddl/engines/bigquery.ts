import type { ColumnType } from '../../../rows/index.ts'
import {
  BUCKET,
  BY_HAND,
  backslashed,
  type DdlInput,
  type Dialect,
  hiveColumns,
  namesOf,
  backtickedEscaped as quoted,
  type SyncInput,
  type Syntax,
  tableColumns,
} from '../dialect.ts'
import { addColumns, ledgerTable, listOf, shardPattern, syncScript } from '../sync.ts'

const SYNTAX: Syntax = {
  types: { int64: 'INT64', text: 'STRING', boolean: 'BOOL', timestamp: 'TIMESTAMP', list: 'ARRAY<STRING>' },
  quoted,
  text: backslashed,
}

/**
 * Source: https://cloud.google.com/bigquery/docs/reference/standard-sql/load-statements, …/data-definition-language,
 * https://cloud.google.com/bigquery/docs/iceberg-external-tables and …/create-delta-lake-table
 */
export const bigquery: Dialect = {
  statements,
  sync,
  mounts: {
    iceberg: ({ iceberg, version, which }, name) => `-- The Iceberg table; again after every run. ${which}
CREATE OR REPLACE EXTERNAL TABLE ${into(name)}
OPTIONS (
  format = 'ICEBERG',
  uris = [${backslashed(google(`${iceberg}/${version}`))}]
);`,
    delta: ({ root }, name) => `-- The Delta table, through a connection of BigQuery
CREATE OR REPLACE EXTERNAL TABLE ${into(name)}
WITH CONNECTION \`YOUR_REGION.YOUR_CONNECTION\`
OPTIONS (
  format = 'DELTA_LAKE',
  uris = [${backslashed(google(root))}]
);`,
  },
}

/** Google's tools know a bucket by another scheme. */
function google(address: string): string {
  return address.replace(/^s3:/, 'gs:')
}

function statements(input: DdlInput): string {
  const { table, format, path, resource } = input
  const { root, connection } = sourceOf(path)
  const options = optionsOf(input)
  const hive = hiveColumns(input)
  const mount =
    hive.length === 0
      ? ''
      : `WITH PARTITION COLUMNS (${hive.map((key) => `${quoted(key)} STRING`).join(', ')})
`
  const note =
    format.kind === 'csv'
      ? '\n-- In CSV it takes a text that is null for "": Parquet has no such trouble.'
      : ''
  return `-- BigQuery: replace YOUR_DATASET${note}
${tablesOf(input).join(';\n\n')};

${BY_HAND}
LOAD DATA INTO ${into(table)}
FROM FILES (
${optionList([...options, ...(format.kind === 'csv' ? SHORT_ROWS : [])])}
)${connection === null ? '' : `\n${connection}`};

-- Or the files as they stand, as an external table:
CREATE OR REPLACE EXTERNAL TABLE ${into(`${table}_files`)}
${mount}${connection === null ? '' : `${connection}\n`}OPTIONS (
${optionList([...options, ...(hive.length === 0 ? [] : [`hive_partition_uri_prefix = ${backslashed(`${root}/${resource}`)}`])])}
);
`
}

/** The table's own columns are not in the files. */
const SHORT_ROWS = [
  '-- The table has columns of its own after those of the files.',
  'allow_jagged_rows = true',
]

/** A script that fails in a transaction leaves nothing of it. The files are those of `WHERE _FILE_NAME IN …` alone. */
function sync(input: SyncInput): string {
  const { table, columns, path } = input
  const { root, connection } = sourceOf(path)
  const [files, lines, list] = [into(`${table}_files`), into(`${table}_lines`), quoted(listOf(table))]
  const match = (text: string, pattern: string): string => `REGEXP_EXTRACT(${text}, ${backslashed(pattern)})`
  const external = (name: string, schema: readonly string[], options: readonly string[]): string =>
    `CREATE OR REPLACE EXTERNAL TABLE ${name} (${schema.join(', ')})
${connection === null ? '' : `${connection}\n`}OPTIONS (\n${optionList(options)}\n)`
  const names = namesOf(input, quoted)
  return syncScript(input, {
    ...SYNTAX,
    tables: [
      ...tablesOf(input),
      ...addColumns(input, into(table), SYNTAX),
      external(
        files,
        columns.map(({ name, type }) => `${quoted(name)} ${typeOf(type, input)}`),
        optionsOf(input),
      ),
      external(
        lines,
        ['line STRING'],
        [
          `format = 'CSV'`,
          '-- Each line is one value.',
          `field_delimiter = '\\t'`,
          `quote = ''`,
          `encoding = 'UTF-8'`,
          `uris = [${backslashed(`${root}/_manifest.json`)}]`,
        ],
      ),
    ],
    listFrom: (json) => `JSON_VALUE_ARRAY(${json})`,
    into,
    match,
    lines: `SELECT line FROM ${lines}`,
    makeList: (select) => [`CREATE OR REPLACE TEMP TABLE ${list} AS\n${select}`],
    transaction: ['BEGIN TRANSACTION', 'COMMIT TRANSACTION'],
    copy: [
      `BEGIN
  DECLARE missing ARRAY<STRING> DEFAULT ARRAY(SELECT CONCAT(${backslashed(`${root}/`)}, shard) FROM ${list} WHERE state = 'missing');
  INSERT INTO ${into(table)} (${names}, spillway_data_set, spillway_shard)
  SELECT ${names}, (SELECT MAX(data_set) FROM ${list}), ${match('_FILE_NAME', shardPattern(input))}
  FROM ${files}
  WHERE _FILE_NAME IN UNNEST(missing);
END`,
    ],
  })
}

function into(name: string): string {
  return `${quoted('YOUR_DATASET')}.${quoted(name)}`
}

/** CSV has no lists: there they stay JSON text. */
function typeOf(type: ColumnType, { format }: DdlInput): string {
  return type === 'list' && format.kind === 'csv' ? 'STRING' : SYNTAX.types[type]
}

function tablesOf(input: DdlInput): readonly string[] {
  const { table, columns } = input
  const lines = tableColumns(columns).map(({ name, type, nullable, meaning }) => {
    // An array is never null in BigQuery.
    const notNull = nullable || type === 'list' ? '' : ' NOT NULL'
    return `  ${quoted(name)} ${typeOf(type, input)}${notNull} OPTIONS (description = ${backslashed(meaning)})`
  })
  const partitions = columns.some(({ name }) => name === 'imported_at')
    ? `\nPARTITION BY TIMESTAMP_TRUNC(${quoted('imported_at')}, MONTH)`
    : ''
  return [
    `CREATE TABLE IF NOT EXISTS ${into(table)} (\n${lines.join(',\n')}\n)${partitions}`,
    ledgerTable(SYNTAX, into),
  ]
}

/** How the files are read; comments among them. */
function optionsOf({ path, resource, extension, format }: DdlInput): readonly string[] {
  const uris = `uris = [${backslashed(`${sourceOf(path).root}/${resource}/*${extension}`)}]`
  if (format.kind === 'parquet') return [`format = 'PARQUET'`, 'enable_list_inference = true', uris]
  return [
    `format = 'CSV'`,
    'skip_leading_rows = 1',
    '-- Values may hold line breaks.',
    'allow_quoted_newlines = true',
    '-- Values may hold tabs and other control characters.',
    'preserve_ascii_control_characters = true',
    `encoding = 'UTF-8'`,
    uris,
  ]
}

function optionList(entries: readonly string[]): string {
  return entries
    .map((entry, i) => `  ${entry}${entry.startsWith('--') || i === entries.length - 1 ? '' : ','}`)
    .join('\n')
}

/** Where BigQuery finds the files: in other clouds through a connection. */
function sourceOf(path: string): { readonly root: string; readonly connection: string | null } {
  const [, container] = /^az:\/\/(.*)$/.exec(path) ?? []
  if (container !== undefined)
    return { root: `azure://YOUR-ACCOUNT.blob.core.windows.net/${container}`, connection: CONNECTION }
  if (path.startsWith('s3://')) return { root: path, connection: CONNECTION }
  return { root: BUCKET.replace('s3', 'gs'), connection: null }
}

const CONNECTION = `WITH CONNECTION ${quoted('YOUR-REGION.YOUR-CONNECTION')}`
