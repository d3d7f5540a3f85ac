import type { ColumnType } from '../../rows/index.ts'
import { identifier, literal } from '../table/table.ts'
import { backslashed, backticked, bucketOf, type Dialect, hiveColumns } from './dialect.ts'

// Engines whose tables are folders of a Hive catalog.

const ATHENA_TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'bigint',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'timestamp',
  list: 'array<string>',
}

/**
 * Source: https://docs.aws.amazon.com/athena/latest/ug/create-table.html and …/csv-serde.html: OpenCSVSerDe knows only
 * strings.
 */
export const athena: Dialect = (input) => {
  const { table, columns, format, resource } = input
  const isCsv = format.kind === 'csv'
  const hive = hiveColumns(input)
  const lines = columns.map(
    ({ name, type, meaning }) =>
      `  ${backticked(name)} ${isCsv ? 'string' : ATHENA_TYPES[type]} COMMENT ${literal(meaning)}`,
  )
  const partitioned =
    hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map((key) => `${backticked(key)} string`).join(', ')})`
  const storage = isCsv
    ? `ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'
WITH SERDEPROPERTIES ('separatorChar' = ',', 'quoteChar' = '"', 'escapeChar' = '"')
STORED AS TEXTFILE`
    : 'STORED AS PARQUET'
  const properties = isCsv ? `\nTBLPROPERTIES ('skip.header.line.count' = '1')` : ''
  return `-- Amazon Athena${isCsv ? '\n-- Over CSV every column is a string, "" and null look alike, a value with a line break is torn, and blanks before a quote can go: Parquet has none of this.' : ''}
CREATE EXTERNAL TABLE ${backticked(table)} (
${lines.join(',\n')}
)${partitioned}
${storage}
LOCATION ${literal(`${bucketOf(input)}/${resource}/`)}${properties};
${repairFolders(backticked(table), hive)}`
}

/** As Databricks has them. */
export const SPARK_TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'BIGINT',
  text: 'STRING',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP',
  list: 'ARRAY<STRING>',
}

/**
 * Source: https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-create-table-datasource.html and
 * …/sql-data-sources-csv.html
 */
export const spark: Dialect = (input) => {
  const { table, columns, format, path, resource } = input
  // CSV has no lists: there they stay JSON text, for from_json.
  const typeOf = (type: ColumnType): string =>
    type === 'list' && format.kind === 'csv' ? 'STRING' : SPARK_TYPES[type]
  const hive = hiveColumns(input)
  const lines = [
    ...columns.map(
      ({ name, type, meaning }) => `  ${backticked(name)} ${typeOf(type)} COMMENT ${backslashed(meaning)}`,
    ),
    ...hive.map((key) => `  ${backticked(key)} STRING COMMENT ${backslashed('from the folder')}`),
  ]
  const options =
    format.kind === 'parquet'
      ? ''
      : `\nOPTIONS (
  header 'true', multiLine 'true',
  -- Doubled quotes, as RFC 4180 has it; Spark expects a backslash otherwise.
  quote '"', escape '"',
  -- An empty field is null and "" the empty string, as it is.
  encoding 'UTF-8'
)`
  const partitioned = hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map(backticked).join(', ')})`
  return `-- Spark SQL
CREATE TABLE ${backticked(table)} (
${lines.join(',\n')}
)
USING ${format.kind.toUpperCase()}${options}${partitioned}
LOCATION ${backslashed(`${path}/${resource}`)};
${repairFolders(backticked(table), hive)}`
}

const TRINO_TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'BIGINT',
  text: 'VARCHAR',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP(6)',
  list: 'ARRAY(VARCHAR)',
}

/** Source: https://trino.io/docs/current/connector/hive.html: tables over CSV know only VARCHAR. */
export const trino: Dialect = (input) => {
  const { table, columns, format, resource } = input
  const isCsv = format.kind === 'csv'
  const hive = hiveColumns(input)
  const lines = [
    ...columns.map(
      ({ name, type, meaning }) =>
        `  ${identifier(name)} ${isCsv ? 'VARCHAR' : TRINO_TYPES[type]} COMMENT ${literal(meaning)}`,
    ),
    ...hive.map((key) => `  ${identifier(key)} VARCHAR`),
  ]
  const properties = [
    `external_location = ${literal(`${bucketOf(input)}/${resource}`)}`,
    `format = ${literal(format.kind.toUpperCase())}`,
    ...(isCsv
      ? ['skip_header_line_count = 1', `csv_separator = ','`, `csv_quote = '"'`, `csv_escape = '"'`]
      : []),
    ...(hive.length === 0 ? [] : [`partitioned_by = ARRAY[${hive.map(literal).join(', ')}]`]),
  ]
  // The connector reads and makes timestamps in milliseconds otherwise, and refuses a column of microseconds.
  const precision = isCsv ? '' : `SET SESSION hive.timestamp_precision = 'MICROSECONDS';\n\n`
  const sync =
    hive.length === 0
      ? ''
      : `\n-- Finds the folders; again after every export.\nCALL hive.system.sync_partition_metadata('default', ${literal(table)}, 'FULL');\n`
  return `-- Trino, Hive connector: replace the catalog hive and the schema default where they go by other names${isCsv ? '\n-- Over CSV every column is VARCHAR, "" and null look alike, and a value with a line break is torn: Parquet has none of this.' : ''}
${precision}CREATE TABLE hive.default.${identifier(table)} (
${lines.join(',\n')}
)
WITH (
${properties.map((property) => `  ${property}`).join(',\n')}
);
${sync}`
}

/** Makes Hive's catalog find new folders; empty if there are none. @param table quoted */
function repairFolders(table: string, hive: readonly string[]): string {
  if (hive.length === 0) return ''
  return `\n-- Finds the folders; again after every export.\nMSCK REPAIR TABLE ${table};\n`
}
