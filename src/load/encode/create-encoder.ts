import type { Format } from '../../core/index.ts'
import { csvColumnar } from './csv/columnar.ts'
import { csvStringify } from './csv/csv-stringify.ts'
import type { EncodePlan, ShardEncoder } from './encoder.ts'
import { parquetColumnar } from './parquet/columnar.ts'
import { parquetjsLite } from './parquet/parquetjs-lite.ts'

type EngineOf<Kind extends Format['kind']> = (
  plan: EncodePlan,
  format: Extract<Format, { kind: Kind }>,
) => ShardEncoder

const PARQUET_ENGINES: Record<Extract<Format, { kind: 'parquet' }>['engine'], EngineOf<'parquet'>> = {
  columnar: parquetColumnar,
  'parquetjs-lite': parquetjsLite,
}

const CSV_ENGINES: Record<Extract<Format, { kind: 'csv' }>['engine'], EngineOf<'csv'>> = {
  columnar: csvColumnar,
  'csv-stringify': csvStringify,
}

/** @throws ExportError `config` when the engine, or this Node.js, cannot write the format */
export function createEncoder(plan: EncodePlan): ShardEncoder {
  const { format } = plan
  switch (format.kind) {
    case 'parquet':
      return PARQUET_ENGINES[format.engine](plan, format)
    case 'csv':
      return CSV_ENGINES[format.engine](plan, format)
  }
}

/**
 * Rows that are worth encoding together. DuckDB, Spark and Trino work well with Parquet row groups of about a
 * hundred thousand; lines of CSV gain nothing by waiting for each other.
 */
export function rowGroupRows(format: Format): number {
  return format.kind === 'parquet' ? 100_000 : 10_000
}

/** How the names of shards end. */
export function shardExtension(format: Format): string {
  switch (format.kind) {
    case 'parquet':
      return '.parquet'
    case 'csv':
      return format.compression === 'gzip' ? '.csv.gz' : '.csv'
  }
}
