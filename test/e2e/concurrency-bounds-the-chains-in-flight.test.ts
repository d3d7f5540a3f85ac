import { expect, it } from 'vitest'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const SLOTS = [
  { flags: ['--concurrency', '3'], most: 3 },
  { flags: ['--concurrency', '1'], most: 1 },
]

it.each(some(SLOTS, 1))('at most `concurrency` chains are in flight: $flags', async ({ flags, most }) => {
  const here = await newWorkspace(
    {
      extract: {
        domains: ['scatterholt.com'],
        windows: { from: '2024-01-01', until: '2024-07-01', every: 'month', per_chain: 1 },
        page_size: 10,
      },
    },
    { latencyMs: 15 },
  )
  expect((await here.run(...flags)).code).toBe(0)
  // A chain requests a page after it has the one before, so a window is in flight from its first request to its last.
  const windows = new Map<string, { first: number; last: number }>()
  for (const { body, number } of here.searches()) {
    const { gte } = (body as { filters: { imported_at: { gte: string } } }).filters.imported_at
    const seen = windows.get(gte)
    windows.set(gte, { first: seen?.first ?? number, last: number })
  }
  expect(windows.size).toBe(6)
  const atOnce = here
    .searches()
    .map(
      ({ number }) =>
        [...windows.values()].filter(({ first, last }) => first <= number && number <= last).length,
    )
  expect(Math.max(...atOnce)).toBe(most)
})
