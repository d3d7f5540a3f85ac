import { gzipSync } from 'node:zlib'
import type { Format, RecordBatch } from '../../../core/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { EncodePlan, ShardEncoder } from '../encoder.ts'
import { totalRows } from '../record-batch-column.ts'
import { writeTextField } from './field.ts'
import { countNuls } from './nuls.ts'

/**
 * A CSV shard around a way to write rows: a header row, then lines; nothing at the end. In gzip the
 * header and every row group are members of their own, which readers join.
 */
export function csvShard(
  { columns }: EncodePlan,
  { compression }: Extract<Format, { kind: 'csv' }>,
  lines: (recordBatches: readonly RecordBatch[]) => Uint8Array,
): ShardEncoder {
  const stored = (bytes: Uint8Array): Uint8Array => {
    // gzipSync may return a slice of a shared pool; a copy can be transferred.
    return compression === 'none' ? bytes : new Uint8Array(gzipSync(bytes, { level: 1 }))
  }
  return {
    header: () => stored(headerRow(columns.map(({ name }) => name))),
    encode: async (recordBatches) => {
      const rows = totalRows(recordBatches)
      if (rows === 0) return { bytes: new Uint8Array(), rows, meta: null }
      return {
        bytes: stored(lines(recordBatches)),
        rows,
        meta: null,
        replaced: countNuls(recordBatches, columns),
      }
    },
    footer: async () => new Uint8Array(),
  }
}

function headerRow(names: readonly string[]): Uint8Array {
  const out = new ByteBuffer()
  for (const name of names) {
    const text = Buffer.from(name)
    if (out.length > 0) out.append(Buffer.from(','))
    writeTextField(out, text, 0, text.length, false)
  }
  out.append(Buffer.from('\n'))
  return new Uint8Array(out.view())
}
