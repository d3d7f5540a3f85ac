import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { searchesOf } from '../../src/core/index.ts'
import { SearchCount } from '../../src/extract/pace/search-count.ts'

const countOf = (rowsPerSearch: number | null = 100) => new SearchCount(rowsPerSearch, null)

function page(count: SearchCount, remaining: number | null, rows: number): void {
  const request = count.begin(100)
  count.write(request)
  count.responded(request, remaining)
  count.read(request, rows)
  count.end(request)
}

it('a page costs a search for each 100 rows, or as many as are set, or one search', () => {
  expect([0, 1, 100, 101, 10_000].map((rows) => searchesOf(rows, 100))).toEqual([1, 1, 1, 2, 100])
  expect([0, 250, 10_000].map((rows) => searchesOf(rows, 250))).toEqual([1, 1, 40])
  expect([0, 10_000].map((rows) => searchesOf(rows, null))).toEqual([1, 1])
})

describe('what is spent', () => {
  const pages = fc.array(
    fc.record({
      rows: fc.integer({ min: 0, max: 10_000 }),
      others: fc.nat(20),
      lag: fc.nat(10),
      late: fc.nat(3),
    }),
    { maxLength: 40 },
  )

  it('is the sum over our own pages, whatever the header says, in whatever order responses come', () => {
    fc.assert(
      fc.property(pages, fc.constantFrom(null, 100, 7), (all, rowsPerSearch) => {
        const count = countOf(rowsPerSearch)
        let left = 1_000_000
        const onTheWay: { at: number; respond: () => void }[] = []
        const respondUntil = (time: number): void => {
          for (const each of onTheWay.filter(({ at }) => at <= time)) {
            onTheWay.splice(onTheWay.indexOf(each), 1)
            each.respond()
          }
        }
        for (const [i, { rows, others, lag, late }] of all.entries()) {
          const request = count.begin(100)
          count.write(request)
          left -= searchesOf(rows, rowsPerSearch) + others
          const remaining = left + lag
          onTheWay.push({
            at: i + late,
            respond: () => {
              count.responded(request, remaining)
              count.read(request, rows)
              count.end(request)
            },
          })
          respondUntil(i)
        }
        respondUntil(Number.POSITIVE_INFINITY)
        const sum = all.reduce((sum, { rows }) => sum + searchesOf(rows, rowsPerSearch), 0)
        expect(count.spent).toBe(all.length === 0 ? null : sum)
        expect(count.reserved).toBe(0)
      }),
    )
  })

  it('does not include pages that were refused or did not come', () => {
    const count = countOf()
    page(count, 1000, 500)
    for (let i = 0; i < 9; i++) {
      const request = count.begin(100)
      count.write(request)
      count.end(request)
    }
    page(count, 100, 500)
    expect(count).toMatchObject({ spent: 10, remaining: 100, reserved: 0 })
  })

  it('is unknown where the service tells of no quota', () => {
    const count = countOf()
    page(count, null, 500)
    expect(count.spent).toBeNull()
  })
})

it('a page is counted once: reserved as a full one, then by its rows', () => {
  const count = countOf()
  const request = count.begin(100)
  count.write(request)
  count.responded(request, 900)
  expect([count.reserved, count.spent]).toEqual([100, 0])
  count.read(request, 150)
  expect([count.reserved, count.spent]).toEqual([0, 2])
})
