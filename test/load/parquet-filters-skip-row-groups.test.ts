import { describe, expect, it } from 'vitest'
import { columnChunksOf, pagesOf } from './parquet-pages.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import { encodeShard, shardFolder, snappyParquet, sql } from './shard-fixture.ts'

const write = shardFolder()

const columns = specs({
  id: 'int64',
  identity_name: 'text',
  hash: 'text?',
  source_id: 'text',
  source_name: 'text?',
  query_type: 'text',
  query_value: 'text',
})
const groups = [
  ['source_id', 'source_name'],
  ['query_type', 'query_value'],
]

type Query = Pick<Row, 'query_type' | 'query_value'>

function rowsOf(start: number, source: string, query: Query): Row[] {
  return Array.from({ length: 500 }, (_, i) => ({
    id: start + i,
    identity_name: `person${start + i}@scatterholt.com`,
    hash: `secret ${start + i}`,
    source_id: `${source}_${i % 7}`,
    source_name: `Source ${i % 7}`,
    ...query,
  }))
}

const domain = { query_type: 'domain', query_value: 'scatterholt.com' }
const email = { query_type: 'email', query_value: 'a@scatterholt.com' }
const secret = { query_type: 'secret', query_value: 'Tr0ub4dor-and-3' }

/** Min/max statistics of the column in every row group, as DuckDB reads them. */
async function bounds(path: string, column: string): Promise<unknown[]> {
  return sql(`select stats_min_value, stats_max_value from parquet_metadata('${path}')
    where path_in_schema = '${column}' order by row_group_id`)
}

describe('min/max statistics', () => {
  it.each([{ groups }, { groups: [] }])(
    'of the query value are left out if one of the queries is for a secret ($groups)',
    async ({ groups }) => {
      const page = (start: number, query: Query) =>
        recordBatchOf(columns, rowsOf(start, 'leak_a', query), groups)
      const kinds = [domain, secret, email].flatMap((query) => rowsOf(2000, 'leak_a', query))
      const file = await encodeShard(snappyParquet, columns, [
        [page(0, secret)],
        [page(500, domain)],
        [page(1000, domain), page(1500, secret)],
        [recordBatchOf(columns, kinds)],
      ])
      const path = write('secrets.parquet', file)
      expect(await bounds(path, 'query_value')).toEqual([
        [null, null],
        ['scatterholt.com', 'scatterholt.com'],
        [null, null],
        [null, null],
      ])
      expect(await bounds(path, 'query_type')).toEqual([
        ['secret', 'secret'],
        ['domain', 'domain'],
        ['domain', 'secret'],
        ['domain', 'secret'],
      ])
      expect(footerOf(file).includes('scatterholt.com')).toBe(true)
      expect(footerOf(file).includes(secret.query_value)).toBe(false)
    },
  )

  it('of the query value are left out without the column query_type', async () => {
    const some = columns.filter(({ name }) => name !== 'query_type')
    const rows = rowsOf(0, 'leak_a', secret)
    const path = write('kinds.parquet', await encodeShard(snappyParquet, some, [[recordBatchOf(some, rows)]]))
    expect(await bounds(path, 'query_value')).toEqual([[null, null]])
  })
})

it.each([
  { column: 'source_id', value: 'leak_b_3', found: 71 },
  { column: 'query_value', value: 'a@scatterholt.com', found: 500 },
])('a filter on $column never touches the row groups without the value', async ({ column, value, found }) => {
  const pages = [rowsOf(0, 'leak_a', domain), rowsOf(500, 'leak_b', email), rowsOf(1000, 'leak_c', domain)]
  const rowGroups = pages.map((rows) => [recordBatchOf(columns, rows, groups)])
  const file = await encodeShard({ ...snappyParquet, compression: 'none' }, columns, rowGroups)
  // No column of the other row groups can be read: a reader that tries fails.
  const ruined = Buffer.from(file)
  for (const { name } of columns) {
    const [first, , last] = columnChunksOf(file, name)
    for (const { offset, bytes } of [...pagesOf(file, first!), ...pagesOf(file, last!)])
      ruined.fill(0xff, offset, offset + bytes.length)
  }
  const path = write('ruined.parquet', ruined)
  await expect(sql(`select count(distinct ${column}) from '${path}'`)).rejects.toThrow()
  const [row] = await sql(
    `select count(*)::int, count(distinct identity_name)::int from '${path}' where ${column} = '${value}'`,
  )
  expect(row).toEqual([found, found])
})

/** The footer with the metadata, at the end of the file. */
const footerOf = (file: Buffer): Buffer => file.subarray(file.length - 8 - file.readUInt32LE(file.length - 8))
