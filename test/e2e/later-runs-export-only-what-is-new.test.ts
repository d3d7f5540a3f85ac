import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const parts = (from: string, until: string, every?: string) => ({
  extract: { domains: DOMAINS, windows: { from, until, every }, page_size: 50 },
})

it('a second run sends nothing and changes no row', async () => {
  const here = await newWorkspace(parts('2024-01-01', '2025-01-01', 'month'))
  const first = await here.run()
  expect(first.summary).toMatchObject({ status: 'complete', rows: 300, partitions: { total: 24, done: 24 } })
  const sent = here.sandbox.requests.length
  const { shards, totals } = await here.manifest()

  const second = await here.run()
  expect(second.code).toBe(0)
  expect(second.summary).toMatchObject({
    status: 'complete',
    partitions: { total: 24, done: 24, failed: 0, pending: 0 },
    rows: 0,
    shards: 0,
    bytes: 0,
    requests: 0,
    retries: 0,
    quarantined: 0,
  })
  expect(here.sandbox.requests).toHaveLength(sent)
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
  const after = await here.manifest()
  expect(after).toMatchObject({ shards, totals })
  expect(after.runs.map(({ status, requests }) => [status, requests])).toEqual([
    ['complete', sent],
    ['complete', 0],
  ])
})

const CHANGES = [
  { what: 'a later until', changes: [['2024-01-01', '2024-05-01', 'month']] },
  { what: 'an earlier from', changes: [['2023-12-01', '2024-03-15', 'month']] },
  { what: 'shorter windows', changes: [['2024-01-01', '2024-04-10', 'week']] },
  { what: 'longer windows', changes: [['2024-01-01', '2025-01-01', 'year']] },
  { what: 'one window for all', changes: [['2024-01-01', '2024-06-01']] },
  {
    what: 'one change after the other',
    changes: [
      ['2024-01-10', '2024-04-20', '12d'],
      ['2023-11-05', '2024-09-09T09:09:09Z', 'month'],
    ],
  },
] as const

describe.each(some(CHANGES, 2))('after months until the middle of March, $what', ({ changes }) => {
  it('adds the missing rows, and no row twice', async () => {
    const first = ['2024-01-01', '2024-03-15', 'month'] as const
    const here = await newWorkspace(parts(...first))
    expect((await here.run()).code).toBe(0)
    const ranges: (readonly [string, string, string?])[] = [first, ...changes]
    for (const range of changes) {
      await here.write(parts(...(range as readonly [string, string, string?])))
      const { summary } = await exits(0, here.run())
      expect(summary.requests).toBeGreaterThan(0)
    }
    const from = ranges.map(([from]) => from).sort()[0]!
    const until = ranges
      .map(([, until]) => until)
      .sort()
      .at(-1)!
    await here.expectRows(DOMAINS, { from, until })
  })
})
