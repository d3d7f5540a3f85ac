import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cases } from '../support/thorough.ts'
import { anyRowGroups, encodeShard, everyColumn, type Page, snappyParquet } from './shard-fixture.ts'

const encode = (rowGroups: readonly (readonly Page[])[]): Promise<Buffer> =>
  encodeShard(
    snappyParquet,
    everyColumn,
    rowGroups.map((pages) => pages.map(({ recordBatch }) => recordBatch)),
  )

// Memory is reused from column to column and from row group to row group.
it('a shard does not depend on what was encoded before it', async () => {
  await fc.assert(
    fc.asyncProperty(anyRowGroups, anyRowGroups, async (rowGroups, others) => {
      const first = await encode(rowGroups)
      await encode(others)
      expect(Buffer.compare(await encode(rowGroups), first)).toBe(0)
    }),
    { numRuns: cases(200, 40) },
  )
})
