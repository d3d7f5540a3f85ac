import { identifier, literal } from '../../table/table.ts'
import {
  backslashed,
  backticked,
  bucketOf,
  commentLines,
  type DdlInput,
  type Dialect,
  hiveColumns,
  overParquet,
  type Syntax,
} from '../dialect.ts'

// Engines whose tables are folders of a Hive catalog.

const ATHENA_SYNTAX: Syntax = {
  types: {
    int64: 'bigint',
    text: 'string',
    boolean: 'boolean',
    timestamp: 'timestamp',
    list: 'array<string>',
  },
  quoted: backticked,
  text: backslashed,
}

/**
 * Source: https://docs.aws.amazon.com/athena/latest/ug/create-table.html and …/delta-lake-tables.html: Iceberg tables come
 * from Glue alone.
 */
export const athena: Dialect = {
  statements: overParquet('Athena', athenaStatements),
  mounts: {
    iceberg: ({ iceberg, version, which }, name) =>
      `-- The Iceberg table, through Glue. With PyIceberg, again after every run (after drop_table). ${which}
-- load_catalog("glue", type="glue").register_table("default.${name}", ${JSON.stringify(`${iceberg}/${version}`)})`,
    delta: ({ root }, name) => `-- The Delta table, always as of its current version
CREATE EXTERNAL TABLE ${backticked(name)}
LOCATION ${backslashed(`${root}/`)}
TBLPROPERTIES ('table_type' = 'DELTA');`,
  },
}

function athenaStatements(input: DdlInput): string {
  const { table, columns, resource } = input
  const hive = hiveColumns(input)
  const partitioned =
    hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map((key) => `${backticked(key)} string`).join(', ')})`
  return `-- Amazon Athena
CREATE EXTERNAL TABLE ${backticked(table)} (
${commentLines(columns, ATHENA_SYNTAX)}
)${partitioned}
STORED AS PARQUET
LOCATION ${backslashed(`${bucketOf(input)}/${resource}/`)};
${repairFolders(backticked(table), hive)}`
}

/** As Databricks has them. */
export const SPARK_SYNTAX: Syntax = {
  types: {
    int64: 'BIGINT',
    text: 'STRING',
    boolean: 'BOOLEAN',
    timestamp: 'TIMESTAMP',
    list: 'ARRAY<STRING>',
  },
  quoted: backticked,
  text: backslashed,
}

/**
 * Source: https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-create-table-datasource.html,
 * https://iceberg.apache.org/docs/latest/spark-procedures/#register_table and Databricks' CREATE TABLE
 */
export const spark: Dialect = {
  statements: overParquet('Spark', sparkStatements),
  mounts: {
    iceberg: ({ iceberg, version, which }, name) =>
      `-- The Iceberg table, in a catalog of Spark; for a later snapshot drop it and register it again. ${which}
-- Without a catalog: spark.read.format("iceberg").load(${JSON.stringify(iceberg)})
-- PyIceberg: StaticTable.from_metadata(${JSON.stringify(iceberg)})
CALL spark_catalog.system.register_table(
  table => ${backslashed(`default.${backticked(name)}`)},
  metadata_file => ${backslashed(`${iceberg}/${version}`)}
);`,
    delta: ({ root }, name) =>
      `-- The Delta table, in Spark with Delta Lake and in Databricks, always as of its current version. Never VACUUM it.
CREATE TABLE ${backticked(name)}
USING DELTA
LOCATION ${backslashed(root)};`,
  },
}

function sparkStatements(input: DdlInput): string {
  const { table, path, resource } = input
  const hive = hiveColumns(input)
  const keys = hive.map(
    (name) => ({ name, type: 'text', nullable: true, meaning: 'from the folder' }) as const,
  )
  const partitioned = hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map(backticked).join(', ')})`
  return `-- Spark SQL
CREATE TABLE ${backticked(table)} (
${commentLines([...input.columns, ...keys], SPARK_SYNTAX)}
)
USING PARQUET${partitioned}
LOCATION ${backslashed(`${path}/${resource}`)};
${repairFolders(backticked(table), hive)}`
}

const TRINO_SYNTAX: Syntax = {
  types: {
    int64: 'BIGINT',
    text: 'VARCHAR',
    boolean: 'BOOLEAN',
    timestamp: 'TIMESTAMP(6)',
    list: 'ARRAY(VARCHAR)',
  },
  quoted: identifier,
  text: literal,
}

/** Source: https://trino.io/docs/current/connector/hive.html, …/iceberg.html#register-table and …/delta-lake.html */
export const trino: Dialect = {
  statements: overParquet('Trino', trinoStatements),
  mounts: {
    iceberg: ({ iceberg, which }, name) =>
      `-- The Iceberg table; for a later snapshot unregister it and register it again. ${which}
CALL iceberg.system.register_table(
  schema_name => 'default',
  table_name => ${literal(name)},
  table_location => ${literal(iceberg)},
  metadata_file_name => 'v<N>.metadata.json'
);`,
    delta: ({ root }, name) => `-- The Delta table, always as of its current version
CALL delta.system.register_table(
  schema_name => 'default',
  table_name => ${literal(name)},
  table_location => ${literal(root)}
);`,
  },
}

function trinoStatements(input: DdlInput): string {
  const { table, columns, resource } = input
  const hive = hiveColumns(input)
  const lines = [commentLines(columns, TRINO_SYNTAX), ...hive.map((key) => `  ${identifier(key)} VARCHAR`)]
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
