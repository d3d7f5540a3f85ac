import type { TableSettings } from '../../core/index.ts'
import type { Dialect } from './dialect.ts'
import { bigquery } from './engines/bigquery.ts'
import { clickhouse } from './engines/clickhouse.ts'
import { databricks } from './engines/databricks.ts'
import { duckdb } from './engines/duckdb.ts'
import { athena, spark, trino } from './engines/hive.ts'
import { dbt, postgres } from './engines/loaded.ts'
import { redshift } from './engines/redshift.ts'
import { snowflake } from './engines/snowflake.ts'

const ENGINES = {
  duckdb,
  postgres,
  snowflake,
  bigquery,
  redshift,
  clickhouse,
  databricks,
  spark,
  trino,
  athena,
  dbt,
} as const satisfies Readonly<Record<string, Dialect>>

export type DialectName = keyof typeof ENGINES
/** Every dialect by its name. A new one is a file here and an entry. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = ENGINES
export const DIALECT_NAMES = Object.keys(DIALECTS) as DialectName[]

/** How the engine reads the tables over the shards. */
export function tableMounts(
  dialect: DialectName,
  table: string,
  { formats, root }: TableSettings,
): readonly string[] {
  const which = 'N: the number in _iceberg/metadata/version-hint.text'
  const at = { root, iceberg: `${root}/_iceberg`, version: 'metadata/v<N>.metadata.json', which }
  return formats.flatMap((format) => DIALECTS[dialect].mounts?.[format]?.(at, `${table}_${format}`) ?? [])
}
