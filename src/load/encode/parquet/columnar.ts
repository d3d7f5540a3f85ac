import type { Format, RecordBatch } from '../../../core/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { EncodePlan, ShardEncoder } from '../encoder.ts'
import { totalRows } from '../record-batch-column.ts'
import { bloomFilter } from './bloom-filter.ts'
import { writeColumnChunk } from './column-chunk.ts'
import { codec as codecOf } from './compress.ts'
import { type ColumnChunkMeta, MAGIC, parquetFooter } from './footer.ts'
import { leafOf } from './leaf.ts'
import { freeScratch } from './values/scratch.ts'

/** More than a row group of usual rows comes to under snappy. */
const USUAL_BYTES = 4 << 20

/**
 * Parquet straight from columns: no object per value.
 * Numbers are deltas, repeated texts a dictionary, other texts lengths and one run of bytes.
 */
export function parquetColumnar(
  plan: EncodePlan,
  format: Extract<Format, { kind: 'parquet' }>,
): ShardEncoder {
  const codec = codecOf(format.compression)
  const { columns, createdBy, fileMetadata } = plan
  // What is not used of it takes no memory; what it grows out of would wait to be collected.
  const out = new ByteBuffer(USUAL_BYTES)

  const encodeRowGroup = (recordBatches: readonly RecordBatch[]): ColumnChunkMeta[] => {
    const filters = new Map<number, Uint8Array>()
    const metas = columns.map((column, i) => {
      freeScratch()
      const leaf = leafOf(column, recordBatches, format.encodings)
      const { distinct } = leaf.values
      if (distinct !== null && format.bloomFilters.includes(column.name))
        filters.set(i, bloomFilter(distinct))
      return writeColumnChunk(out, leaf, codec)
    })
    // Behind all columns, where a reader that wants none of them need not step over them.
    for (const [column, filter] of filters) {
      const offset = out.length
      out.append(filter)
      metas[column]!.bloom = { offset, length: filter.length }
    }
    return metas
  }

  return {
    header: () => new Uint8Array(Buffer.from(MAGIC)),
    encode: async (recordBatches) => {
      const rows = totalRows(recordBatches)
      out.length = 0
      const meta = rows === 0 ? [] : encodeRowGroup(recordBatches)
      return { bytes: out.share(), rows, meta }
    },
    footer: async (rowGroups) =>
      parquetFooter(
        { columns, codec: codec.name, timestampUnit: 'MICROS', createdBy, fileMetadata },
        rowGroups,
      ),
  }
}
