import { join } from 'node:path'
import { expect, it } from 'vitest'
import { statusShape } from '../support/json-shapes.ts'
import { readParquet } from '../support/read-shards.ts'
import { difference, expectedRows, SAME } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const query = { type: 'domain', fqdn: 'scatterholt.com' } as const
// So many records that every month, and some midnights, begin with several rows at the first microsecond.
const RECORDS = { records: 600 }

it('a row exactly on the edge of two windows is in the later one, and in no other', async () => {
  const here = await newWorkspace(
    {
      extract: {
        domains: [query.fqdn],
        windows: { from: '2024-03-01', until: '2024-08-01', every: 'month' },
        page_size: 7,
      },
    },
    RECORDS,
  )
  await exits(0, here.run())
  const months = ['03', '04', '05', '06', '07', '08'].map((month) => `2024-${month}-01`)
  for (const [i, from] of months.slice(0, -1).entries()) {
    const wanted = expectedRows(here.sandbox, { query, from, until: months[i + 1]! })
    const first = String(BigInt(Date.parse(from)) * 1000n)
    expect(wanted.filter(({ imported_at }) => imported_at === first)).toHaveLength(4)
    const folder = join(here.output, `credentials/query=domain.${query.fqdn}/import_window=${from}`)
    expect(difference(await readParquet(folder), wanted)).toEqual(SAME)
  }
})

it.each(some(['asc', 'desc'], 1))(
  'a service that ignores the filter fails the partition, %s, and no row outside the range is exported',
  async (order) => {
    const here = await newWorkspace(
      {
        extract: {
          domains: [query.fqdn],
          windows: { from: '2024-01-01', until: '2024-03-01', every: 'month' },
          page_size: 20,
          concurrency: 1,
          order,
        },
      },
      { ...RECORDS, ignoreFilters: true },
    )
    const { code, stderr, summary } = await here.run()
    expect(code).toBe(1)
    expect(stderr).toContain('ignored the filter')
    // Pages inside the range were committed before: in ascending order all of January.
    const done = order === 'asc' ? 1 : 0
    expect(summary).toMatchObject({ status: 'failed', partitions: { total: 2, done, failed: 2 - done } })
    const { partitions } = statusShape.parse((await here.json('status')).value)
    for (const { state, error } of partitions.slice(done)) {
      expect(state).toBe('failed')
      expect(error).toContain('imported_at')
    }
    for (const row of await readParquet(here.output)) {
      expect(Number(row.imported_at) / 1000).toBeLessThan(Date.parse('2024-03-01'))
    }
    await expect(here.manifest()).resolves.toMatchObject({ runs: [{ status: 'failed' }] })
  },
)
