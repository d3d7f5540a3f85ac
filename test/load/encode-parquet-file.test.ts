import { describe, expect, it } from 'vitest'
import { int64 } from '../../src/core/index.ts'
import { some } from '../support/thorough.ts'
import * as large from './large-row-group.ts'
import { scramble } from './large-row-group.ts'
import { columnChunksOf, metadataOf, pagesOf } from './parquet-pages.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import {
  cells,
  cellsInDuckdb,
  createdBy,
  duckdb,
  encodeShard,
  parquetFormats,
  shardFolder,
  snappyParquet,
} from './shard-fixture.ts'

const write = shardFolder()
const sql = await duckdb()

describe('a large row group', () => {
  const { columns, rows, recordBatches } = large

  it('is read back unchanged by DuckDB', async () => {
    const bytes = await encodeShard(snappyParquet, columns, [recordBatches])
    expect(await cellsInDuckdb(sql, `'${write('snappy.parquet', bytes)}'`, columns)).toEqual(
      cells(rows, columns),
    )
    for (const format of some(parquetFormats.filter(({ engine }) => engine === 'columnar').toReversed(), 1)) {
      const name = `${format.encodings}-${format.compression}.parquet`
      const other = write(name, await encodeShard(format, columns, [recordBatches]))
      const snappy = other.replace(name, 'snappy.parquet')
      expect(await sql(`from '${other}' except all from '${snappy}'`)).toEqual([])
      expect(await sql(`select count(*)::int from '${other}'`)).toEqual([[rows.length]])
    }
  })

  const encodingsOf = async (encodings: 'compact' | 'plain') => {
    const bytes = await encodeShard({ ...snappyParquet, encodings }, columns, [recordBatches])
    return Object.fromEntries(
      columns.map(({ name }) => [
        name,
        columnChunksOf(bytes, name)[0]!
          .encodings.filter((e) => e !== 'RLE')
          .join(),
      ]),
    )
  }

  it('has the best encoding for each column', async () => {
    expect(await encodingsOf('compact')).toEqual({
      id: 'DELTA_BINARY_PACKED',
      far: 'PLAIN',
      at: 'DELTA_BINARY_PACKED',
      leaked: 'RLE_DICTIONARY,PLAIN',
      flag: 'PLAIN',
      email: 'DELTA_LENGTH_BYTE_ARRAY',
      note: 'RLE_DICTIONARY,PLAIN',
      kind: 'RLE_DICTIONARY,PLAIN',
      unique: 'DELTA_LENGTH_BYTE_ARRAY',
      body: 'RLE_DICTIONARY,PLAIN',
      tags: 'RLE_DICTIONARY,PLAIN',
      links: 'DELTA_LENGTH_BYTE_ARRAY',
    })
    expect(await encodingsOf('plain')).toEqual({
      id: 'PLAIN',
      far: 'PLAIN',
      at: 'PLAIN',
      leaked: 'PLAIN',
      flag: 'PLAIN',
      email: 'PLAIN',
      note: 'PLAIN_DICTIONARY,PLAIN',
      kind: 'PLAIN_DICTIONARY,PLAIN',
      unique: 'PLAIN',
      body: 'PLAIN_DICTIONARY,PLAIN',
      tags: 'PLAIN_DICTIONARY,PLAIN',
      links: 'PLAIN',
    })
  })

  it('has one data page a column', async () => {
    const bytes = await encodeShard(snappyParquet, columns, [recordBatches])
    for (const { name } of columns) {
      const pages = pagesOf(bytes, columnChunksOf(bytes, name)[0]!)
      expect(pages.filter(({ header }) => header.type === 'DATA_PAGE')).toHaveLength(1)
    }
  })
})

it.each(some(['compact', 'plain'] as const, 1))(
  'a row group of 100,300 rows is read back by DuckDB ($0)',
  async (encodings) => {
    const columns = specs({ id: 'int64', kind: 'text?', tags: 'list?' })
    const rows = Array.from(
      { length: 100_300 },
      (_, id): Row => ({
        id,
        kind: id % 3 === 0 ? null : `kind ${id % 400}`,
        tags: id % 5 === 0 ? null : Array.from({ length: id % 3 }, () => `tag ${id % 700}`),
      }),
    )
    const bytes = await encodeShard({ ...snappyParquet, encodings }, columns, [
      [recordBatchOf(columns, rows)],
    ])
    const path = write(`many-${encodings}.parquet`, bytes)
    const [found] = await sql(`select count(*)::int, count(distinct id)::int, count(*) filter (
        kind is distinct from if(id % 3 = 0, null, 'kind ' || (id % 400)) or
        tags is distinct from if(id % 5 = 0, null, list_transform(range(id % 3), lambda _: 'tag ' || (id % 700)))
      )::int from '${path}'`)
    expect(found).toEqual([rows.length, rows.length, 0])
  },
)

