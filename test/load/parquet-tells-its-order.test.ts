import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cases } from '../support/thorough.ts'
import { metadataOf } from './parquet-pages.ts'
import { recordBatchOf, specs } from './record-batch-builder.ts'
import { duckdb, encodeShard, shardFolder, snappyParquet } from './shard-fixture.ts'

const write = shardFolder()
const sql = await duckdb()
const columns = specs({ id: 'int64', leaked: 'timestamp?', imported_at: 'timestamp' })

/** The sorting columns of each row group. Numbers are instants: of a page, of a row group, of the shard. */
async function orders(rowGroups: readonly (readonly (readonly number[])[])[], grouped = false) {
  const groups = grouped ? [['imported_at']] : []
  const file = await encodeShard(
    snappyParquet,
    columns,
    rowGroups.map((pages) =>
      pages.map((instants) =>
        recordBatchOf(
          columns,
          instants.map((imported_at, id) => ({ id, leaked: id, imported_at })),
          groups,
        ),
      ),
    ),
  )
  return { file, orders: metadataOf(file).row_groups.map(({ sorting_columns }) => sorting_columns ?? null) }
}

const SORTED = [{ column_idx: 2, descending: false, nulls_first: false }]

it.each([
  {
    what: 'pages and row groups in order, ties between them',
    shard: [
      [
        [-5, 1],
        [1, 4],
      ],
      [[4, 9]],
    ],
    sorted: true,
  },
  { what: 'a row group with no rows', shard: [[[1, 2]], [[]], [[2, 3]]], sorted: true },
  { what: 'one of three row groups out of order', shard: [[[1, 2]], [[4, 3]], [[5, 6]]], sorted: false },
])('$what: sorted is $sorted', async ({ shard, sorted }) => {
  for (const grouped of [false, true]) {
    const rowGroups = shard.filter((pages) => pages.flat().length > 0)
    expect((await orders(shard, grouped)).orders).toEqual(rowGroups.map(() => (sorted ? SORTED : null)))
  }
})

it('a row group is declared sorted exactly if DuckDB finds it sorted', async () => {
  const shards = fc.array(
    fc.array(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 2,
    }),
    { minLength: 1, maxLength: 2 },
  )
  let files = 0
  await fc.assert(
    fc.asyncProperty(shards, fc.boolean(), async (shard, grouped) => {
      const { file, orders: declared } = await orders(shard, grouped)
      // DuckDB caches what it has read of a file, so each has a name of its own.
      const path = write(`order-${files++}.parquet`, file)
      const [row] = await sql(`select bool_and(ok) from (select coalesce(imported_at >= lag(imported_at)
        over (order by file_row_number), true) as ok from read_parquet('${path}', file_row_number = true))`)
      expect(declared).toEqual(shard.map(() => (row![0] === true ? SORTED : null)))
    }),
    {
      numRuns: cases(180, 20),
      examples: [
        [[[[3, 3]]], false],
        [
          [
            [
              [1, 3],
              [2, 4],
            ],
          ],
          true,
        ],
        [[[[1, 3]], [[2, 4]]], false],
      ],
    },
  )
})

it('no order is declared for other columns, or without imported_at', async () => {
  const others = columns.filter(({ name }) => name !== 'imported_at')
  const recordBatch = recordBatchOf(others, [{ id: 1, leaked: 1 }])
  const file = await encodeShard(snappyParquet, others, [[recordBatch]])
  expect(metadataOf(file).row_groups[0]!.sorting_columns).toBeUndefined()
})
