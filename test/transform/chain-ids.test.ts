import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PageIds } from '../../src/rows/index.ts'
import { ChainIds } from '../../src/transform/chain-ids.ts'

const id = fc.oneof(
  fc.integer({ min: 33880703907, max: 33880703930 }),
  fc.integer({ min: -5, max: 5 }),
  fc.maxSafeInteger(),
  fc.constantFrom(
    2n ** 53n,
    2n ** 53n + 1n,
    -(2n ** 63n),
    2n ** 63n - 1n,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 31,
    -(2 ** 31),
  ),
)
/** In any order, or ascending as the service mostly sends them. */
const ids = fc
  .tuple(fc.array(id, { maxLength: 30 }), fc.constantFrom('any', 'asc', 'desc'))
  .map(([ids, order]) => (order === 'any' ? ids : ids.sort((a, b) => (a < b === (order === 'asc') ? -1 : 1))))
const page = fc.record({ ids, rejected: fc.array(id, { maxLength: 3 }) })

test('an id is new only once, whatever the order', () => {
  const chain = new ChainIds()
  fc.assert(
    fc.property(fc.array(page, { minLength: 1, maxLength: 4 }), (pages) => {
      const recent: PageIds[] = []
      for (const { ids, rejected } of pages) {
        const before = recent.slice(-2)
        chain.begin({ recent: before, known: [] })
        const rowsBefore = new Set(before.flatMap(({ rows }) => idsOf(rows)))
        const refusedBefore = new Set(before.flatMap((page) => idsOf(page.rejected)))
        const expected = [
          ids.map((id) => isNewTo(rowsBefore, id)),
          rejected.map((id) => isNewTo(refusedBefore, id)),
        ]
        const results = [ids.map((id) => chain.isNewRow(id)), rejected.map((id) => chain.isNewRejection(id))]
        expect(results).toEqual(expected)
        expect(chain.repeated).toBe(expected.flat().filter((isNew) => !isNew).length)
        const page = chain.page()
        expect(idsOf(page.rows)).toEqual(ids.filter((_, i) => expected[0]![i]).map(BigInt))
        expect(idsOf(page.rejected)).toEqual(rejected.filter((_, i) => expected[1]![i]).map(BigInt))
        recent.push(page)
      }
    }),
  )
})

const idsOf = (words: Int32Array): bigint[] => [...new BigInt64Array(words.slice().buffer)]

function isNewTo(known: Set<bigint>, id: number | bigint): boolean {
  if (known.has(BigInt(id))) return false
  known.add(BigInt(id))
  return true
}
