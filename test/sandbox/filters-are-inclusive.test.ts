import { expect, test } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { micros, searchAll } from './client.ts'

const query = { type: 'domain', fqdn: 'tarnhollow.io' } as const

test('both bounds are inclusive to the microsecond', async () => {
  const sandbox = await startSandbox({ records: 400 })
  const all = [...sandbox.expected({ query })]
  const low = all[100]!.imported_at
  const high = all[200]!.imported_at
  const wanted = all.filter((item) => {
    const at = micros(item.imported_at)
    return at >= micros(low) && at <= micros(high)
  })
  const bounded = (gte: string, lte: string) =>
    searchAll(sandbox, { query, filters: { imported_at: { gte, lte } }, order: 'asc', size: 64 })
  expect(await bounded(low, high)).toEqual(wanted)
  const justInside = await bounded(shifted(low, 1n), shifted(high, -1n))
  const edges = wanted.filter((item) => [micros(low), micros(high)].includes(micros(item.imported_at)))
  expect(justInside).toHaveLength(wanted.length - edges.length)
  // Beyond the sixth digit: later than low, so low is out.
  expect(await bounded(shifted(low, 0n, '1'), high)).toHaveLength(
    wanted.filter((item) => micros(item.imported_at) > micros(low)).length,
  )
})

test('records lie exactly on month starts, and expected() gives them to one window', async () => {
  const sandbox = await startSandbox({ records: 1000 })
  const boundary = micros('2024-02-01T00:00:00Z')
  const january = [...sandbox.expected({ query, from: '2024-01-01', until: '2024-02-01' })]
  const february = [...sandbox.expected({ query, from: '2024-02-01', until: '2024-03-01' })]
  expect(january.some((item) => micros(item.imported_at) === boundary)).toBe(false)
  expect(february.filter((item) => micros(item.imported_at) === boundary).length).toBeGreaterThan(1)
  const found = await searchAll(sandbox, {
    query,
    filters: { imported_at: { gte: '2024-01-01T00:00:00Z', lte: '2024-02-01T01:00:00+01:00' } },
    size: 1000,
  })
  const onBoundary = found.filter((item) => micros(item.imported_at) === boundary)
  expect(found.length).toBe(january.length + onBoundary.length)
  expect(onBoundary.length).toBeGreaterThan(1)
})

test('one bound alone, an empty range and a range the wrong way round', async () => {
  const sandbox = await startSandbox({ records: 100 })
  const count = async (imported_at: object) =>
    (await searchAll(sandbox, { query, filters: { imported_at }, size: 1000 })).length
  const before = await count({ lte: '2024-06-30T23:59:59.999999Z' })
  const after = await count({ gte: '2024-07-01' })
  expect(before + after).toBe(100)
  expect(await count({ gte: '2025-06-01', lte: '2025-07-01' })).toBe(0)
  expect(await count({ gte: '2024-07-01', lte: '2024-06-01' })).toBe(0)
  expect(await count({ gte: null })).toBe(100)
})

/** The instant some microseconds later, in UTC; `more` are digits after the sixth. */
function shifted(time: string, by: bigint, more = ''): string {
  const at = micros(time) + by
  const seconds = new Date(Number(at / 1_000_000n) * 1000).toISOString().slice(0, 19)
  return `${seconds}.${String(at % 1_000_000n).padStart(6, '0')}${more}Z`
}
