import { expect, it } from 'vitest'
import { statusShape } from '../support/json-shapes.ts'
import { readParquet } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

it.each(some(['asc', 'desc'], 1))(
  'a service that ignores the filter fails the partition, %s, and no row outside the range is exported',
  async (order) => {
    const here = await newWorkspace(
      {
        extract: {
          domains: ['scatterholt.com'],
          windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' },
          page_size: 20,
          concurrency: 1,
          order,
        },
      },
      { records: 600, ignoreFilters: true },
    )
    const { summary } = await exits(1, here.run(), 'ignored the filter')
    // Pages inside the range were committed before: in ascending order all of January.
    const done = order === 'asc' ? 1 : 0
    expect(summary).toMatchObject({ status: 'failed', partitions: { total: 2, done, failed: 2 - done } })
    const { partitions } = statusShape.parse((await here.json('status')).value)
    for (const { state, error } of partitions.slice(done)) {
      expect(state).toBe('failed')
      expect(error).toContain('imported_at')
    }
    for (const row of await readParquet(here.output))
      expect(Number(row.imported_at) / 1000).toBeLessThan(Date.parse('2024-03-01'))
    await expect(here.manifest()).resolves.toMatchObject({ runs: [{ status: 'failed' }] })
  },
)
