import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { statusShape, summaryShape } from '../support/json-shapes.ts'
import { readParquet } from '../support/read-shards.ts'
import { expectedOfDomains, expectedRows, expectSame } from '../support/rows.ts'
import { exits, PACKAGE } from '../support/run-cli.ts'
import type { SearchQuery } from '../support/sandbox.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'

/** The files as they are. The flags below only limit them to a few requests, since they send one a second. */
const SHIPPED = join(PACKAGE, 'pipelines')
const DOMAINS = ['scatterholt.com', 'brambleworth.org', 'quillmere.net', 'tarnhollow.io']
const DAY_MS = 86_400_000

async function exported(here: Workspace, file: string, ...flags: string[]) {
  await exits(0, here.cli('check', file))
  const { stdout } = await exits(0, here.cli('run', file, '--json', ...flags))
  const summary = summaryShape.parse(JSON.parse(stdout))
  expect(summary.status).toBe('complete')
  await exits(0, here.cli('verify', file))
  return summary
}

describe('against a sandbox', () => {
  it('demo.yaml', async () => {
    const here = await newWorkspace({}, { domains: DOMAINS }, { SPILLWAY_REQUESTS_PER_SECOND: '1000' })
    const summary = await exported(here, join(SHIPPED, 'demo.yaml'))
    expect(summary.partitions.total).toBe(24)
    const wanted = expectedOfDomains(here.sandbox, DOMAINS, {
      from: '2024-01-01',
      until: '2024-07-01',
      include: ['known_password_id'],
      masking: { secret: 'partial' },
    })
    expectSame(await readParquet(join(here.folder, 'output/demo')), wanted)
  })

  it('backfill.yaml', async () => {
    const here = await newWorkspace({}, { domains: DOMAINS })
    await exported(here, join(SHIPPED, 'backfill.yaml'), '--from', '2024-12-01')
    const wanted = expectedOfDomains(here.sandbox, DOMAINS, {
      from: '2024-12-01',
      until: '2025-01-01',
      columns:
        'id domain identity_name hash_type imported_at source_id source_name source_breached_at query_value'.split(
          ' ',
        ),
    })
    expectSame(await readParquet(join(here.folder, 'output/backfill')), wanted)
  })

  it('compliance.yaml', async () => {
    const key = 'a masking key of thirty-two bytes or more'
    const apiKey = 'compliance-api-key'
    // Relative to now: weeks that are over, with rows imported in them.
    const monday = mondayBefore(Date.now() - 6 * 3_600_000)
    const from = new Date(monday - 7 * DAY_MS).toISOString()
    const here = await newWorkspace(
      {},
      {
        domains: DOMAINS,
        apiKey,
        from: new Date(monday - 60 * DAY_MS).toISOString(),
        until: new Date(monday + 7 * DAY_MS).toISOString(),
      },
      { SPILLWAY_API_KEY: apiKey, SPILLWAY_MASK_KEY: key },
    )
    const summary = await exported(here, join(SHIPPED, 'compliance.yaml'), '--from', from)
    expect(summary.partitions.total).toBe(3)
    const until = new Date(monday).toISOString()
    const queries: SearchQuery[] = [
      { type: 'domain', fqdn: 'scatterholt.com' },
      { type: 'domain', fqdn: 'brambleworth.org' },
      { type: 'auth_domain', fqdn: 'login.scatterholt.com' },
    ]
    const wanted = queries.flatMap((query) =>
      expectedRows(here.sandbox, {
        query,
        from,
        until,
        include: ['known_password_id'],
        masking: { secret: 'hmac', key },
      }),
    )
    expect(wanted.length).toBeGreaterThan(0)
    expectSame(await readParquet(join(here.folder, 'output/compliance')), wanted)
  })

  it('own-domains.yaml', async () => {
    const world = await newWorkspace({}, { domains: DOMAINS, until: '2024-06-01' })
    const here = world.with({ SPILLWAY_HOST: world.sandbox.origin })
    const flags = ['--from', '2024-01-01', '--until', '2024-06-01'] as const
    const summary = await exported(here, join(SHIPPED, 'own-domains.yaml'), ...flags)
    expect(summary.searches_spent).toBeNull()
    const wanted = expectedOfDomains(here.sandbox, ['scatterholt.com', 'brambleworth.org'], {
      from: '2024-01-01',
      until: '2024-06-01',
      include: ['known_password_id'],
    })
    expectSame(await readParquet(join(here.folder, 'output/own-domains')), wanted)
  })

  it('feed.yaml', async () => {
    const here = await newWorkspace({}, { domains: DOMAINS })
    const file = join(SHIPPED, 'feed.yaml')
    const { partitions, searches_spent } = await exported(here, file)
    // One for each month in which a row came.
    const { partitions: listed } = JSON.parse((await here.cli('status', file, '--json')).stdout)
    expect([partitions.total, searches_spent]).toEqual([listed.length, null])
    const ids = (await readParquet(join(here.folder, 'output/feed'))).map(({ id }) => id)
    expect(ids.sort()).toEqual([...here.sandbox.expectedFeed(null)].map(({ id }) => String(id)).sort())
    expect((await exported(here, file)).rows).toBe(0)
  })

  it('the starter that `init` writes', async () => {
    const here = await newWorkspace({}, { domains: ['example.com'] })
    expect((await here.cli('init', 'starter.yaml')).code).toBe(0)
    const text = await readFile(join(here.folder, 'starter.yaml'), 'utf8')
    expect((await here.cli('init', 'starter.yaml')).code).toBe(2)
    expect(await readFile(join(here.folder, 'starter.yaml'), 'utf8')).toBe(text)

    await exported(here, 'starter.yaml', '--from', '2024-11-01', '--until', '2025-01-01')
    const range = { from: '2024-11-01', until: '2025-01-01' }
    const output = join(here.folder, 'output/starter')
    expectSame(await readParquet(output), expectedOfDomains(here.sandbox, ['example.com'], range))
    const { stdout } = await here.cli('status', 'starter.yaml', '--json')
    const { partitions } = statusShape.parse(JSON.parse(stdout))
    expect(partitions.filter(({ state }) => state === 'done')).toHaveLength(2)
  })
})

function mondayBefore(ms: number): number {
  const days = Math.floor(ms / DAY_MS)
  // Day 4 was a Monday, 1970-01-05.
  return (days - ((((days - 4) % 7) + 7) % 7)) * DAY_MS
}
