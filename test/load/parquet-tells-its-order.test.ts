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

it('a row group is declared sorted exactly if DuckDB finds it sorted', async () => {
  const page = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 })
  const shards = fc.array(fc.array(page, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 })
  let files = 0
  await fc.assert(
    fc.asyncProperty(shards, fc.boolean(), async (shard, grouped) => {
      const { file, orders: declared } = await orders(shard, grouped)
      // DuckDB caches what it has read of a file, so each has a name of its own.
      const path = write(`order-${files++}.parquet`, file)
      const [row] = await sql(`select bool_and(ok) from (select coalesce(imported_at >= lag(imported_at)
        over (order by file_row_number), true) as ok from read_parquet('${path}', file_row_number = true))`)
      const rowGroups = shard.filter((pages) => pages.flat().length > 0)
      expect(declared).toEqual(rowGroups.map(() => (row![0] === true ? SORTED : null)))
    }),
    { numRuns: cases(180, 20), examples: EXAMPLES.map((shard, i) => [shard, i % 2 === 0]) },
  )
})

// biome-ignore format: a table
const EXAMPLES: number[][][][] = [
  [[[3, 3]]],
  [[[1, 3], [2, 4]]],
  [[[1, 3]], [[2, 4]]],
  [[[-5, 1], [1, 4]], [[4, 9]]],
  [[[1, 2]], [[]], [[2, 3]]],
  [[[1, 2]], [[4, 3]], [[5, 6]]],
]

it('no order is declared for other columns, or without imported_at', async () => {
  const others = columns.filter(({ name }) => name !== 'imported_at')
  const recordBatch = recordBatchOf(others, [{ id: 1, leaked: 1 }])
  const file = await encodeShard(snappyParquet, others, [[recordBatch]])
  expect(metadataOf(file).row_groups[0]!.sorting_columns).toBeUndefined()
})
