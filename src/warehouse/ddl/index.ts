import { type Dialect, overParquet, type SyncDialect } from './dialect.ts'
import { bigquery, bigquerySync } from './engines/bigquery.ts'
import { clickhouse, clickhouseSync } from './engines/clickhouse.ts'
import { databricks, databricksSync } from './engines/databricks.ts'
import { dbt } from './engines/dbt.ts'
import { duckdb, duckdbSync } from './engines/duckdb.ts'
import { athena, spark, trino } from './engines/hive.ts'
import { postgres } from './engines/postgres.ts'
import { redshift, redshiftSync } from './engines/redshift.ts'
import { snowflake, snowflakeSync } from './engines/snowflake.ts'

/** Every dialect by its name. A new one is a file here and an entry. */
export const DIALECTS = {
  duckdb,
  postgres,
  snowflake,
  bigquery,
  redshift,
  clickhouse,
  databricks: overParquet('Databricks', databricks),
  spark: overParquet('Spark', spark),
  trino: overParquet('Trino', trino),
  athena: overParquet('Athena', athena),
  dbt,
} as const satisfies Readonly<Record<string, Dialect>>

/** The dialects whose tables can follow a data set. PostgreSQL is loaded by `load`, the others mount the files. */
export const SYNCS: Partial<Readonly<Record<DialectName, SyncDialect>>> = {
  duckdb: duckdbSync,
  snowflake: snowflakeSync,
  bigquery: bigquerySync,
  redshift: redshiftSync,
  clickhouse: clickhouseSync,
  databricks: overParquet('Databricks', databricksSync),
}

export type DialectName = keyof typeof DIALECTS
export const DIALECT_NAMES = Object.keys(DIALECTS) as DialectName[]
