import { crc32 } from 'node:zlib'
import type { PageHeader } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import { writePageHeader } from 'hyparquet-writer/src/datapage.js'
import type { ParquetFormat } from '../../../core/index.ts'
import type { RecordBatch } from '../../../rows/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { EncodeSettings, ShardEncoder } from '../encoder.ts'
import { totalRows } from '../record-batch-column.ts'
import type { ColumnChunk } from './column-chunk.ts'
import { type Codec, codec as codecOf } from './compress.ts'
import { writeHybrid, writeRun } from './encodings.ts'
import { MAGIC, parquetFooter } from './footer.ts'
import { type Leaf, type Levels, leafOf } from './leaf.ts'
import { freeScratch } from './rows.ts'

/**
 * A page ends after `PAGE_ROWS` rows or about `PAGE_BYTES` bytes of values. Smaller pages would only help readers that
 * skip pages by the page index, which is not written; all readers have a cost per page: with 20,000 rows a page DuckDB
 * took 89 in place of 75 ms for one aggregate over eleven columns of 500,000 rows.
 */
const PAGE_ROWS = 100_000
const PAGE_BYTES = 1 << 20

/** Scratch space of one page, reused for every page. */
const page = new ByteBuffer(PAGE_BYTES)

/** More than a row group of usual rows takes under snappy. */
const USUAL_BYTES = 4 << 20

/**
 * Parquet straight from columns, without an object per value. Numbers are encoded as deltas, repeated strings as a
 * dictionary, other strings as lengths and concatenated bytes.
 */
export function parquetColumnar(settings: EncodeSettings, format: ParquetFormat): ShardEncoder {
  const codec = codecOf(format.compression)
  const { columns } = settings
  // The unused part takes no memory. A smaller buffer would grow, and the old one would wait for garbage collection.
  const out = new ByteBuffer(USUAL_BYTES)

  const encodeRowGroup = (recordBatches: readonly RecordBatch[]): ColumnChunk[] =>
    columns.map((column) => {
      freeScratch()
      return writeColumnChunk(out, leafOf(column, recordBatches, format.encodings), codec)
    })

  return {
    header: () => new Uint8Array(Buffer.from(MAGIC)),
    encode: async (recordBatches) => {
      const rows = totalRows(recordBatches)
      out.length = 0
      const chunks = rows === 0 ? [] : encodeRowGroup(recordBatches)
      return { bytes: out.view(), rows, chunks }
    },
    footer: async (rowGroups) =>
      parquetFooter({ ...settings, codec: codec.name, timestampUnit: 'MICROS' }, rowGroups),
  }
}

/**
 * Appends a column chunk: its dictionary page, if it has one, then its data pages. Pages have version 1, which every
 * reader supports, also with the newer encodings.
 */
function writeColumnChunk(out: ByteBuffer, leaf: Leaf, codec: Codec): ColumnChunk {
  const { levels, values } = leaf
  const start = out.length
  let raw = 0
  const { dictionary } = values
  if (dictionary !== null) {
    page.length = 0
    dictionary.write(page)
    raw += writePage(out, codec, {
      type: 'DICTIONARY_PAGE',
      dictionary_page_header: { num_values: dictionary.count, encoding: 'PLAIN' },
    })
  }
  const data = out.length
  const position: Position = { row: 0, entry: 0, value: 0 }
  while (position.row < levels.rows) {
    const end = pageEnd(leaf, position)
    page.length = 0
    writeLevels(levels, position.entry, end.entry)
    values.write(page, position.value, end.value)
    raw += writePage(out, codec, {
      type: 'DATA_PAGE',
      data_page_header: {
        num_values: end.entry - position.entry,
        encoding: values.encoding,
        definition_level_encoding: 'RLE',
        repetition_level_encoding: 'RLE',
      },
    })
    Object.assign(position, end)
  }
  return {
    entries: position.entry,
    nulls: position.entry - position.value,
    encoding: values.encoding,
    dictionary: dictionary === null ? null : start,
    data,
    raw,
    stored: out.length - start,
    minMax: values.minMax,
  }
}

type Position = { row: number; entry: number; value: number }

function pageEnd({ levels, values }: Leaf, from: Position): Position {
  let rows = Math.min(PAGE_ROWS, levels.rows - from.row)
  while (true) {
    const end = skipRows(levels, from, rows)
    const size = values.size(from.value, end.value)
    if (size <= PAGE_BYTES || rows === 1) return end
    rows = Math.max(1, Math.min(rows >> 1, Math.floor((rows * PAGE_BYTES) / size)))
  }
}

function skipRows({ repetition, definition, maxDefinition }: Levels, from: Position, rows: number): Position {
  const row = from.row + rows
  let entry = from.entry + rows
  if (repetition !== null) {
    let left = rows
    entry = from.entry + 1
    while (entry < repetition.length && (repetition[entry]! > 0 || --left > 0)) entry++
  }
  if (definition === null) return { row, entry, value: from.value + entry - from.entry }
  return { row, entry, value: from.value + countOf(definition, maxDefinition, from.entry, entry) }
}

function countOf(values: Uint8Array, value: number, from: number, to: number): number {
  let count = 0
  for (let i = from; i < to; i++) if (values[i] === value) count++
  return count
}

function writeLevels(levels: Levels, from: number, to: number): void {
  const { repetition, definition, maxRepetition, maxDefinition } = levels
  if (maxRepetition > 0) writeLevel(repetition, maxRepetition, from, to)
  if (maxDefinition > 0) writeLevel(definition, maxDefinition, from, to)
}

function writeLevel(values: Uint8Array | null, max: number, from: number, to: number): void {
  const bitWidth = 32 - Math.clz32(max)
  page.appendUint32(0)
  const start = page.length
  if (values === null) writeRun(page, max, to - from, bitWidth)
  else writeHybrid(page, values, from, to, bitWidth)
  page.bytes.writeUInt32LE(page.length - start, start - 4)
}

/**
 * Appends a header and the contents of `page`; returns their uncompressed size. The header has the checksum of the
 * stored page: without it, readers could not detect a flipped bit in an uncompressed page.
 */
function writePage(
  out: ByteBuffer,
  codec: Codec,
  header: Omit<PageHeader, 'uncompressed_page_size' | 'compressed_page_size' | 'crc'>,
): number {
  const compressed = codec.compress(page.view())
  const head = new ByteWriter(64)
  writePageHeader(head, {
    ...header,
    uncompressed_page_size: page.length,
    compressed_page_size: compressed.length,
    // Thrift has signed integers only.
    crc: crc32(compressed) | 0,
  })
  out.append(head.getBytes())
  out.append(compressed)
  return head.offset + page.length
}
