import { expect, it } from 'vitest'
import type { ExpectedStat } from '../../src/core/index.ts'
import { temporaryStore, write } from './temporary-store.ts'

async function different(stats: readonly ExpectedStat[]): Promise<readonly ExpectedStat[]> {
  const { store } = temporaryStore()
  await write(store, 'a/one', '12345')
  await write(store, 'a/two', '')
  const check = store.statCheck()
  try {
    for (const stat of stats) check.add(stat)
    return await check.mismatches()
  } finally {
    await check.close()
  }
}

const AS_EXPECTED: readonly ExpectedStat[] = [
  { path: 'a/one', bytes: 5 },
  { path: 'a/two', bytes: 0 },
  { path: 'a', names: 2 },
]
const OTHERWISE: readonly ExpectedStat[] = [
  { path: 'a/one', bytes: 4 },
  { path: 'a/one', bytes: 6 },
  { path: 'a/three', bytes: 0 },
  { path: 'a/one/two', bytes: 0 },
  { path: 'a', names: 1 },
  { path: 'a', names: 3 },
  { path: 'b', names: 0 },
  { path: 'a/one', names: 0 },
]

it('finds nothing if everything is as expected', async () => {
  expect(await different([])).toEqual([])
  expect(await different(AS_EXPECTED)).toEqual([])
})

it('finds files of another size, folders with another number of names, and missing files', async () => {
  expect(await different([...AS_EXPECTED, ...OTHERWISE])).toEqual(OTHERWISE)
})

it.each([999, 1000, 1001, 2000, 5432])('finds each of them once among %d stats', async (count) => {
  const stats = Array.from({ length: count }, (_, index) => AS_EXPECTED[index % AS_EXPECTED.length]!)
  const indexes = [0, Math.floor(count / 2), count - 1]
  for (const [index, i] of indexes.entries()) stats[i] = OTHERWISE[index]!
  expect(await different(stats)).toEqual(OTHERWISE.slice(0, indexes.length))
})
