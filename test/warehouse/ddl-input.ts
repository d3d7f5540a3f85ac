import type { Format } from '../../src/core/index.ts'
import { allColumns } from '../../src/rows/index.ts'
import type { DdlInput } from '../../src/warehouse/index.ts'
import { snappyParquet } from '../load/shard-fixture.ts'

export const PARQUET: Format = snappyParquet
export const CSV: Format = { kind: 'csv', engine: 'columnar', compression: 'gzip', escapeFormulas: false }

/** A data set in Parquet, in folders by query and window, unless it is told otherwise. */
export function inputOf(over: Partial<DdlInput> = {}): DdlInput {
  const { resource = 'credentials', format = PARQUET } = over
  return {
    pipeline: 'acme',
    resource,
    table: resource,
    columns: allColumns(resource, []),
    added: [],
    format,
    path: '/data/acme',
    extension: format.kind === 'csv' ? '.csv.gz' : '.parquet',
    partitionBy: ['query', 'window'],
    ...over,
  }
}
