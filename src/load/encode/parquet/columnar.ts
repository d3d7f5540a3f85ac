import { crc32 } from 'node:zlib'
import type { PageHeader } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import { writePageHeader } from 'hyparquet-writer/src/datapage.js'
import type { ParquetFormat } from '../../../core/index.ts'
import type { RecordBatch } from '../../../rows/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { ColumnChunk, EncodeSettings, ShardEncoder } from '../encoder.ts'
import { totalRows } from '../record-batch-column.ts'
import { type Codec, codec as codecOf } from './compress.ts'
import { writeHybrid, writeRun } from './encodings.ts'
import { MAGIC, parquetFooter } from './footer.ts'
import { type Leaf, type Levels, leafOf } from './leaf.ts'
import { freeScratch } from './rows.ts'

/** More than a row group of usual rows takes under snappy. */
const USUAL_BYTES = 4 << 20

/** Scratch space of one page, reused for every page. */
const page = new ByteBuffer(USUAL_BYTES)

/** Parquet straight from columns, without an object per value. */
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

/** One data page: smaller ones help only with a page index, which is not written. Every reader supports version 1. */
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
  const { rows, definition, repetition } = levels
  const entries = definition?.length ?? repetition?.length ?? rows
  if (rows > 0) {
    page.length = 0
    writeLevels(levels, entries)
    values.write(page)
    raw += writePage(out, codec, {
      type: 'DATA_PAGE',
      data_page_header: {
        num_values: entries,
        encoding: values.encoding,
        definition_level_encoding: 'RLE',
        repetition_level_encoding: 'RLE',
      },
    })
  }
  return {
    entries,
    nulls: entries - values.count,
    encoding: values.encoding,
    dictionary: dictionary === null ? null : start,
    data,
    raw,
    stored: out.length - start,
    minMax: values.minMax,
  }
}

function writeLevels(levels: Levels, entries: number): void {
  const { repetition, definition, maxRepetition, maxDefinition } = levels
  if (maxRepetition > 0) writeLevel(repetition, maxRepetition, entries)
  if (maxDefinition > 0) writeLevel(definition, maxDefinition, entries)
}

function writeLevel(values: Uint8Array | null, max: number, entries: number): void {
  const bitWidth = 32 - Math.clz32(max)
  page.appendUint32(0)
  const start = page.length
  if (values === null) writeRun(page, max, entries, bitWidth)
  else writeHybrid(page, values, bitWidth)
  page.bytes.writeUInt32LE(page.length - start, start - 4)
}

/** Returns the uncompressed size. Without the checksum, a flipped bit in an uncompressed page would go unnoticed. */
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
