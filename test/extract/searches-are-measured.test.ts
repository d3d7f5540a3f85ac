import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expectedCost, figuresOf, mayCost, NOT_MEASURED } from '../../src/core/index.ts'
import { SearchLedger } from '../../src/extract/pace/search-ledger.ts'

const ledgerOf = (left: number | null = null) => new SearchLedger({ reading: null }, null, left)

function respond(ledger: SearchLedger, remaining: number | null, rows: number | null, cost = 100): void {
  const flight = ledger.begin(cost)
  ledger.write(flight)
  ledger.responded(flight, remaining, true)
  if (rows !== null) ledger.read(flight, rows)
}

it('what is spent is what the service took, and no page tells what is not so, in whatever order responses come', () => {
  // Each request is written, carried out and responded to; those in between are in flight.
  const traffic = fc.array(fc.record({ rows: fc.integer({ min: 0, max: 10_000 }), late: fc.nat(3) }), {
    minLength: 2,
    maxLength: 40,
  })
  fc.assert(
    fc.property(traffic, fc.constantFrom('request', '100 rows'), (requests, reading) => {
      const ledger = ledgerOf()
      let left = 100_000
      const inFlight: { at: number; respond: () => void }[] = []
      for (const [i, { rows, late }] of requests.entries()) {
        const flight = ledger.begin(100)
        ledger.write(flight)
        left -= mayCost(reading, rows)
        const remaining = left
        const respond = () => {
          ledger.responded(flight, remaining, true)
          ledger.read(flight, rows)
        }
        inFlight.push({ at: i + late, respond })
        for (const each of inFlight.filter(({ at }) => at <= i)) each.respond()
        inFlight.splice(0, inFlight.length, ...inFlight.filter(({ at }) => at > i))
      }
      for (const { respond } of inFlight.sort((a, b) => a.at - b.at)) respond()
      expect([null, reading]).toContain(ledger.reading)
      const first = requests[0]!.rows
      expect(ledger.spent).toBe(100_000 - left - mayCost(reading, first) + mayCost(ledger.reading, first))
      expect(ledger.remaining).toBe(left)
      expect(ledger.reserved).toBe(0)
    }),
  )
})

describe('what pages cost', () => {
  it('is the dearer reading until a page tells', () => {
    expect([mayCost(null, 10_000), mayCost('100 rows', 5000), mayCost('request', 10_000)]).toEqual([
      100, 50, 1,
    ])
    expect(expectedCost(null, { requests: 3, rows: 30_000 })).toBeNull()
    expect(expectedCost('request', { requests: 3, rows: 30_000 })).toBe(3)
    expect(expectedCost('100 rows', { requests: 3, rows: 250 })).toBe(3)
  })

  it('is told by the first page whose cost differs by the readings', () => {
    const told = (rows: number, ...falls: number[]) => {
      const ledger = ledgerOf()
      let left = 1000
      respond(ledger, left, rows)
      for (const fall of falls) {
        left -= fall
        respond(ledger, left, rows)
      }
      return ledger.reading
    }
    expect(told(200, 1)).toBe('request')
    expect(told(200, 2)).toBe('100 rows')
    // Repeated, of few rows, or with searches of others.
    expect(told(200, 0, 0)).toBeNull()
    expect(told(100, 1, 1)).toBeNull()
    expect(told(200, 900)).toBeNull()
    expect(told(200, 7, 1, 2)).toBe('request')
  })

  it('has no figures before', () => {
    expect(figuresOf({ ...NOT_MEASURED, pageSize: 500, reportsSearchesLeft: true })).toEqual({
      pageSize: 500,
      searchesPerRequest: null,
      searchesPer1000Rows: null,
    })
  })
})

it('the first page of a run costs no more than the number fell since the last run', () => {
  const spent = (left: number | null, ...lost: null[]) => {
    const ledger = ledgerOf(left)
    for (const each of lost) respond(ledger, each, null)
    respond(ledger, 995, 500)
    return ledger.spent
  }
  expect([spent(null), spent(5000), spent(994), spent(1000), spent(996)]).toEqual([5, 5, 5, 5, 1])
  // Requests without a page are no part of it.
  expect([spent(null, null), spent(1145, null), spent(1000, null)]).toEqual([5, 5, 5])
})

it.each([null, 11, 10_000, 9_999])(
  'counts on in a new month, in which searches left go up: %s before',
  (left) => {
    const ledger = ledgerOf(left)
    for (const remaining of [10, 9, 9_999, 9_998]) respond(ledger, remaining, 100, 1)
    expect(ledger.remaining).toBe(9_998)
    expect(ledger.spent).toBe(4)
  },
)

it('a request without response stays reserved until a later response includes it', () => {
  const ledger = ledgerOf()
  respond(ledger, 1000, 10_000)
  respond(ledger, null, null)
  expect(ledger.reserved).toBe(100)
  respond(ledger, 800, 10_000)
  expect(ledger.reserved).toBe(0)
  expect(ledger.spent).toBe(300)
})

it('the first page counts as much as it may cost while it is decoded', () => {
  const ledger = ledgerOf()
  const flight = ledger.begin(100)
  ledger.write(flight)
  ledger.responded(flight, 900, true)
  expect(ledger.spent).toBe(100)
  respond(ledger, 850, 5000, 50)
  expect(ledger.spent).toBe(150)
  ledger.read(flight, 50)
  expect(ledger.spent).toBe(51)
})
