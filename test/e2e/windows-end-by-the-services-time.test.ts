import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { carryOut } from '../support/in-this-process.ts'
import { readParquet } from '../support/read-shards.ts'
import { expectedOfDomains, expectSame } from '../support/rows.ts'
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
function day(days: number): string {
  return new Date(NOON_MS + days * DAY).toISOString().slice(0, 10)
}

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

async function expectAllRows(here: Workspace): Promise<void> {
  const rows = await readParquet(here.output)
  expectSame(rows, expectedOfDomains(here.sandbox, ['scatterholt.com']))
}

const SIDES = [
  ['ahead of', -DAY],
  ['behind', DAY],
] as const

it.each(some(SIDES, 1))(
  "a clock a day %s the service's ends the run with exit 2, and nothing is done",
  async (_side, ms) => {
    const here = await skewed(ms)
    await exits(
      2,
      carryOut({ args: ['run', PIPELINE], cwd: here.folder, env: here.env }),
      `This machine's clock says ${day(0)}`,
      `the service's ${day(ms / DAY)}`,
      'Set the clock right and run again; nothing was marked done.',
    )
    expect(here.searches()).toEqual([])
    const { value } = await here.json('status')
    expect(value).toMatchObject({ totals: { done: 0, rows: 0 } })
    here.skew.ms = 0
    expect((await here.run()).code).toBe(0)
    await expectAllRows(here)
  },
)

it('the response to the exchange of an API key decides before any search is sent', async () => {
  const here = await skewed(-DAY)
  const tokenUrl = `${here.sandbox.origin}/tokens/generate`
  const service = { ...DAYS.service, api_key_env: 'KEY', token_url: tokenUrl }
  await here.write({ ...DAYS, service })
  const env = { ...AT_NOON, SPILLWAY_BASE_URL: here.sandbox.baseUrl, KEY: here.sandbox.apiKey }
  await exits(2, carryOut({ args: ['run', PIPELINE], cwd: here.folder, env }))
  expect(here.searches()).toEqual([])
})

it('check ends with the same exit code, and sends no search', async () => {
  const here = await skewed(-DAY)
  await exits(2, here.call('check'), 'windows end by the service')
  expect(here.searches()).toEqual([])
})

const WARNING = "this machine's clock and the service's differ by more than a minute"

const DIFFERENCES = [
  ['less than extract.lag', -5 * MINUTE, DAYS],
  ['more, if no window depends on it', DAY, ended(day(-4))],
  ['more, without windows', DAY, { ...DAYS, extract: { domains: ['scatterholt.com'] } }],
] as const

it.each(some(DIFFERENCES, 1))('a difference of %s is one warning', async (_name, ms, parts) => {
  const here = await skewed(ms, { ...parts, extract: { ...parts.extract, page_size: 10 } })
  const { stderr } = await exits(0, here.run())
  expect(stderr.split(WARNING)).toHaveLength(2)
})

it('a few seconds are no warning', async () => {
  const here = await skewed(-5000)
  const { stderr } = await exits(0, here.run())
  expect(stderr).not.toContain(WARNING)
})

/** Windows of a day each, up to a date. */
function ended(until: string): PipelineParts {
  return {
    ...DAYS,
    extract: { domains: ['scatterholt.com'], windows: { from: day(-8), until, every: '1d' } },
  }
}
