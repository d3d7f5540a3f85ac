import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PackedShardList, type SealedShard } from '../../src/state/checkpoint/packed-collections.ts'

const shard: fc.Arbitrary<SealedShard> = fc.record({
  shard: fc.nat(),
  path: fc.string({ unit: 'grapheme' }),
  rows: fc.nat(),
  bytes: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
  sha256: fc.stringMatching(/^[0-9a-f]{64}$/),
  partitions: fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 3 }),
  imported_at: fc.option(fc.record({ min: fc.maxSafeInteger(), max: fc.maxSafeInteger() })),
})

it('shards are read back unchanged and in order, however many', () => {
  fc.assert(
    fc.property(fc.array(shard, { maxLength: 350, size: 'max' }), (shards) => {
      const list = new PackedShardList()
      for (const [index, each] of shards.entries()) {
        list.push(each)
        expect(list.length).toBe(index + 1)
      }
      expect([...list]).toEqual(shards)
    }),
    { numRuns: 30 },
  )
})

it('an iteration during additions returns each shard once', () => {
  const make = (number: number): SealedShard => ({
    shard: number,
    path: `credentials/part-${number}.csv`,
    rows: 1,
    bytes: 1,
    sha256: 'ab'.repeat(32),
    partitions: ['domain.acme.com/all'],
    imported_at: null,
  })
  const list = new PackedShardList()
  for (let number = 0; number < 150; number++) list.push(make(number))
  const seen: number[] = []
  for (const { shard } of list) {
    seen.push(shard)
    if (shard < 100) list.push(make(150 + shard))
  }
  expect(seen).toEqual([...seen.keys()])
  expect(seen.length).toBeGreaterThanOrEqual(150)
})
