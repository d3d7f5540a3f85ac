import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../src/sandbox/index.ts'
import { type PipelineParts, type Place, place, SMALL } from '../e2e/support/place.ts'
import { shardPaths } from '../e2e/support/read-shards.ts'
import { expectedOfDomains, type Row } from '../e2e/support/rows.ts'
import { exportHere, loadHere } from './in-process.ts'
import { newTarget, type TargetKind, type TestTarget } from './targets.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-01', until: '2024-04-01' }
const asked = (parts: PipelineParts = {}): PipelineParts => ({
  ...parts,
  extract: { domains: DOMAINS, windows: { ...RANGE, every: 'month' }, page_size: 10, ...parts.extract },
})

async function load(here: Place, target: TestTarget, ...flags: string[]) {
  const { code, stdout, stderr } = await here.cli(
    'load',
    'pipeline.yaml',
    '--to',
    target.url,
    '--json',
    ...flags,
  )
  return { code, stderr, summary: code === 0 ? JSON.parse(stdout) : null }
}

async function loaded(kind: TargetKind, parts: PipelineParts = asked()) {
  const here = await place(parts)
  const target = await newTarget(kind, here)
  Object.assign(here.env, target.env)
  await exportHere(here)
  return { here, target }
}

/** The rows as the tests for files know them: integers and microseconds as text. */
async function tableRows(target: TestTarget, kind: TargetKind, table = 'credentials'): Promise<Row[]> {
  const micros = (name: string): string =>
    kind === 'duckdb'
      ? `epoch_us(${name})::varchar as ${name}`
      : `trunc(extract(epoch from ${name}) * 1000000)::bigint::text as ${name}`
  const terms = [
    kind === 'duckdb' ? 'id::varchar as id' : 'id::text as id',
    ...['domain', 'identity_name', 'hash', 'hash_type'],
    micros('imported_at'),
    ...[
      'source_id',
      'source_name',
      'source_description_en',
      'source_description_fr',
      'source_is_alert_enabled',
    ],
    micros('source_breached_at'),
    micros('source_leaked_at'),
    ...['query_type', 'query_value'],
  ]
  return (await target.rows(`select ${terms.join(', ')} from ${table}`)) as Row[]
}

/** As lines, in order; NUL as PostgreSQL has to have it. */
function lines(rows: readonly Row[]): string[] {
  return rows.map((row) => JSON.stringify(row).replaceAll('\\u0000', '\uFFFD')).sort()
}

async function count(target: TestTarget, query: string): Promise<number> {
  const [row] = await target.rows(`select count(*) as n from ${query}`)
  return Number(row?.n)
}

