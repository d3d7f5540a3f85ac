import type { ColumnType } from '../../core/index.ts'
import { BUCKET, backslashed, type Dialect, hiveColumns, backtickedEscaped as quoted } from './dialect.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'INT64',
  text: 'STRING',
  boolean: 'BOOL',
  timestamp: 'TIMESTAMP',
  list: 'ARRAY<STRING>',
}

/**
 * Source: https://cloud.google.com/bigquery/docs/reference/standard-sql/load-statements and …/data-definition-language
 */
export const bigquery: Dialect = (input) => {
  const { table, columns, format, path, resource, extension } = input
  // CSV has no lists: there they stay JSON text.
  const typeOf = (type: ColumnType): string =>
    type === 'list' && format.kind === 'csv' ? 'STRING' : TYPES[type]
  const lines = columns.map(({ name, type, nullable, meaning }) => {
    // An array is never null in BigQuery.
    const notNull = nullable || type === 'list' ? '' : ' NOT NULL'
    return `  ${quoted(name)} ${typeOf(type)}${notNull} OPTIONS (description = ${backslashed(meaning)})`
  })
  const { root, connection } = sourceOf(path)
  const uris = `uris = [${backslashed(`${root}/${resource}/*${extension}`)}]`
  const options =
    format.kind === 'parquet'
      ? [`format = 'PARQUET'`, 'enable_list_inference = true', uris]
      : [
          `format = 'CSV'`,
          'skip_leading_rows = 1',
          '-- Values may hold line breaks.',
          'allow_quoted_newlines = true',
          '-- Values may hold tabs and other control characters.',
          'preserve_ascii_control_characters = true',
          `encoding = 'UTF-8'`,
          uris,
        ]
  const into = `${quoted('YOUR_DATASET')}.${quoted(table)}`
  const hive = hiveColumns(input)
  const mount =
    hive.length === 0
      ? ''
      : `WITH PARTITION COLUMNS (${hive.map((key) => `${quoted(key)} STRING`).join(', ')})
`
  const list = (entries: readonly string[]): string =>
    entries
      .map((entry, i) => `  ${entry}${entry.startsWith('--') || i === entries.length - 1 ? '' : ','}`)
      .join('\n')
  const note =
    format.kind === 'csv'
      ? '\n-- In CSV it takes a text that is null for "": Parquet has no such trouble.'
      : ''
  return `-- BigQuery: replace YOUR_DATASET${note}
CREATE TABLE ${into} (
${lines.join(',\n')}
)${columns.some(({ name }) => name === 'imported_at') ? `\nPARTITION BY TIMESTAMP_TRUNC(${quoted('imported_at')}, MONTH)` : ''};

LOAD DATA INTO ${into}
FROM FILES (
${list(options)}
)${connection === null ? '' : `\n${connection}`};

-- Or the files as they stand, as an external table:
CREATE OR REPLACE EXTERNAL TABLE ${quoted('YOUR_DATASET')}.${quoted(`${table}_files`)}
${mount}${connection === null ? '' : `${connection}\n`}OPTIONS (
${list([...options, ...(hive.length === 0 ? [] : [`hive_partition_uri_prefix = ${backslashed(`${root}/${resource}`)}`])])}
);
`
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
