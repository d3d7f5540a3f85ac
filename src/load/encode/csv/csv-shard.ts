import { gzipSync } from 'node:zlib'
import type { CsvFormat } from '../../../core/index.ts'
import type { ColumnSpec, RecordBatch, TextVector } from '../../../rows/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { EncodeSettings, ShardEncoder } from '../encoder.ts'
import { eachEntry, type RecordBatchColumn, recordBatchColumn, totalRows } from '../record-batch-column.ts'
import { writeTextField } from './fields.ts'

/**
 * The encoder of a CSV shard, given a function that writes lines: a header row, then lines, and no footer. With gzip,
 * the header and every row group are gzip members of their own, which readers concatenate.
 */
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
      return {
        bytes: stored(lines(recordBatches)),
        rows,
        chunks: [],
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

/**
 * Counts the NULs in the strings and lists of some rows. They are not counted while strings are written: very few pages
 * have one, and searching for a byte is fast.
 */
function countNuls(recordBatches: readonly RecordBatch[], columns: readonly ColumnSpec[]): number {
  let nuls = 0
  for (const recordBatch of recordBatches) {
    for (const { name, type } of columns) {
      if (type === 'text') {
        const column = recordBatchColumn(recordBatch, name, 'text')
        nuls += nulsIn(column, column.values, (entry) => entry)
      } else if (type === 'list') {
        const column = recordBatchColumn(recordBatch, name, 'list')
        const { offsets, items } = column.values
        nuls += nulsIn(column, items, (entry) => offsets[entry]!)
      }
    }
  }
  return nuls
}

/** @param first gets the index of an entry's first string; its last one is before the first string of the next entry */
function nulsIn(
  column: RecordBatchColumn,
  { bytes, offsets }: TextVector,
  first: (entry: number) => number,
): number {
  if (bytes.indexOf(0) < 0) return 0
  let nuls = 0
  eachEntry(column, (entry) => {
    for (let at = offsets[first(entry)]!; at < offsets[first(entry + 1)]!; at++) if (bytes[at] === 0) nuls++
  })
  return nuls
}
