import fc from 'fast-check'
import { expect, it } from 'vitest'
import { anyChunks, encodeShard, everyColumn, type Page, snappyParquet } from './shard-fixture.ts'

const encode = (chunks: readonly (readonly Page[])[]): Promise<Buffer> =>
  encodeShard(
    snappyParquet,
    everyColumn,
    chunks.map((pages) => pages.map(({ recordBatch }) => recordBatch)),
  )

// Memory is used again from column to column and from chunk to chunk.
it('a shard does not depend on what was encoded before it', async () => {
  await fc.assert(
    fc.asyncProperty(anyChunks, anyChunks, async (chunks, others) => {
      const first = await encode(chunks)
      await encode(others)
      expect(Buffer.compare(await encode(chunks), first)).toBe(0)
    }),
    { numRuns: 200 },
  )
})
