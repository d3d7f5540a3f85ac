import fc from 'fast-check'
import { snappyUncompress } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { int64 } from '../../src/core/index.ts'
import { snappyCompress } from '../../src/load/encode/parquet/compress.ts'
import { TextDictionary } from '../../src/rows/index.ts'
import { some } from '../support/thorough.ts'
import * as large from './large-row-group.ts'
import { scramble } from './large-row-group.ts'
import { columnChunksOf, metadataOf, pagesOf, type StoredPage } from './parquet-pages.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import {
  cells,
  cellsInDuckdb,
  createdBy,
  encodeShard,
  parquetFormats,
  shardFolder,
  snappyParquet,
  sql,
} from './shard-fixture.ts'

/** Bytes with runs and with repeats, near and far. */
const anyBytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .tuple(fc.uint8Array({ minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 9000 }))
        .map(([part, times]) => new Uint8Array(Buffer.alloc(part.length * times, part))),
    ),
    { maxLength: 8 },
  )
  .map((parts) => new Uint8Array(Buffer.concat(parts)))

describe('snappy', () => {
  const uncompressed = (bytes: Uint8Array, length: number): Uint8Array => {
    const output = new Uint8Array(length)
    snappyUncompress(bytes, output)
    return output
  }

  it('is decompressed by another library', () => {
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        expect(Buffer.compare(uncompressed(snappyCompress(bytes), bytes.length), bytes)).toBe(0)
      }),
    )
  })

  it('compresses repeats well and hardly enlarges noise', () => {
    const repeats = new Uint8Array(Buffer.alloc(100_000, 'ada.marsh@scatterholt.com,'))
    expect(snappyCompress(repeats).length).toBeLessThan(6000)
    const noise = Uint8Array.from({ length: 100_000 }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 24)
    expect(snappyCompress(noise).length).toBeLessThan(100_100)
  })
})

it('the string dictionary is abandoned when many strings collide, before it becomes slow', () => {
  // The second word cancels the hash of the first, so that all hashes are equal.
  const words = Array.from({ length: 1000 }, (_, i) => {
    const mixed = Math.imul(0x811c9dc5 ^ 8 ^ i, 0x01000193)
    return [i, mixed ^ (mixed >>> 15)]
  })
  const bytes = new Uint8Array(Int32Array.from(words.flat()).buffer)
  const dictionary = new TextDictionary()
  const numbers = words.map((_, i) => dictionary.intern(bytes, i * 8, i * 8 + 8))
  expect(numbers.indexOf(-1)).toBe(256)
  expect(dictionary.count).toBe(256)
  expect(numbers.slice(0, 256)).toEqual(words.slice(0, 256).map((_, i) => i))
})

const write = shardFolder()
const [DELTA, LENGTHS] = ['DELTA_BINARY_PACKED', 'DELTA_LENGTH_BYTE_ARRAY']
const [CODES, OLD_CODES] = ['RLE_DICTIONARY,PLAIN', 'PLAIN_DICTIONARY,PLAIN']

