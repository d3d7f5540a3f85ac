import { join } from 'node:path'
import { expect, it } from 'vitest'
import { statusShape, summaryShape } from '../support/json-shapes.ts'
import { readParquet } from '../support/read-shards.ts'
import { expectedOfDomains, expectedRows, expectSame } from '../support/rows.ts'
import { exits, PACKAGE } from '../support/run-cli.ts'
import type { SandboxOptions, SearchQuery } from '../support/sandbox.ts'
import { type Environment, newWorkspace, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'brambleworth.org', 'quillmere.net', 'tarnhollow.io']
const INCLUDE = ['known_password_id']
const DAY_MS = 86_400_000

const world = (env: Environment = {}, options: SandboxOptions = {}) =>
  newWorkspace({}, { domains: DOMAINS, ...options }, env)

/** The file as it is. The flags only limit it to a few requests, since it sends one a second. */
const shipped = (name: string): string => join(PACKAGE, 'pipelines', name)

/** Checks, runs and verifies a file. @returns its summary, and its rows below `output` */
async function exported(here: Workspace, file: string, ...flags: string[]) {
  await exits(0, here.cli('check', file))
  const { stdout } = await exits(0, here.cli('run', file, '--json', ...flags))
  const summary = summaryShape.parse(JSON.parse(stdout))
  expect(summary.status).toBe('complete')
  await exits(0, here.cli('verify', file))
  const rows = await readParquet(join(here.folder, 'output', file.slice(file.lastIndexOf('/') + 1, -5)))
  return { ...summary, rows, newRows: summary.rows }
}

it('demo.yaml', async () => {
  const here = await world({ SPILLWAY_REQUESTS_PER_SECOND: '1000' })
  const { partitions, rows } = await exported(here, shipped('demo.yaml'))
  expect(partitions.total).toBe(24)
  const range = { from: '2024-01-01', until: '2024-07-01' }
  const masking = { secret: 'partial' } as const
  expectSame(rows, expectedOfDomains(here.sandbox, DOMAINS, { ...range, include: INCLUDE, masking }))
})

it('backfill.yaml', async () => {
  const here = await world()
  const { rows } = await exported(here, shipped('backfill.yaml'), '--from', '2024-12-01')
  const columns =
    'id domain identity_name hash_type imported_at source_id source_name source_breached_at query_value'
  const range = { from: '2024-12-01', until: '2025-01-01' }
  expectSame(rows, expectedOfDomains(here.sandbox, DOMAINS, { ...range, columns: columns.split(' ') }))
})

it('compliance.yaml', async () => {
  const key = 'a masking key of thirty-two bytes or more'
  const apiKey = 'compliance-api-key'
  // Relative to now: weeks that are over, with rows imported in them.
  const monday = mondayBefore(Date.now() - 6 * 3_600_000)
  const day = (days: number) => new Date(monday + days * DAY_MS).toISOString()
  const options = { apiKey, from: day(-60), until: day(7) }
  const here = await world({ SPILLWAY_API_KEY: apiKey, SPILLWAY_MASK_KEY: key }, options)
  const { partitions, rows } = await exported(here, shipped('compliance.yaml'), '--from', day(-7))
  expect(partitions.total).toBe(3)
  const queries: SearchQuery[] = [
    { type: 'domain', fqdn: 'scatterholt.com' },
    { type: 'domain', fqdn: 'brambleworth.org' },
    { type: 'auth_domain', fqdn: 'login.scatterholt.com' },
  ]
  const given = { from: day(-7), until: day(0), include: INCLUDE, masking: { secret: 'hmac', key } } as const
  const wanted = queries.flatMap((query) => expectedRows(here.sandbox, { query, ...given }))
  expect(wanted.length).toBeGreaterThan(0)
  expectSame(rows, wanted)
})

it('own-domains.yaml', async () => {
  const range = { from: '2024-01-01', until: '2024-06-01' }
  const { sandbox, ...rest } = await world({}, { until: range.until })
  const here = rest.with({ SPILLWAY_HOST: sandbox.origin })
  const flags = ['--from', range.from, '--until', range.until] as const
  const { searches_spent, rows } = await exported(here, shipped('own-domains.yaml'), ...flags)
  expect(searches_spent).toBeNull()
  const domains = ['scatterholt.com', 'brambleworth.org']
  expectSame(rows, expectedOfDomains(sandbox, domains, { ...range, include: INCLUDE }))
})

it('feed.yaml', async () => {
  const here = await world()
  const file = shipped('feed.yaml')
  const { partitions, searches_spent, rows } = await exported(here, file)
  // One for each month in which a row came.
  const { partitions: listed } = JSON.parse((await here.cli('status', file, '--json')).stdout)
  expect([partitions.total, searches_spent]).toEqual([listed.length, null])
  const wanted = [...here.sandbox.expectedFeed(null)].map(({ id }) => String(id))
  expect(rows.map(({ id }) => id).sort()).toEqual(wanted.sort())
  expect((await exported(here, file)).newRows).toBe(0)
})

it('the starter that `init` writes', async () => {
  const domains = ['example.com']
  const here = await world({}, { domains })
  await exits(0, here.cli('init', 'starter.yaml'))
  const range = { from: '2024-11-01', until: '2025-01-01' }
  const { rows } = await exported(here, 'starter.yaml', '--from', range.from, '--until', range.until)
  expectSame(rows, expectedOfDomains(here.sandbox, domains, range))
  const { stdout } = await here.cli('status', 'starter.yaml', '--json')
  const { partitions } = statusShape.parse(JSON.parse(stdout))
  expect(partitions.filter(({ state }) => state === 'done')).toHaveLength(2)
})

function mondayBefore(ms: number): number {
  const days = Math.floor(ms / DAY_MS)
  // Day 4 was a Monday, 1970-01-05.
  return (days - ((((days - 4) % 7) + 7) % 7)) * DAY_MS
}
