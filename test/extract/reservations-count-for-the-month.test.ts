import { expect, it } from 'vitest'
import { Budget } from '../../src/extract/pace/budget.ts'
import { SearchLedger } from '../../src/extract/pace/search-ledger.ts'
import { fakeClock } from './support.ts'

it("the possible cost of requests in flight counts for the month's share, until it is released", async () => {
  const monthly = { searches: 2, before: new Map() }
  const ledger = new SearchLedger({ reading: null }, true)
  const budget = new Budget({ maxRequests: null, minSearchesRemaining: null, monthly }, ledger, fakeClock())
  const spending = { where: 'here', size: 100, sizing: null, signal: new AbortController().signal }
  const first = await budget.reserve(spending)
  const second = await budget.reserve(spending)
  let hasThird = false
  const third = budget.reserve(spending).then((reservation) => {
    hasThird = true
    return reservation
  })
  await new Promise(setImmediate)
  expect(hasThird).toBe(false)
  first.release()
  for (const [i, each] of [second, await third].entries()) {
    each.spend()
    ledger.responded(each.flight!, 10 - i, true)
    ledger.read(each.flight!, 100)
  }
  await expect(budget.reserve(spending)).rejects.toThrow('are used up')
})
