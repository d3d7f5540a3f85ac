import { expect, it } from 'vitest'
import { searchesOf } from '../../src/core/index.ts'

it('a page costs a search for each 100 rows, or as many as are set, or one search', () => {
  expect([0, 1, 100, 101, 10_000].map((rows) => searchesOf(rows, 100))).toEqual([1, 1, 1, 2, 100])
  expect([0, 250, 10_000].map((rows) => searchesOf(rows, 250))).toEqual([1, 1, 40])
  expect([0, 10_000].map((rows) => searchesOf(rows, null))).toEqual([1, 1])
})