describe('a large row group', () => {
  const { columns, rows, recordBatches } = large

  it('is read back unchanged by DuckDB', async () => {
    const bytes = await encodeShard(snappyParquet, columns, [recordBatches])
    expect(await cellsInDuckdb(`'${write('snappy.parquet', bytes)}'`, columns)).toEqual(cells(rows, columns))
    for (const format of some(parquetFormats.filter(({ engine }) => engine === 'columnar').toReversed(), 1)) {
      const name = `${format.encodings}-${format.compression}.parquet`
      const other = write(name, await encodeShard(format, columns, [recordBatches]))
      const snappy = other.replace(name, 'snappy.parquet')
      expect(await sql(`from '${other}' except all from '${snappy}'`)).toEqual([])
      expect(await sql(`select count(*)::int from '${other}'`)).toEqual([[rows.length]])
    }
  })

  const everyPage = (file: Uint8Array): StoredPage[] =>
    columns.flatMap(({ name }) => columnChunksOf(file, name).flatMap((chunk) => pagesOf(file, chunk)))

  // In the order of the columns.
  it.each([
    [
      'compact',
      [DELTA, 'PLAIN', DELTA, CODES, 'PLAIN', LENGTHS, CODES, CODES, LENGTHS, CODES, CODES, LENGTHS],
    ],
    ['plain', [...Array(6).fill('PLAIN'), OLD_CODES, OLD_CODES, 'PLAIN', OLD_CODES, OLD_CODES, 'PLAIN']],
  ] as const)('has one page a column, in its best encoding: %s', async (encodings, expected) => {
    const bytes = await encodeShard({ ...snappyParquet, encodings }, columns, [recordBatches])
    expect(columns.map(({ name }) => encodingOf(bytes, name))).toEqual(expected)
    expect(everyPage(bytes).filter(({ header }) => header.type === 'DATA_PAGE')).toHaveLength(columns.length)
  })

  it.each(parquetFormats.filter(({ engine }) => engine === 'columnar'))(
    'has the CRC-32 of its stored bytes on every page ($encodings, $compression)',
    async (format) => {
      const rowGroups = [recordBatches.slice(1, 2), recordBatches.slice(2)]
      const pages = everyPage(await encodeShard(format, columns, rowGroups))
      expect(new Set(pages.map(({ header }) => header.type))).toEqual(
        new Set(['DATA_PAGE', 'DICTIONARY_PAGE']),
      )
      expect(pages.map(({ header }) => header.crc)).toEqual(pages.map(({ bytes }) => checksum(bytes)))
      // Thrift's integers are signed, so half of all checksums are negative.
      expect(new Set(pages.map(({ header }) => Math.sign(header.crc!)))).toEqual(new Set([1, -1]))
    },
  )
})

function encodingOf(file: Uint8Array, name: string): string {
  return columnChunksOf(file, name)[0]!
    .encodings.filter((each) => each !== 'RLE')
    .join()
}

/** CRC-32 of gzip and Parquet, bit by bit, so that zlib is not checked with itself. */
function checksum(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return ~crc
}

it('integers that are not exact as doubles are read back by DuckDB, and stored as small ones are, with bounds', async () => {
  const columns = specs({ id: 'int64', far: 'int64?', moment: 'timestamp', breached: 'timestamp?' })
  const rows = Array.from({ length: 3000 }, (_, i): Row => {
    const noise = scramble(i)
    const far = (i % 2 === 0 ? 1n : -1n) * (2n ** 63n - 1n - BigInt(noise))
    const midnight = 253_402_214_400_000_000n - BigInt(noise % 9) * 86_400_000_000n
    return {
      id: int64(2n ** 53n - 1500n + BigInt(i * 2 + (noise % 2))),
      far: i % 7 === 0 ? null : int64(far),
      moment: int64(253_402_300_799_999_999n - BigInt(i) * 1_000_003n),
      breached: i % 5 === 0 ? null : int64(midnight),
    }
  })
  // The first page has ordinary ids, the last has none at all.
  const recordBatches = [0, 700, 2000].map((start, i) =>
    recordBatchOf(columns, rows.slice(start, [700, 2000, 3000][i]), [['breached']]),
  )
  const kinds = recordBatches.map((recordBatch) => recordBatch.columns[0]!.values.kind)
  expect(kinds).toEqual(['number', 'int64', 'int64'])
  const bytes = await encodeShard(snappyParquet, columns, [recordBatches.slice(0, 2), recordBatches.slice(2)])
  expect(await cellsInDuckdb(`'${write('large.parquet', bytes)}'`, columns)).toEqual(cells(rows, columns))
  for (const { name } of columns) {
    const { min_value, max_value } = columnChunksOf(bytes, name)[0]!.statistics!
    const values = rows
      .slice(0, 2000)
      .flatMap((row) => (row[name] === null ? [] : [BigInt(row[name] as bigint)]))
    const sorted = values.toSorted((a, b) => (a < b ? -1 : 1))
    expect([min_value, max_value], name).toEqual([sorted[0], sorted.at(-1)])
  }
  expect(columns.map(({ name }) => encodingOf(bytes, name))).toEqual([DELTA, 'PLAIN', DELTA, CODES])
})

