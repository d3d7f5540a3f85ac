import { expect, it } from 'vitest'
import { metadataOf, pagesOf, type StoredPage } from './parquet-pages.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import { encodeShard, parquetFormats } from './shard-fixture.ts'

/** CRC-32 of gzip and Parquet, bit by bit, so that zlib is not checked with itself. */
function checksum(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return ~crc
}

const columns = specs({ id: 'int64', domain: 'text?', hash: 'text?', sure: 'boolean?', tags: 'list?' })
const rows = Array.from(
  { length: 21_000 },
  (_, i): Row => ({
    id: i * 977,
    domain: `${i % 3}.example`,
    hash: i % 4 === 0 ? null : `secret ${(i * 7919) % 10_007}`,
    sure: i % 5 === 0 ? null : i % 2 === 0,
    tags: i % 2 === 0 ? null : [`tag ${i % 9}`, null],
  }),
)
const rowGroups = [rows.slice(0, 20_500), rows.slice(20_500)].map((some) => [recordBatchOf(columns, some)])

const allPages = (file: Uint8Array): StoredPage[] =>
  metadataOf(file).row_groups.flatMap((group) =>
    group.columns.flatMap(({ meta_data }) => pagesOf(file, meta_data!)),
  )

it.each(parquetFormats.filter(({ engine }) => engine === 'columnar'))(
  'every page has the CRC-32 of its stored bytes ($encodings, $compression)',
  async (format) => {
    const pages = allPages(await encodeShard(format, columns, rowGroups))
    expect(new Set(pages.map(({ header }) => header.type))).toEqual(new Set(['DATA_PAGE', 'DICTIONARY_PAGE']))
    expect(pages.length).toBeGreaterThan(12)
    expect(pages.map(({ header }) => header.crc)).toEqual(pages.map(({ bytes }) => checksum(bytes)))
    // Thrift's integers are signed, so half of all checksums are negative.
    expect(pages.some(({ header }) => header.crc! < 0)).toBe(true)
    expect(pages.some(({ header }) => header.crc! > 0)).toBe(true)
  },
)
