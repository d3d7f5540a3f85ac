import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = Array.from({ length: 4 }, (_, i) => `d${i}.example`)

type Parts = {
  readonly until: string
  readonly every?: string
  readonly max_requests?: number
  readonly page_size?: number
  readonly monthly_searches?: number
  readonly rows_per_search?: number | 'page'
}

/** A data set of four domains with a row a day each. */
async function begin(
  options: { readonly quota?: number; readonly rowsPerSearch?: number; readonly latencyMs?: number } = {},
  domains = DOMAINS,
) {
  const data = { domains, records: 366, from: '2024-01-01', until: '2025-01-01', nastyRate: 0 }
  const here = await newWorkspace({}, { ...data, ...options })
  const call = async (command: string, parts: Parts, ...flags: string[]) => {
    const { until, every = 'month', rows_per_search = 100, ...extract } = parts
    const windows = { from: '2024-01-01', until, every }
    await here.write({
      service: { requests_per_second: 100, rows_per_search },
      extract: { domains, windows, page_size: 40, min_searches_remaining: 0, ...extract },
      load: { format: 'csv' },
    })
    return (await exits(0, here.call(command, ...flags))).stdout
  }
  return { call }
}

it('plan counts one chain for each query, and estimates new windows, runs and searches from the last ones', async () => {
  const { call } = await begin({ quota: 100, rowsPerSearch: 0 })
  const [first, all] = [{ until: '2024-05-01' }, { until: '2024-07-01' }]
  expect(JSON.parse(await call('plan', all, '--json'))).toMatchObject({
    ...{ partitions: { total: 24, done: 0, pending: 24 }, min_requests: 4, min_seconds: 0.04 },
    ...{ expected_requests: null, expected_seconds: null, expected_searches: null },
  })
  await call('run', first)
  // Sixty-one days more, a row a day: two pages of forty for each query.
  const more = JSON.parse(await call('plan', all, '--json'))
  expect(more).toMatchObject({
    ...{ partitions: { total: 24, done: 16, pending: 8 }, min_requests: 4 },
    ...{ expected_requests: 8, expected_searches: 8 },
  })
  expect(more.expected_seconds).toBeGreaterThanOrEqual(0.08)
  const printed = await call('plan', { ...all, max_requests: 3 })
  for (const part of [
    ...['at least 4 requests', 'further pages of 40 items', 'by the export so far about 8 requests'],
    ...['budget of one run: 3 requests, so about 3 runs', 'about 8 searches of the quota'],
  ])
    expect(printed).toContain(part)
  // Four pages of forty for each of four queries are spent.
  expect(printed).toMatch(/searches left when the service last said so: 8[0-4]\n/)
  expect(await call('plan', all, '--max-requests', 'none')).not.toContain('budget of one run')
  const done = JSON.parse(await call('plan', first, '--json'))
  expect(done).toMatchObject({ min_requests: 0, expected_requests: 0 })
})

it('plan says before the first run what a page costs, by service.rows_per_search', async () => {
  const { call } = await begin()
  const first = await call('plan', { until: '2024-07-01', page_size: 10_000, monthly_searches: 500 })
  expect(first).toContain('a page of 10,000 rows costs 100 searches of the quota')
  expect(first).toContain('share of a month: 500 searches, 0 of them spent')
  const small = await call('plan', { until: '2024-07-01' })
  expect(small).toContain('a page of 40 rows costs 1 search of the quota')
  const page = await call('plan', { until: '2024-07-01', page_size: 10_000, rows_per_search: 'page' })
  expect(page).toContain('a page of 10,000 rows costs 1 search of the quota')
})

it('plan names windows.per_chain where one long chain is slower than the rate limit', async () => {
  const { call } = await begin({ latencyMs: 60 }, ['d0.example'])
  await call('run', { until: '2024-07-01', page_size: 4 })
  const advice = 'extract.windows.per_chain lets several requests of a query run at a time'
  expect(await call('plan', { until: '2024-12-31', every: '1d', page_size: 2 })).toContain(advice)
  expect(await call('plan', { until: '2024-08-01', page_size: 4 })).not.toContain(advice)
})
