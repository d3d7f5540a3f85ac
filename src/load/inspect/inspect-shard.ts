import type { Format } from '../../core/index.ts'
import { inspectCsv } from './inspect-csv.ts'
import { inspectParquet } from './inspect-parquet.ts'
import type { InspectedShard, InspectOptions, ShardReader } from './inspector.ts'

/**
 * Reads a whole shard back, every value of every column, independently of how it was written.
 * Holds a column of a row group, or a line, in memory.
 * @throws ExportError `damaged` when the bytes are not what the format says; never names a value
 * @throws ExportError `config` when this Node.js cannot read the compression
 */
export function inspectShard(
  reader: ShardReader,
  format: Format,
  options: InspectOptions,
): Promise<InspectedShard> {
  switch (format.kind) {
    case 'parquet':
      return inspectParquet(reader, options)
    case 'csv':
      return inspectCsv(reader, format, options)
  }
}
