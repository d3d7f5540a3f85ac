import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { DOMAINS, EXTRACT, world } from './support/world.ts'

/** A turn is a quarter of a second; on a busy machine a request may be so much longer on its way than another. */
const FOUR_A_SECOND = { requestsPerSecond: 4, rateToleranceMs: 75 }

/** A worker's clock that is an hour off. */
async function wrongClock(folder: string, hours: number): Promise<Record<string, string>> {
  const file = join(folder, `clock${hours}.mjs`)
  await writeFile(file, `const now = Date.now.bind(Date)\nDate.now = () => now() + ${hours} * 3600000\n`)
  return { NODE_OPTIONS: `--import ${pathToFileURL(file).href}` }
}

it('no organization is asked faster than it may be, whoever asks and whatever his clock says', {
  timeout: 120_000,
}, async () => {
  const extract = { ...EXTRACT, page_size: 40, concurrency: 8 }
  const service = { requests_per_second: 4, basic_requests_per_second: 4 }
  const here = await world({ service, extract }, { ...FOUR_A_SECOND, latencyMs: 30 })
  await Promise.all([
    here.worker({ env: await wrongClock(here.folder, -1) }),
    here.worker({ env: await wrongClock(here.folder, 1) }),
    here.worker(),
  ])
  const { code, summary } = await here.submitAndWait()
  expect(code).toBe(0)
  const searches = here.searches()
  expect(searches.filter(({ tooFast }) => tooFast).map(({ ordinal }) => ordinal)).toEqual([])
  expect(summary).toMatchObject({ rows: 1200, requests: searches.length })
  // And hardly slower: a turn is a quarter of a second, and their first turns are longer.
  const [first, last] = [searches[0]!.at, searches.at(-1)!.at]
  expect((last - first) / (searches.length - 1)).toBeLessThan(2 * 250)
})

it('after a 429 nobody sends before its wait is over', { timeout: 120_000 }, async () => {
  const faults = [{ kind: 'status', status: 429, retryAfter: '3', requests: [12] }] as const
  const here = await world({ extract: { concurrency: 8 } }, { faults, latencyMs: 0 })
  await Promise.all([here.worker(), here.worker(), here.worker()])
  expect((await here.submitAndWait()).code).toBe(0)
  const searches = here.searches()
  const refused = searches.find(({ status }) => status === 429)!
  // What was on its way by then, or was written before anybody could be told.
  const early = searches.filter(({ at }) => at > refused.at + 150 && at < refused.at + 2900)
  expect(early).toEqual([])
})

it('what is to be left of the quota is left, whoever sends', { timeout: 60_000 }, async () => {
  const here = await world(
    { extract: { ...EXTRACT, min_searches_remaining: 970, concurrency: 4 } },
    { quota: 1000, latencyMs: 20 },
  )
  await Promise.all([here.worker(), here.worker()])
  const { code, summary } = await here.submitAndWait()
  expect(code).toBe(4)
  expect(summary.status).toBe('budget')
  // Those that are on their way when the answer comes are as many as there are chains in flight.
  expect(here.searches().length).toBeGreaterThanOrEqual(30)
  expect(here.searches().length).toBeLessThanOrEqual(31 + 4)
})

it('two pipelines of one organization share its pace', { timeout: 60_000 }, async () => {
  const service = { requests_per_second: 4, basic_requests_per_second: 4, organization: 'acme' }
  const here = await world(
    { service, extract: { ...EXTRACT, domains: DOMAINS.slice(0, 1), page_size: 40 } },
    { ...FOUR_A_SECOND, latencyMs: 0 },
  )
  const other = join(here.folder, 'other.yaml')
  const { readFile } = await import('node:fs/promises')
  const text = await readFile(join(here.folder, 'pipeline.yaml'), 'utf8')
  await writeFile(
    other,
    text.replace('"trial"', '"other"').replace('"out"', '"other"').replace(DOMAINS[0]!, DOMAINS[1]!),
  )
  await Promise.all([here.worker(), here.worker()])
  const { code, stderr } = await here.cli('submit', 'pipeline.yaml', 'other.yaml', '--wait', '--json')
  expect(code, stderr).toBe(0)
  expect(
    here
      .searches()
      .filter(({ tooFast }) => tooFast)
      .map(({ ordinal }) => ordinal),
  ).toEqual([])
  expect(here.searches().length).toBeGreaterThan(16)
  expect(await here.query('SELECT organization FROM spillway.organizations')).toEqual([
    { organization: 'acme' },
  ])
})
