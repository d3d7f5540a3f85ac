import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { SummaryPageData } from '../../src/report/index.ts'
import { carryOut } from '../support/in-this-process.ts'
import { runCli } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { readCsv, readParquet } from './support/read-shards.ts'
import type { Row } from './support/rows.ts'
import { newWorkspace, type Workspace } from './support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const WINDOWS = { from: '2024-01-01', until: '2024-07-01', every: 'month' }
const pageIn = (output: string): Promise<string> => readFile(join(output, '_report.html'), 'utf8')

/** The JSON in the page. */
function dataOf(page: string): SummaryPageData {
  const [, json] = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)!
  return JSON.parse(json!)
}

function counted(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** A name as the report shows it. */
const inReport = (name: unknown, none: string): string =>
  name === null
    ? none
    : String(name)
        .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
        .trim() || '(blank)'

const monthOf = ({ imported_at }: Row): string =>
  new Date(Number(BigInt(String(imported_at)) / 1000n)).toISOString().slice(0, 7)

/** Each group has the rows that were counted, and `others` is the rest. */
function expectGroups(
  { groups, others }: SummaryPageData['rows']['sources'],
  names: readonly string[],
): void {
  const counts = counted(names)
  for (const { name, rows } of groups) expect([name, rows]).toEqual([name, counts.get(name)])
  const rest = names.length - groups.reduce((sum, { rows }) => sum + rows, 0)
  expect(others).toBe(rest > 0 && rest < 5 ? null : rest)
  const least = Math.min(...groups.map(({ rows }) => rows))
  expect(least).toBeGreaterThanOrEqual(5)
}

function expectReport(
  { rows: counts, runs: history, shards, verdict, from }: SummaryPageData,
  rows: readonly Row[],
  paths: number,
): void {
  expect([counts.rows, counts.counted_rows, counts.shards]).toEqual([rows.length, rows.length, paths])
  expectGroups(counts.timeline, rows.map(monthOf))
  expectGroups(
    counts.sources,
    rows.map(({ source_name }) => inReport(source_name, 'no name')),
  )
  expectGroups(
    counts.hash_types,
    rows.map(({ hash_type }) => inReport(hash_type, 'no type')),
  )
  for (const { column, share } of counts.nulls) {
    const nulls = rows.filter((row) => row[column] === null).length
    if (typeof share === 'number')
      expect(Math.abs(share - (100 * nulls) / rows.length)).toBeLessThanOrEqual(1)
    else if (share === 'none' || share === 'all') expect(nulls).toBe(share === 'none' ? 0 : rows.length)
    else expect(share === 'few' ? nulls : rows.length - nulls).toBeLessThan(5)
  }
  expect(counts.heat!.rows.map(({ query }) => query)).toEqual(
    DOMAINS.toSorted().map((name) => `domain.${name}`),
  )
  for (const { query, cells } of counts.heat!.rows) {
    const own = counted(rows.filter(({ query_value }) => `domain.${query_value}` === query).map(monthOf))
    for (const [i, cell] of cells.entries()) {
      const rows = own.get(counts.heat!.columns[i]!.slice(0, 7)) ?? 0
      expect(cell!.state).toBe('done')
      expect(cell!.least).toBeLessThanOrEqual(rows)
      expect(cell!.most).toBeGreaterThanOrEqual(rows)
      // A range spans at most one power of ten.
      expect([cell!.least === 0, cell!.most! <= Math.max(9, 10 * cell!.least)]).toEqual([rows === 0, true])
    }
  }
  expect(shards).toHaveLength(paths)
  expect(history.failures).toEqual([])
  expect(verdict.complete).toBe(true)
  if (from === 'checkpoint') expect(verdict.partitions).toMatchObject({ total: 12, done: 12 })
}

async function readAll(here: Workspace, format: string): Promise<Row[]> {
  return format === 'csv' ? readCsv(here.output) : readParquet(here.output)
}

const LOADS = [
  { format: 'parquet', partition_by: ['query', 'window'] },
  { format: 'csv', partition_by: 'none' },
]
it.each(some(LOADS, 1))('after runs, a kill, a --redo: $format by $partition_by', async (load) => {
  const extract = { domains: DOMAINS, windows: WINDOWS, page_size: 20 }
  const here = await newWorkspace({ extract, load }, { records: 400, invalidRate: 0.1 })
  const killed = await runCli({
    args: ['run', 'pipeline.yaml'],
    cwd: here.folder,
    env: here.env,
    onStart(kill) {
      const timer = setInterval(() => here.searches().length >= 8 && kill('SIGKILL'), 2)
      onTestFinished(() => clearInterval(timer))
    },
  })
  expect(killed.signal).toBe('SIGKILL')
  expect(existsSync(join(here.output, '_report.html'))).toBe(false)

  const { stderr, summary } = await here.run()
  expect(stderr).not.toContain('report')
  const manifest = await here.manifest()
  const rows = await readAll(here, load.format)
  const first = dataOf(await pageIn(here.output))
  expectReport(first, rows, manifest.shards.length)
  expect(first.runs.runs.map(({ status }) => status)).toEqual(['interrupted', 'complete'])
  expect(first.runs.runs.at(-1)).toMatchObject({
    rows: summary.rows,
    requests: summary.requests,
    searches: summary.searches_spent,
    quarantined: summary.quarantined,
    left: summary.searches_remaining,
  })
  const [begun, ended] = first.runs.runs
  expect((begun!.rows ?? 0) + ended!.rows!).toBe(rows.length)
  expect(first.shards.map(({ path, sha256 }) => [path, sha256])).toEqual(
    manifest.shards.map(({ path, sha256 }) => [path, sha256]),
  )
  expect(first.request).toMatchObject({ queries: DOMAINS.map((name) => `domain.${name}`), retired: 0 })
  expect(first.request.config_digest).toBe(
    JSON.parse(await readFile(join(here.output, '_manifest.json'), 'utf8')).config_digest,
  )

  expect((await here.run('--redo', 'domain.quillmere.net/2024-03*')).code).toBe(0)
  expectReport(dataOf(await pageIn(here.output)), rows, manifest.shards.length)

  // Without the state, the report is made from manifest and shards.
  await rm(join(here.output, '_state'), { recursive: true })
  await rm(join(here.output, '_report.html'))
  expect((await here.cli('summary', 'pipeline.yaml')).code).toBe(0)
  const moved = dataOf(await pageIn(here.output))
  expect(moved.from).toBe('manifest')
  expect(moved.rows).toMatchObject({
    ...first.rows,
    new_rows: 0,
    heat: moved.rows.heat,
    bytes: moved.rows.bytes,
  })
})

it('a later run adds the new rows; a file that is not our report is kept', async () => {
  const parts = (until: string) => ({ extract: { domains: DOMAINS, windows: { ...WINDOWS, until } } })
  const here = await newWorkspace(parts('2024-03-01'), { records: 400 })
  await here.run()
  const before = await readAll(here, 'parquet')
  await here.write(parts('2024-07-01'))
  await here.run()
  const rows = await readAll(here, 'parquet')
  const data = dataOf(await pageIn(here.output))
  expectReport(data, rows, (await here.manifest()).shards.length)
  expect(data.rows.new_rows).toBe(rows.length - before.length)

  await writeFile(join(here.output, '_report.html'), '<!doctype html><p>mine')
  const { code, stderr } = await here.run()
  expect(code).toBe(0)
  expect(stderr).toContain('_report.html')
  expect(await pageIn(here.output)).toBe('<!doctype html><p>mine')
  expect((await here.run('--fresh', '--yes')).code).toBe(0)
  expectReport(dataOf(await pageIn(here.output)), rows, data.rows.shards)
})

it('an export of reports has one as well', async () => {
  const here = await newWorkspace({ extract: { resource: 'reports', all: true } })
  expect((await here.run()).code).toBe(0)
  const data = dataOf(await pageIn(here.output))
  expect(data).toMatchObject({
    resource: 'reports',
    rows: { rows: 25, counted_rows: 25, sources: { groups: [] } },
  })
  await here.write({ extract: { resource: 'reports', all: true, max_requests: 1 } })
  expect((await here.cli('summary', 'pipeline.yaml', '--json')).stdout).toContain('_report.html')
})

it('names from the service are text, never markup', async () => {
  const name = `</script><img src=x onerror="document.title='x'">`
  const items = Array.from({ length: 2000 }, (_, id) => ({
    id,
    domain: 'scatterholt.com',
    identity_name: `somebody-${id}@scatterholt.com`,
    hash: 'leaked-secret',
    hash_type: `<b onclick=x>${id % 2}`,
    imported_at: '2024-01-01T00:00:00Z',
    source_id: 'a',
    source: {
      id: 'a',
      name,
      description_en: null,
      description_fr: null,
      is_alert_enabled: null,
      breached_at: null,
      leaked_at: null,
    },
  }))
  const server = createServer((_, response) => void response.end(JSON.stringify({ items, next: null })))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const here = await newWorkspace({})
  const env = { SPILLWAY_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/firework` }
  const { code, stderr } = await carryOut({
    args: ['run', 'pipeline.yaml'],
    cwd: here.folder,
    env: { ...here.env, ...env },
  })
  expect(code, stderr).toBe(0)
  const page = await pageIn(here.output)
  expect(page).not.toMatch(/<img|<b onclick|somebody-|leaked-secret/)
  expect(page.match(/<script/g)).toHaveLength(1)
  expect(page).toContain('class="bar"')
  expect(dataOf(page).rows.sources.groups).toEqual([{ name, rows: 2000 }])
})
