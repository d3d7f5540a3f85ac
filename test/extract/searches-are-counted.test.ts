import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { figuresOf, mayCost, NOT_MEASURED, type Reading } from '../../src/core/index.ts'
import { SearchCount } from '../../src/extract/pace/search-count.ts'
import { expectedCost } from '../../src/run/plan.ts'

const countOf = () => new SearchCount({ reading: null }, null)

/** A page that is sent alone. */
function page(count: SearchCount, remaining: number | null, rows: number): void {
  const request = count.begin(100)
  count.write(request)
  count.responded(request, remaining)
  count.read(request, rows)
  count.end(request)
}

/** What pages of so many rows show, by how much the number left falls with each. */
function shown(rows: number, ...falls: number[]): Reading | null {
  const count = countOf()
  let left = 1000
  page(count, left, rows)
  for (const fall of falls) {
    left -= fall
    page(count, left, rows)
  }
  return count.reading
}

describe('what pages cost', () => {
  it('is the dearer reading until pages show another', () => {
    expect([mayCost(null, 10_000), mayCost('100 rows', 5000), mayCost('request', 10_000)]).toEqual([
      100, 50, 1,
    ])
    expect(expectedCost(null, { requests: 3, rows: 30_000 })).toBeNull()
    expect(expectedCost('request', { requests: 3, rows: 30_000 })).toBe(3)
    expect(expectedCost('100 rows', { requests: 3, rows: 250 })).toBe(3)
  })

  it('is shown by two pages in a row, however much others spend', () => {
    expect(shown(500, 1, 1)).toBe('request')
    expect(shown(500, 3, 4)).toBe('request')
    expect(shown(500, 5, 5)).toBe('100 rows')
    expect(shown(500, 1)).toBeNull()
    expect(shown(500, 1, 7)).toBeNull()
    expect(shown(500, 1, 7, 1, 1)).toBe('request')
    expect(shown(500, 5, 5, 1, 2)).toBe('request')
    expect(shown(500, 7, 9, 6)).toBeNull()
  })

  it('is not shown by pages of few rows, by free ones, by a count that lags or is renewed', () => {
    expect(shown(100, 1, 1, 1)).toBeNull()
    expect(shown(500, 0, 0, 0)).toBeNull()
    // Two replicas, of which one is ten behind.
    expect(shown(500, -5, 15, -5, 15, -5)).toBeNull()
    expect(shown(500, 2, 8, 2, 8)).toBeNull()
    expect(shown(500, -9000, 1)).toBeNull()
    // Parts of searches: 130 rows are two searches, 260 are three, 390 are four.
    expect(shown(130, 1, 1)).toBeNull()
  })

  it('is not shown by pages that were on the way together', () => {
    const count = countOf()
    page(count, 1000, 500)
    for (let left = 998; left > 980; left -= 2) {
      const both = [count.begin(100), count.begin(100)]
      for (const request of both) count.write(request)
      for (const [i, request] of both.entries()) {
        count.responded(request, left - i)
        count.read(request, 500)
        count.end(request)
      }
    }
    expect(count.reading).toBeNull()
  })

  it('has no figures before', () => {
    expect(figuresOf({ ...NOT_MEASURED, pageSize: 500, reportsSearchesLeft: true })).toEqual({
      pageSize: 500,
      searchesPerRequest: null,
      searchesPer1000Rows: null,
    })
  })
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
      fc.property(pages, (all) => {
        const count = countOf()
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
          left -= mayCost(null, rows) + others
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
        const dear = all.reduce((sum, { rows }) => sum + mayCost(null, rows), 0)
        const byPage = count.reading === 'request'
        expect(count.spent).toBe(all.length === 0 ? null : byPage ? all.length : dear)
        expect(count.uncounted).toBe(0)
      }),
    )
  })

  it('is the lower sum for all pages once it is shown that each costs one', () => {
    const count = countOf()
    page(count, 1000, 500)
    expect(count.spent).toBe(5)
    page(count, 999, 500)
    page(count, 998, 500)
    expect(count.spent).toBe(3)
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
    expect(count).toMatchObject({ spent: 10, remaining: 100, uncounted: 0 })
  })

  it('is unknown where the service tells of no quota', () => {
    const count = countOf()
    page(count, null, 500)
    expect(count.spent).toBeNull()
  })
})

it('a page is counted once: on its way by what it may cost, then by its rows', () => {
  const count = countOf()
  const request = count.begin(100)
  expect([count.untold, count.uncounted]).toEqual([100, 100])
  count.write(request)
  count.responded(request, 900)
  expect([count.untold, count.uncounted, count.spent]).toEqual([0, 100, 0])
  count.read(request, 150)
  expect([count.untold, count.uncounted, count.spent]).toEqual([0, 0, 2])
})
