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

/** More than a row group of usual rows takes under snappy. */
const USUAL_BYTES = 4 << 20

/**
 * Parquet straight from columns, without an object per value. Numbers are encoded as deltas, repeated strings as a
 * dictionary, other strings as lengths and concatenated bytes.
 */
export function parquetColumnar(
  plan: EncodePlan,
  format: Extract<Format, { kind: 'parquet' }>,
): ShardEncoder {
  const codec = codecOf(format.compression)
  const { columns, createdBy, fileMetadata } = plan
  // The unused part takes no memory. A smaller buffer would grow, and the old one would wait for garbage collection.
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
    // The filters follow all columns, so that readers that do not use them need not skip them.
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