/** What holds for every database; each has a test file of its own, so that they are tried side by side. */
export function tablesHoldWhatIsExported(kind: TargetKind): void {
  it.each([
    { load: { format: 'parquet' } },
    { load: { format: 'csv', compression: 'gzip', partition_by: 'none' } },
    // DuckDB reads the shards for both, so what is left is tried with one.
    ...(kind === 'postgres'
      ? []
      : [
          { load: { format: 'csv' } },
          { load: { format: 'parquet', partition_by: 'window', shard_rows: 30 } },
        ]),
  ])('holds every row once, with its partition, from $load', async (parts) => {
    const { here, target } = await loaded(kind, asked(parts))
    const { code, stderr, summary } = await load(here, target)
    expect(code, stderr).toBe(0)
    const expected = expectedOfDomains(here.sandbox, DOMAINS, RANGE)
    const { shards } = await here.manifest()
    expect(summary).toMatchObject({
      target: target.url,
      table: 'credentials',
      shards: { loaded: shards.length, skipped: 0, replaced: 0 },
      rows: expected.length,
    })
    expect(lines(await tableRows(target, kind))).toEqual(lines(expected))
    const wrong = await count(
      target,
      `credentials where spillway_partition <> query_type || '.' || query_value || '/2024-0' || extract(month from imported_at at time zone 'UTC') || '-01..2024-0' || (extract(month from imported_at at time zone 'UTC') + 1) || '-01'`,
    )
    expect(wrong).toBe(0)

    expect(await loadHere(here, target)).toMatchObject({
      shards: { loaded: 0, skipped: shards.length, replaced: 0 },
      rows: 0,
    })
    expect(await count(target, 'credentials')).toBe(expected.length)
    expect(await count(target, 'spillway_loads')).toBe(shards.length)
    const [ledger] = await target.rows('select sum(rows) as n, min(data_set) as name from spillway_loads')
    expect([Number(ledger?.n), ledger?.name]).toEqual([expected.length, 'trial'])
  })

  it.each([
    { partition_by: ['query', 'window'] },
    { partition_by: 'none' },
    ...(kind === 'postgres' ? [] : [{ partition_by: 'query' }]),
  ])('what was exported anew takes the place of what was there: $partition_by', async (settings) => {
    const { here, target } = await loaded(kind, asked({ load: settings }))
    await loadHere(here, target)
    // The service has other credentials now, but only what is exported anew can show them.
    const later = await startSandbox({ ...SMALL, seed: 'later', records: 90 })
    onTestFinished(() => later.close())
    Object.assign(here.env, { SPILLWAY_BASE_URL: later.baseUrl, SPILLWAY_TOKEN: later.token })
    await exportHere(here, ['domain.quillmere.net'])
    const { code, stderr, summary } = await load(here, target)
    expect(code, stderr).toBe(0)
    expect(summary.shards.replaced).toBeGreaterThan(0)
    const old = settings.partition_by === 'none' ? later : here.sandbox
    const expected = [
      ...expectedOfDomains(old, ['scatterholt.com'], RANGE),
      ...expectedOfDomains(later, ['quillmere.net'], RANGE),
    ]
    expect(lines(await tableRows(target, kind))).toEqual(lines(expected))
    const { shards } = await here.manifest()
    expect(await count(target, 'spillway_loads')).toBe(shards.length)
  })

  it('what was pruned leaves the table and the ledger', async () => {
    const { here, target } = await loaded(kind)
    await load(here, target)
    const days = Math.floor((Date.now() - Date.parse('2024-02-01T12:00:00Z')) / 86_400_000)
    expect((await here.cli('prune', 'pipeline.yaml', '--older-than', `${days}d`, '--yes')).code).toBe(0)
    const { code, stderr, summary } = await load(here, target)
    expect(code, stderr).toBe(0)
    expect(summary).toMatchObject({ shards: { loaded: 0, skipped: 4, replaced: 0 }, removed: 2, rows: 0 })
    const left = expectedOfDomains(here.sandbox, DOMAINS, { ...RANGE, from: '2024-02-01' })
    expect(lines(await tableRows(target, kind))).toEqual(lines(left))
    expect(await count(target, 'spillway_loads')).toBe(4)
  })

  it('with append an overlap of queries stays, with upsert there is one row for each query', async () => {
    const { here, target } = await loaded(kind)
    await loadHere(here, target)
    const rows = await count(target, 'credentials')
    await here.write({ ...asked({ name: 'other', load: { path: 'other' } }) })
    await exportHere(here)
    await loadHere(here, target)
    expect(await count(target, 'credentials')).toBe(2 * rows)

    const upserted = await newTarget(kind, { ...here, folder: join(here.folder, 'other') })
    const to = kind === 'duckdb' ? { ...upserted, url: 'duckdb:other/leaks.db' } : upserted
    await loadHere(here, to, 'upsert')
    await here.write(asked())
    const second = await load(here, to, '--mode', 'upsert')
    expect(second.code, second.stderr).toBe(0)
    expect(await count(to, 'credentials')).toBe(rows)
    expect(await count(to, 'credentials_latest')).toBe(
      Number((await to.rows('select count(distinct id) as n from credentials'))[0]?.n),
    )
  })

  it('with replace a partition is there once, whoever brought it', async () => {
    const { here, target } = await loaded(kind)
    await loadHere(here, target)
    const rows = await count(target, 'credentials')
    await here.write(asked({ name: 'other', load: { path: 'other' } }))
    await exportHere(here)
    expect((await load(here, target, '--mode', 'replace')).code).toBe(0)
    expect(await count(target, 'credentials')).toBe(rows)
  })

  it('a shard whose bytes changed is refused, and nothing of it gets in', async () => {
    const { here, target } = await loaded(kind)
    const [first] = (await shardPaths(here.output)) as [string]
    await writeFile(join(here.output, first), 'something else')
    const { code, stderr } = await load(here, target)
    expect(code).toBe(1)
    expect(stderr).toContain(first)
    expect(await count(target, 'spillway_loads')).toBe(
      Number((await target.rows('select count(distinct spillway_partition) as n from credentials'))[0]?.n),
    )
    await rm(join(here.output, first))
    expect((await here.cli('verify', 'pipeline.yaml', '--fix', '--yes')).code).toBe(0)
    expect((await load(here, target)).code).toBe(0)
    expect(lines(await tableRows(target, kind))).toEqual(
      lines(expectedOfDomains(here.sandbox, DOMAINS, RANGE)),
    )
  })

  it('a table that does not fit is refused with the difference, and gains columns with --evolve', async () => {
    const { here, target } = await loaded(kind)
    await loadHere(here, target)
    await here.write(asked({ extract: { include: ['known_password_id'] }, load: { path: 'wider' } }))
    await exportHere(here)
    const refused = await load(here, target)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toMatch(/known_password_id .* is missing \(--evolve adds it\)/)
    const { code, stderr } = await load(here, target, '--evolve', '--mode', 'replace')
    expect(code, stderr).toBe(0)
    expect(await count(target, 'credentials where known_password_id is not null')).toBeGreaterThan(0)
  })

  it('views answer what people ask first', async () => {
    const { here, target } = await loaded(
      kind,
      asked({ extract: { windows: { ...RANGE, until: '2024-03-01', every: 'month' } } }),
    )
    await loadHere(here, target)
    const before = await count(target, 'credentials')
    expect(await count(target, 'credentials_new')).toBe(before)
    const [sum] = await target.rows('select sum(credentials) as n from credentials_by_domain_month')
    expect(Number(sum?.n)).toBe(
      Number((await target.rows('select count(distinct id) as n from credentials'))[0]?.n),
    )
    await here.write(asked())
    await exportHere(here)
    await loadHere(here, target)
    expect(await count(target, 'credentials_new')).toBe((await count(target, 'credentials')) - before)
    expect(await count(target, 'credentials_by_source')).toBe(
      Number((await target.rows('select count(distinct source_id) as n from credentials'))[0]?.n),
    )
  })

  it('reports go to a table of their own', async () => {
    const { here, target } = await loaded(kind, { extract: { resource: 'reports', ids: [1, 2] } })
    const { code, stderr } = await load(here, target)
    expect(code, stderr).toBe(0)
    expect(await target.rows('select id, spillway_partition from reports order by id')).toMatchObject([
      { spillway_partition: 'report.1/all' },
      { spillway_partition: 'report.2/all' },
    ])
  })
}
