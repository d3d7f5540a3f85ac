import { describe, expect, it } from 'vitest'
import { countOfIds, type PageIds, withPage } from '../../src/rows/index.ts'

/** A chain's recent ids after pages with so many ids each: 1, 2, 3, … */
function idsOf(pages: readonly number[]): readonly PageIds[] {
  let recent: readonly PageIds[] = []
  let next = 1
  for (const count of pages) {
    const rows = Int32Array.from({ length: 2 * count }, (_, i) => (i % 2 === 0 ? next + i / 2 : 0))
    next += count
    recent = withPage(recent, { rows, rejected: new Int32Array(0) })
  }
  return recent
}

function rowsOf(recent: readonly PageIds[]): readonly number[] {
  return recent.flatMap(({ rows }) => [...rows].filter((_, i) => i % 2 === 0))
}

describe('the recent ids of a chain', () => {
  it('of 1,000 pages of 100 rows are the last 20,000 or a few more, in a few lists', () => {
    const recent = idsOf(Array.from({ length: 1000 }, () => 100))
    const rows = rowsOf(recent)
    expect(rows.length).toBeGreaterThanOrEqual(20_000)
    expect(rows.length).toBeLessThan(22_000)
    expect(rows).toEqual(Array.from({ length: rows.length }, (_, i) => 100_001 - rows.length + i))
    expect(recent.length).toBeLessThanOrEqual(22)
  })

  it('of full pages are those of the last two', () => {
    expect(idsOf([10_000, 10_000, 10_000, 10_000]).map(countOfIds)).toEqual([10_000, 10_000])
  })

  it('of large pages between small ones are still 20,000', () => {
    const pages = [10_000, 3, 10_000, 0, 3, 10_000]
    expect(rowsOf(idsOf(pages)).length).toBeGreaterThanOrEqual(20_000)
    expect(rowsOf(idsOf(pages)).at(-1)).toBe(30_006)
  })
})
