import type { ColumnType } from '../../../rows/index.ts'
import { identifier, literal } from '../../table/table.ts'
import { backslashed, backticked, bucketOf, type Dialect, hiveColumns } from '../dialect.ts'

// Engines whose tables are folders of a Hive catalog.

const ATHENA_TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'bigint',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'timestamp',
  list: 'array<string>',
}

/** Source: https://docs.aws.amazon.com/athena/latest/ug/create-table.html */
export const athena: Dialect = (input) => {
  const { table, columns, resource } = input
  const hive = hiveColumns(input)
  const lines = columns.map(
    ({ name, type, meaning }) =>
      `  ${backticked(name)} ${ATHENA_TYPES[type]} COMMENT ${backslashed(meaning)}`,
  )
  const partitioned =
    hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map((key) => `${backticked(key)} string`).join(', ')})`
  return `-- Amazon Athena
CREATE EXTERNAL TABLE ${backticked(table)} (
${lines.join(',\n')}
)${partitioned}
STORED AS PARQUET
LOCATION ${backslashed(`${bucketOf(input)}/${resource}/`)};
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

/** Source: https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-create-table-datasource.html */
export const spark: Dialect = (input) => {
  const { table, columns, path, resource } = input
  const hive = hiveColumns(input)
  const lines = [
    ...columns.map(
      ({ name, type, meaning }) =>
        `  ${backticked(name)} ${SPARK_TYPES[type]} COMMENT ${backslashed(meaning)}`,
    ),
    ...hive.map((key) => `  ${backticked(key)} STRING COMMENT ${backslashed('from the folder')}`),
  ]
  const partitioned = hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map(backticked).join(', ')})`
  return `-- Spark SQL
CREATE TABLE ${backticked(table)} (
${lines.join(',\n')}
)
USING PARQUET${partitioned}
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

/** Source: https://trino.io/docs/current/connector/hive.html */
export const trino: Dialect = (input) => {
  const { table, columns, resource } = input
  const hive = hiveColumns(input)
  const lines = [
    ...columns.map(
      ({ name, type, meaning }) => `  ${identifier(name)} ${TRINO_TYPES[type]} COMMENT ${literal(meaning)}`,
    ),
    ...hive.map((key) => `  ${identifier(key)} VARCHAR`),
  ]
  const properties = [
    `external_location = ${literal(`${bucketOf(input)}/${resource}`)}`,
    "format = 'PARQUET'",
    ...(hive.length === 0 ? [] : [`partitioned_by = ARRAY[${hive.map(literal).join(', ')}]`]),
  ]
  const sync =
    hive.length === 0
      ? ''
      : `\n-- Finds the folders; again after every export.\nCALL hive.system.sync_partition_metadata('default', ${literal(table)}, 'FULL');\n`
  // The connector reads and makes timestamps in milliseconds otherwise, and refuses a column of microseconds.
  return `-- Trino, Hive connector: replace the catalog hive and the schema default where they go by other names
SET SESSION hive.timestamp_precision = 'MICROSECONDS';

CREATE TABLE hive.default.${identifier(table)} (
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