describe('the footer', () => {
  const columns = specs({
    id: 'int64',
    at: 'timestamp',
    domain: 'text?',
    identity_name: 'text?',
    hash: 'text?',
    source_name: 'text?',
    tags: 'list?',
  })
  const person = { identity_name: 'ada@b.example', hash: 's', source_name: 'A leak' }
  const nobody = { identity_name: null, hash: null, source_name: null }
  const first: Row[] = [
    { id: -5, at: -1_000_001, domain: 'b.example', ...person, tags: ['x', null] },
    { id: 9, at: 1_721_676_352_893_439, domain: null, ...nobody, tags: [] },
    { id: 7, at: 0, domain: 'a.example', ...person, tags: null },
  ]
  const second: Row[] = [{ id: 2, at: 3, domain: null, ...nobody, tags: null }]
  const rowGroups = [
    [recordBatchOf(columns, first)],
    [recordBatchOf(columns, [])],
    [recordBatchOf(columns, second)],
  ]

  it('has version, writer, counts of rows, and the masking', async () => {
    const bytes = await encodeShard(snappyParquet, columns, rowGroups, { 'spillway.masking': 'redact' })
    const { version, created_by, num_rows, key_value_metadata, row_groups } = metadataOf(bytes)
    expect({ version, created_by, num_rows }).toEqual({ version: 1, created_by: createdBy, num_rows: 4n })
    expect(key_value_metadata).toEqual([{ key: 'spillway.masking', value: 'redact' }])
    expect(row_groups.map((group) => group.num_rows)).toEqual([3n, 1n])
  })

  it.each<[name: string, ...ofRowGroups: unknown[][]]>([
    ['id', [-5n, 9n, 0n], [2n, 2n, 0n]],
    ['at', [-1_000_001n, 1_721_676_352_893_439n, 0n], [3n, 3n, 0n]],
    ['domain', ['a.example', 'b.example', 1n], [undefined, undefined, 1n]],
    ['hash', [undefined, undefined, 1n], [undefined, undefined, 1n]],
    ['tags', [undefined, undefined, 3n], [undefined, undefined, 1n]],
  ])('has least, greatest and number of nulls of %s, and no bounds of people', async (name, ...expected) => {
    const chunks = columnChunksOf(await encodeShard(snappyParquet, columns, rowGroups), name)
    const of = ({ statistics: { min_value, max_value, null_count } = {} }: (typeof chunks)[number]) => [
      min_value,
      max_value,
      null_count,
    ]
    expect(chunks.map(of)).toEqual(expected)
  })

  it('bounds long domains, in byte order, but for endless ones', async () => {
    const domains = ['é'.repeat(50), '\u{10ffff}'.repeat(30), 'z'.repeat(100), `a${'ÿ'.repeat(60)}`]
    const sorted = domains.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    const boundsOf = async (given: readonly string[], groups: readonly string[][]): Promise<unknown[]> => {
      const rows = given.map((domain, id): Row => ({ ...first[0]!, id, domain }))
      const bytes = await encodeShard(snappyParquet, columns, [[recordBatchOf(columns, rows, groups)]])
      const { min_value, max_value } = columnChunksOf(bytes, 'domain')[0]!.statistics!
      return [min_value, max_value]
    }
    for (const groups of [[], [['domain']]])
      expect(await boundsOf(domains, groups)).toEqual([sorted[0], sorted.at(-1)])
    expect(await boundsOf([...domains, 'x'.repeat(100_000), '\u{10ffff}'.repeat(70)], [])).toEqual([
      undefined,
      undefined,
    ])
  })
})