describe('integers that are not exact as doubles', () => {
  const columns = specs({ id: 'int64', far: 'int64?', moment: 'timestamp', breached: 'timestamp?' })
  const BASE = 2n ** 53n
  const rows = Array.from(
    { length: 3000 },
    (_, i): Row => ({
      id: int64(BASE - 1500n + BigInt(i * 2 + (scramble(i) % 2))),
      far: i % 7 === 0 ? null : int64((i % 2 === 0 ? 1n : -1n) * (2n ** 63n - 1n - BigInt(scramble(i)))),
      moment: int64(253_402_300_799_999_999n - BigInt(i) * 1_000_003n),
      breached:
        i % 5 === 0 ? null : int64(253_402_214_400_000_000n - BigInt(scramble(i) % 9) * 86_400_000_000n),
    }),
  )
  // The first page has ordinary ids, the last has none at all.
  const recordBatches = [0, 700, 2000].map((start, i) =>
    recordBatchOf(columns, rows.slice(start, [700, 2000, 3000][i]), [['breached']]),
  )
  const rowGroups = [recordBatches.slice(0, 2), recordBatches.slice(2)]
  const format = snappyParquet

  it('are read back by DuckDB, also if it skips row groups', async () => {
    expect(recordBatches.map((recordBatch) => recordBatch.columns[0]!.values.kind)).toEqual([
      'number',
      'int64',
      'int64',
    ])
    const path = write('large.parquet', await encodeShard(format, columns, rowGroups))
    expect(await cellsInDuckdb(sql, `'${path}'`, columns)).toEqual(cells(rows, columns))
    for (const { id, far, moment } of [rows[1]!, rows[1500]!, rows[1501]!, rows[2999]!]) {
      for (const filter of [`id = ${id}`, `far = ${far}`, `moment = make_timestamptz(${moment})`]) {
        expect(await sql(`select count(*)::int from '${path}' where ${filter}`), filter).toEqual([[1]])
      }
    }
  })

  it('are stored as small ones are, with min/max statistics', async () => {
    const bytes = await encodeShard(format, columns, rowGroups)
    const found = columns.map(({ name, type }) => {
      const [{ encodings, statistics }] = columnChunksOf(bytes, name) as [
        ReturnType<typeof columnChunksOf>[0],
      ]
      const values = rows
        .slice(0, 2000)
        .flatMap((row) => (row[name] === null ? [] : [BigInt(row[name] as bigint)]))
      const sorted = values.toSorted((a, b) => (a < b ? -1 : 1))
      expect([statistics!.min_value, statistics!.max_value], type).toEqual([sorted[0], sorted.at(-1)])
      return encodings.filter((encoding) => encoding !== 'RLE').join()
    })
    expect(found).toEqual(['DELTA_BINARY_PACKED', 'PLAIN', 'DELTA_BINARY_PACKED', 'RLE_DICTIONARY,PLAIN'])
  })
})

describe('the footer', () => {
  const columns = specs({ id: 'int64', at: 'timestamp', domain: 'text?', secret: 'text?', tags: 'list?' })
  const first: Row[] = [
    { id: -5, at: -1_000_001, domain: 'b.example', secret: 's', tags: ['x', null] },
    { id: 9, at: 1_721_676_352_893_439, domain: null, secret: null, tags: [] },
    { id: 7, at: 0, domain: 'a.example', secret: 't', tags: null },
  ]
  const second: Row[] = [{ id: 2, at: 3, domain: null, secret: null, tags: null }]
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

  it('has min/max statistics of numbers and domains, and all counts of nulls', async () => {
    const bytes = await encodeShard(snappyParquet, columns, rowGroups)
    const statistics = (name: string) =>
      columnChunksOf(bytes, name).map(({ statistics }) => [
        statistics!.min_value,
        statistics!.max_value,
        statistics!.null_count,
      ])
    expect(statistics('id')).toEqual([
      [-5n, 9n, 0n],
      [2n, 2n, 0n],
    ])
    expect(statistics('at')).toEqual([
      [-1_000_001n, 1_721_676_352_893_439n, 0n],
      [3n, 3n, 0n],
    ])
    expect(statistics('domain')).toEqual([
      ['a.example', 'b.example', 1n],
      [undefined, undefined, 1n],
    ])
    expect(statistics('secret')).toEqual([
      [undefined, undefined, 1n],
      [undefined, undefined, 1n],
    ])
    expect(statistics('tags')).toEqual([
      [undefined, undefined, 3n],
      [undefined, undefined, 1n],
    ])
  })

  it('bounds long domains on both sides, in byte order', async () => {
    const domains = ['é'.repeat(50), '\u{10ffff}'.repeat(30), 'z'.repeat(100), `a${'ÿ'.repeat(60)}`]
    for (const grouped of [[], [['domain']]]) {
      const rows = domains.map((domain, id): Row => ({ ...first[0]!, id, domain }))
      const bytes = await encodeShard(snappyParquet, columns, [[recordBatchOf(columns, rows, grouped)]])
      const { min_value, max_value } = columnChunksOf(bytes, 'domain')[0]!.statistics!
      const sorted = domains.map((domain) => Buffer.from(domain)).sort(Buffer.compare)
      expect(Buffer.compare(Buffer.from(String(min_value)), sorted[0]!)).toBeLessThanOrEqual(0)
      // No string is greater than the greatest code point, so its bound may be missing, but never too low.
      if (max_value !== undefined) {
        expect(Buffer.compare(Buffer.from(String(max_value)), sorted.at(-1)!)).toBeGreaterThanOrEqual(0)
      }
      const path = write('domains.parquet', bytes)
      for (const { 0: domain, length } of domains.map((domain) => [domain])) {
        const found = await sql(`select count(*)::int from '${path}' where domain = '${domain}'`)
        expect(found).toEqual([[length]])
      }
    }
    const endless: Row = { ...first[0]!, domain: 'x'.repeat(100_000) }
    const bytes = await encodeShard(snappyParquet, columns, [[recordBatchOf(columns, [endless])]])
    expect(columnChunksOf(bytes, 'domain')[0]!.statistics!.max_value).toBeUndefined()
  })
})
