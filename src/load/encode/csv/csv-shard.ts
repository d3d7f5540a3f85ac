import { gzipSync } from 'node:zlib'
import type { CsvFormat } from '../../../core/index.ts'
import type { RecordBatch } from '../../../rows/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { EncodeSettings, ShardEncoder } from '../encoder.ts'
import { totalRows } from '../record-batch-column.ts'
import { writeTextField } from './fields.ts'

/** With gzip, the header and every row group are gzip members of their own, which readers concatenate. */
export function csvShard(
  { columns }: EncodeSettings,
  { compression }: CsvFormat,
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
      if (rows === 0) return { bytes: new Uint8Array(), rows, chunks: [] }
      return { bytes: stored(lines(recordBatches)), rows, chunks: [] }
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
