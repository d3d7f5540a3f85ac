import { bigquery } from './bigquery.ts'
import { clickhouse } from './clickhouse.ts'
import { dbt } from './dbt.ts'
import type { Dialect } from './dialect.ts'
import { duckdb } from './duckdb.ts'
import { athena, spark, trino } from './hive.ts'
import { postgres } from './postgres.ts'
import { redshift } from './redshift.ts'
import { snowflake } from './snowflake.ts'

/** Every dialect by its name. A new one is a file here and an entry. */
export const DIALECTS = {
  duckdb,
  postgres,
  snowflake,
  bigquery,
  redshift,
  clickhouse,
  spark,
  trino,
  athena,
  dbt,
} as const satisfies Readonly<Record<string, Dialect>>

export type DialectName = keyof typeof DIALECTS
export const DIALECT_NAMES = Object.keys(DIALECTS) as DialectName[]
