import { describe, expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = Array.from({ length: 12 }, (_, i) => `d${i}.example`)

type Parts = {
  readonly until: string
  readonly every?: string
  readonly max_requests?: number
  readonly page_size?: number
  readonly monthly_searches?: number
}

/** A data set of twelve domains with a row a day each. */
async function begin(options: { readonly quota?: number; readonly rowsPerSearch?: number } = {}) {
  const data = { domains: DOMAINS, records: 366, from: '2024-01-01', until: '2025-01-01', nastyRate: 0 }
  const here = await newWorkspace({}, { ...data, ...options })
  const call = async (command: string, parts: Parts, ...flags: string[]) => {
    const { until, every = 'month', ...extract } = parts
    const windows = { from: '2024-01-01', until, every }
    await here.write({
      service: { requests_per_second: 100 },
      extract: { domains: DOMAINS, windows, page_size: 40, min_searches_remaining: 0, ...extract },
      load: { format: 'csv' },
    })
    return (await exits(0, here.call(command, ...flags))).stdout
  }
  return { call }
}

describe('plan', () => {
  it('counts one chain for each query, and estimates new windows from the last ones', async () => {
    const { call } = await begin()
    expect(JSON.parse(await call('plan', { until: '2024-07-01' }, '--json'))).toMatchObject({
      partitions: { total: 72, done: 0, pending: 72 },
      min_requests: 12,
      min_seconds: 0.12,
      expected_requests: null,
      expected_seconds: null,
      expected_searches: null,
      searches: { low: null, high: null },
    })
    await call('run', { until: '2024-05-01' })
    // Sixty-one days more, a row a day: two pages of forty for each query.
    const more = JSON.parse(await call('plan', { until: '2024-07-01' }, '--json'))
    expect(more).toMatchObject({ partitions: { total: 72, done: 48, pending: 24 }, min_requests: 12 })
    expect(more.expected_requests).toBe(24)
    expect(more.expected_seconds).toBeGreaterThanOrEqual(0.24)
    expect(more.searches).toEqual({ low: 24, high: 24 })
    expect(more.expected_searches).toBeGreaterThan(0)
    expect(more.expected_searches).toBeLessThanOrEqual(24)
    expect(JSON.parse(await call('plan', { until: '2024-05-01' }, '--json'))).toMatchObject({
      min_requests: 0,
      expected_requests: 0,
    })
  })

  it('says before the first run what a page costs, as far as it is known, by both readings', async () => {
    const { call } = await begin()
    const first = await call('plan', { until: '2024-07-01', page_size: 10_000, monthly_searches: 500 })
    expect(first).toContain(
      'a page of 10,000 rows costs 1 to 100 searches, at least 12 to 1,200 searches if all are full; `check --probe` measures it',
    )
    expect(first).toMatch(
      /share of a month: 500 searches, 0 of them spent; so at least 1 to 3 calendar months/,
    )
    const small = await call('plan', { until: '2024-07-01' })
    expect(small).toContain('a page of 40 rows costs 1 search, at least 12 searches if all are full')
    expect(small).not.toContain('--probe')
    const second = await call('plan', { until: '2024-07-01', page_size: 10_000 }, '--json')
    expect(JSON.parse(second)).toMatchObject({ expected_searches: null, searches: { low: null, high: null } })
  })

  it('estimates both readings where rows are known and the price is not', async () => {
    const { call } = await begin()
    await call('run', { until: '2024-03-01', page_size: 1000 })
    const more = await call('plan', { until: '2024-12-01', page_size: 1000, monthly_searches: 100 })
    expect(more).toMatch(
      /a page of 1,000 rows costs 1 to 10 searches, 12 to \d+ searches of the quota; `check --probe` measures it/,
    )
  })

  it('prints how many runs it takes, and the share of the searches that are left', async () => {
    const { call } = await begin({ quota: 100, rowsPerSearch: 0 })
    await call('run', { until: '2024-05-01' })
    const printed = await call('plan', { until: '2024-07-01', max_requests: 10 })
    expect(printed).toContain('at least 12 requests')
    expect(printed).toContain('further pages of 40 items')
    expect(printed).toContain('by the export so far about 24 requests')
    expect(printed).toContain('budget of one run: 10 requests, so about 3 runs')
    const unlimited = await call('plan', { until: '2024-07-01' }, '--max-requests', 'none')
    expect(unlimited).not.toContain('budget of one run')
    expect(printed).toContain('by what pages were measured to cost about 24 searches of the quota')
    // Four pages of forty for each of twelve queries are spent, and those that kept the slots busy.
    expect(printed).toMatch(
      /searches left when the service last said so: (?:4[5-9]|5[0-9]); about \d+% of them are needed/,
    )
    const far = await call('plan', { until: '2025-01-01' })
    expect(far).toContain('not enough for all of it before the service counts anew')
  })

  it('warns of many tiny folders, and names the setting that avoids them', async () => {
    const { call } = await begin()
    await call('run', { until: '2024-01-15', every: '1d' })
    const printed = await call('plan', { until: '2024-12-01', every: '1d' })
    expect(printed).toMatch(
      /folders will be many and small: about 1 row a shard; with load\.partition_by: none/,
    )
    expect(await call('plan', { until: '2024-01-16', every: '1d' })).not.toContain('many and small')
  })
})
