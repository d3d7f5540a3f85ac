import { expect, it } from 'vitest'
import { highWord, IdSet, lowWord } from '../../src/transform/index.ts'

it('ids with a zero lower or upper half are kept while the set grows', () => {
  const ids = Array.from({ length: 3000 }, (_, i) => [i, i * 2 ** 32]).flat()
  const set = new IdSet()
  const isNew = (id: number): boolean => set.add(lowWord(id), highWord(id))
  expect(ids.filter(isNew)).toHaveLength(new Set(ids).size)
  expect(ids.filter(isNew)).toEqual([])
})
