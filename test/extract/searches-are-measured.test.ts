import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  estimatedCost,
  expectedCost,
  figuresOf,
  mayCost,
  NOT_MEASURED,
  type PageCost,
} from '../../src/core/index.ts'
import { SearchLedger } from '../../src/extract/pace/search-ledger.ts'

describe('the measured cost of pages', () => {
  it('is the number of searches that the service took, in whatever order the responses come', () => {
    // Each request is written, carried out and responded to; those in between are in flight.
    const traffic = fc.array(fc.record({ rows: fc.integer({ min: 0, max: 10_000 }), late: fc.nat(3) }), {
      minLength: 2,
      maxLength: 40,
    })
    fc.assert(
      fc.property(traffic, fc.constantFrom(0, 100), (requests, rowsPerSearch) => {
        const costs: PageCost[] = []
        const ledger = new SearchLedger({ costs: [] }, null, (cost) => costs.push(cost))
        let left = 100_000
        const inFlight: { at: number; respond: () => void }[] = []
        for (const [i, { rows, late }] of requests.entries()) {
          const flight = ledger.begin(100)
          flight.write()
          left -= rowsPerSearch === 0 ? 1 : Math.max(1, Math.ceil(rows / rowsPerSearch))
          const remaining = left
          inFlight.push({
            at: i + late,
            respond() {
              flight.responded(remaining, true)
              flight.rows(rows)
            },
          })
          for (const each of inFlight.filter(({ at }) => at <= i)) each.respond()
          inFlight.splice(0, inFlight.length, ...inFlight.filter(({ at }) => at > i))
        }
        for (const { respond } of inFlight.sort((a, b) => a.at - b.at)) respond()
        const expected = requests
          .slice(1)
          .map(({ rows }): PageCost => [rows, rowsPerSearch === 0 ? 1 : Math.max(1, Math.ceil(rows / 100))])
        expect(costs).toEqual(expected)
        const first = Math.min(
          estimatedCost(ledger.costs, requests[0]!.rows),
          Math.max(1, Math.ceil(requests[0]!.rows / 100)),
        )
        expect(ledger.spent).toBe(first + expected.reduce((sum, [, searches]) => sum + searches, 0))
        expect(ledger.remaining).toBe(left)
        expect(ledger.reserved).toBe(0)
      }),
    )
  })

  it('is the dearer reading until pages of many rows are measured', () => {
    expect(mayCost([], 10_000)).toBe(100)
    expect(mayCost(Array(30).fill([50, 1]), 10_000)).toBe(100)
    expect(mayCost([[10_000, 1]], 10_000)).toBe(1)
    expect(mayCost([[10_000, 100]], 5000)).toBe(50)
    expect(mayCost([[2000, 20]], 10_000)).toBe(100)
  })

  it('is not shown by pages that cost nothing because the same search was sent before', () => {
    const free: PageCost[] = Array(30).fill([10_000, 0])
    expect(mayCost(free, 10_000)).toBe(100)
    expect(estimatedCost(free, 1000)).toBe(10)
    expect(expectedCost(free, { requests: 3, rows: 30_000 })).toBeNull()
    expect(mayCost([...free, [10_000, 100]], 5000)).toBe(50)
    expect(mayCost([...free, [10_000, 1]], 10_000)).toBe(1)
    const figures = figuresOf({ ...NOT_MEASURED, costs: [...free, [10_000, 100]] })
    expect(figures).toMatchObject({ searchesPerRequest: 100, searchesPer1000Rows: 10 })
  })

  it('excludes occasional searches of others', () => {
    const costs: PageCost[] = Array.from({ length: 11 }, (_, i) => [10_000, i % 4 === 0 ? 900 : 1])
    expect(mayCost(costs, 10_000)).toBe(1)
  })
})

it('ignores a new month, in which searches left go up', () => {
  const ledger = new SearchLedger({ costs: [] }, null)
  for (const remaining of [10, 9, 9_999, 9_998]) {
    const flight = ledger.begin(1)
    flight.write()
    flight.responded(remaining, true)
    flight.rows(100)
  }
  expect(ledger.remaining).toBe(9_998)
  expect(ledger.spent).toBe(4)
})

it('stays reserved for a request without response until a later response includes it', () => {
  const ledger = new SearchLedger({ costs: [] }, null)
  const respond = (remaining: number | null): void => {
    const flight = ledger.begin(100)
    flight.write()
    flight.responded(remaining, true)
    flight.rows(remaining === null ? null : 10_000)
  }
  respond(1000)
  respond(null)
  expect(ledger.reserved).toBe(100)
  respond(800)
  expect(ledger.reserved).toBe(0)
  expect(ledger.spent).toBeGreaterThanOrEqual(200)
})

describe('the first page of a run', () => {
  const first = (left: number | null, remaining: number, costs: PageCost[] = []): SearchLedger => {
    const ledger = new SearchLedger({ costs }, null, () => {}, left)
    const flight = ledger.begin(100)
    flight.write()
    flight.responded(remaining, true)
    flight.rows(500)
    return ledger
  }

  it('costs what is fewer than the last run saw', () => {
    expect(first(1000, 995).spent).toBe(5)
    expect(first(1000, 999).spent).toBe(1)
    expect(first(1000, 999).costs).toEqual([[500, 1]])
  })

  it('is estimated when others have spent since, or the quota is new', () => {
    for (const left of [null, 5000, 994]) {
      expect(first(left, 995).spent).toBe(5)
      expect(first(left, 995).costs).toEqual([])
    }
    // Pages of few rows do not show what a larger one costs.
    expect(first(null, 995, [[22, 1]]).spent).toBe(5)
    expect(first(null, 995, [[1000, 1]]).spent).toBe(1)
    // Others have spent while that page was measured.
    expect(first(null, 995, [[1000, 900]]).spent).toBe(5)
  })

  it('counts as much as it may cost while it is decoded, also beside a smaller page', () => {
    const ledger = new SearchLedger({ costs: [] }, null)
    const respond = (cost: number, remaining: number) => {
      const flight = ledger.begin(cost)
      flight.write()
      flight.responded(remaining, true)
      return flight
    }
    const first = respond(100, 900)
    expect(ledger.spent).toBe(100)
    const second = respond(50, 850)
    expect(ledger.spent).toBe(150)
    second.rows(5000)
    expect(ledger.spent).toBe(150)
    first.rows(10_000)
    expect(ledger.spent).toBe(150)
  })

  it('comes after pages that timed out: these are reserved until it tells what they cost', () => {
    for (const [left, spent] of [
      [null, 5],
      [1000, 155],
    ] as const) {
      const ledger = new SearchLedger({ costs: [] }, null, () => {}, left)
      for (const cost of [100, 100]) {
        const flight = ledger.begin(cost)
        flight.write()
        flight.responded(null, true)
      }
      expect(ledger.spent).toBeNull()
      expect(ledger.reserved).toBe(200)
      const flight = ledger.begin(100)
      flight.write()
      flight.responded(845, true)
      flight.rows(500)
      expect(ledger.spent).toBe(spent)
      expect(ledger.reserved).toBe(0)
    }
  })
})
