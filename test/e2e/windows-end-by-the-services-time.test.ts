import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { carryOut } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  type Environment,
  newWorkspace,
  PIPELINE,
  type PipelineParts,
  type Workspace,
} from '../support/workspace.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** The tests begin at noon, so that no day (UTC) ends while they run. */
const NOON_MS = Math.floor(Date.now() / DAY) * DAY + DAY / 2
const AHEAD_MS = NOON_MS - Date.now()
// Thorough runs start the command. It takes seconds, so other runs carry it out in this process.
const SET_AHEAD = `--import ${join(import.meta.dirname, 'support/other-time.mjs')}`
const AT_NOON: Environment = THOROUGH ? { NODE_OPTIONS: SET_AHEAD, AHEAD_MS: String(AHEAD_MS) } : {}

beforeAll(() => {
  const now = Date.now.bind(Date)
  vi.spyOn(Date, 'now').mockImplementation(() => now() + AHEAD_MS)
})
afterAll(() => void vi.restoreAllMocks())

/** The beginning of a day (UTC), so many days from now. */
const day = (days: number): string => new Date(NOON_MS + days * DAY).toISOString().slice(0, 10)

const DAYS: PipelineParts = {
  service: { allow_http: true, retries: 0, requests_per_second: 1000 },
  extract: { domains: ['scatterholt.com'], windows: { from: day(-8), until: 'now', every: '1d' } },
}

/** A service with another clock than this machine's. Its rows end three days ago. */
async function skewed(aheadMs: number, parts = DAYS): Promise<Workspace & { skew: { ms: number } }> {
  const skew = { ms: aheadMs }
  const data = { from: day(-8), until: day(-3), now: () => Date.now() + skew.ms }
  return Object.assign(await newWorkspace(parts, data, AT_NOON), { skew })
}

const SIDES = [
  ['ahead of', -DAY],
  ['behind', DAY],
] as const

it.each(some(SIDES, 1))("a clock a day %s the service's changes no window", async (_side, ms) => {
  const here = await skewed(ms)
  expect((await here.run()).code).toBe(0)
  const done = (await here.manifest()).partitions.filter(({ state }) => state === 'done')
  // The days that have ended for the service, and the lag.
  expect(
    done
      .map(({ key }) => key.split('..').at(-1)!)
      .sort()
      .at(-1),
  ).toBe(day(ms / DAY))
  expect(here.searches()).toHaveLength(1)
  here.skew.ms = 0
  expect((await here.run()).code).toBe(0)
  await here.expectRows(['scatterholt.com'])
})

it('the exchange of an API key tells the time before any search is sent', async () => {
  const here = await skewed(-DAY)
  const tokenUrl = `${here.sandbox.origin}/tokens/generate`
  const service = { ...DAYS.service, api_key_env: 'KEY', token_url: tokenUrl }
  await here.write({ ...DAYS, service })
  const env = { ...AT_NOON, SPILLWAY_BASE_URL: here.sandbox.baseUrl, KEY: here.sandbox.apiKey }
  await exits(0, carryOut({ args: ['run', PIPELINE], cwd: here.folder, env }))
  const filters = here.searches().map(({ body }) => JSON.stringify(body))
  expect(filters).toEqual([expect.stringContaining(`"lte":"${day(-1)}`)])
  expect(here.sandbox.requests.filter(({ path }) => path.includes('tokens'))).toHaveLength(2)
})

it('a run that has something to request asks once whose its token is, and tells by whom it is', async () => {
  const here = await skewed(DAY, { ...DAYS, extract: { domains: ['scatterholt.com'] } })
  await exits(0, here.run())
  await exits(0, here.run())
  expect(here.sandbox.requests.filter(({ path }) => path.includes('tokens'))).toHaveLength(1)
  const nobody = { organization: null, tenant: null, host: hostname() }
  const { runs } = await here.manifest()
  expect(runs.map(({ by }) => by)).toEqual([{ ...nobody, organization: 1, tenant: 1 }, nobody])
})
