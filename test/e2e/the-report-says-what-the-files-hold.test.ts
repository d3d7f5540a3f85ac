import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Groups } from '../../src/summary/index.ts'
import { credential, startService } from '../fault/hostile-service.ts'
import { counted, type Row } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const WINDOWS = { from: '2024-01-01', until: '2024-07-01', every: 'month' }

function inPage(name: unknown, none: string): string {
  if (name === null) return none
  return (
    String(name)
      .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
      .trim() || '(blank)'
  )
}

const monthOf = ({ imported_at }: Row): string =>
  new Date(Number(BigInt(String(imported_at)) / 1000n)).toISOString().slice(0, 7)

const shown = (value: number): string => value.toLocaleString('en')

/** Each group has its rows, and the others have the rest. */
function expectGroups({ groups, more, others }: Groups, names: readonly string[]): void {
  const counts = counted(names)
  for (const { name, rows } of groups) expect([name, rows]).toEqual([name, counts.get(name)])
  const largest = [...counts.values()].sort((a, b) => b - a).slice(0, groups.length)
  expect(groups.map(({ rows }) => rows)).toEqual(largest)
  expect(more).toBe(counts.size - groups.length)
  expect(others).toBe(names.length - largest.reduce((sum, rows) => sum + rows, 0))
}

/** The source of each row, by its id: names may be shared, and change. */
function sourcesOf(rows: readonly Row[]): readonly string[] {
  const names = new Map<unknown, string | null>()
  for (const { source_id: id, source_name: name } of rows)
    if (typeof name === 'string' && name > (names.get(id) ?? '')) names.set(id, name)
    else if (!names.has(id)) names.set(id, null)
  const shared = counted([...names.values()])
  return rows.map(({ source_id: id }) => {
    const name = names.get(id) ?? null
    return `${inPage(name, 'no name')}${shared.get(name) === 1 ? '' : ` (${id})`}`
  })
}

async function expectPage(here: Workspace, rows: readonly Row[]): Promise<void> {
  const { heading, figures, heat } = await summaryPageIn(here.output)
  expect(heading).toBe('Complete: all 12 partitions')
  expect(figures).toMatchObject({ rows: shown(rows.length), 'partitions done': '12' })
  for (const domain of DOMAINS) {
    const own = counted(rows.filter(({ query_value }) => query_value === domain).map(monthOf))
    const cells = [1, 2, 3, 4, 5, 6].map((month) => own.get(`2024-0${month}`) ?? 0)
    const total = cells.reduce((sum, count) => sum + count, 0)
    expect(heat[`domain.${domain}`]).toEqual([...cells, total].map(shown))
  }
}

async function expectFacts(here: Workspace, rows: readonly Row[]): Promise<void> {
  expect((await here.call('summary')).code).toBe(0)
  await expectPage(here, rows)
  const { facts, figures } = await summaryPageIn(here.output)
  expect(facts!.people).toBe(new Set(rows.map(({ identity_name }) => identity_name)).size)
  expect(figures.people).toBe(shown(facts!.people!))
  expectGroups(facts!.sources, sourcesOf(rows))
  const types = rows.map(({ hash_type }) => inPage(hash_type, 'no type'))
  expectGroups(facts!.hash_types, types)
  expect(new Map(facts!.months.map(({ month, rows }) => [month, rows]))).toEqual(counted(rows.map(monthOf)))
  expect((await here.call('verify')).code).toBe(0)
}

const LOADS = [
  { format: 'parquet', partition_by: ['query', 'window'] },
  { format: 'csv', partition_by: 'none' },
]
it.runIf(THOROUGH).each(LOADS)('after runs, a kill, a --redo: $format by $partition_by', async (load) => {
  const extract = { domains: DOMAINS, windows: WINDOWS, page_size: 20 }
  // The run cannot end before it is killed.
  const faults = [{ kind: 'hang', requests: [9] }] as const
  const here = await newWorkspace({ extract, load }, { records: 400, invalidRate: 0.1, faults })
  const running = here.start('run', PIPELINE)
  await running.until(() => here.searches().length >= 9)
  running.child.kill('SIGKILL')
  expect((await running.result).signal).toBe('SIGKILL')
  expect(existsSync(join(here.output, '_report.html'))).toBe(false)

  const { stderr, summary } = await here.run()
  expect(stderr).not.toContain('report')
  const rows = await here.rows()
  await expectPage(here, rows)
  const { figures } = await summaryPageIn(here.output)
  expect(figures['new in the last run']).toBe(shown(Number(summary.rows)))
  await expectFacts(here, rows)
  expect((await here.run('--redo', 'domain.quillmere.net/2024-03*')).code).toBe(0)
  await expectPage(here, rows)

  // Without the state, the page is made from manifest and shards.
  await rm(join(here.output, '_state'), { recursive: true })
  await rm(join(here.output, '_report.html'))
  await expectFacts(here, rows)
})

it('sources that share a name are counted by their ids', async () => {
  const here = await newWorkspace({ extract: { domains: DOMAINS, windows: WINDOWS } }, { records: 2000 })
  await here.run()
  const rows = await here.rows()
  const [names, ids] = ['source_name', 'source_id'].map((column) => new Set(rows.map((row) => row[column])))
  expect(names!.size).toBeLessThan(ids!.size)
  await expectFacts(here, rows)
})

it('a later run adds the new rows; a file that is no page of ours is kept', async () => {
  const parts = (until: string) => ({ extract: { domains: DOMAINS, windows: { ...WINDOWS, until } } })
  const here = await newWorkspace(parts('2024-03-01'), { records: 400 })
  await here.run()
  const before = await here.rows()
  await here.write(parts('2024-07-01'))
  await here.run()
  const rows = await here.rows()
  await expectPage(here, rows)
  const { figures } = await summaryPageIn(here.output)
  expect(figures['new in the last run']).toBe(shown(rows.length - before.length))

  const page = join(here.output, '_report.html')
  await writeFile(page, '<!doctype html><p>mine')
  await exits(0, here.run(), '_report.html')
  expect(await readFile(page, 'utf8')).toBe('<!doctype html><p>mine')
  expect((await here.run('--fresh', '--yes')).code).toBe(0)
  await expectPage(here, rows)
})

it('names from the service are text, never markup', async () => {
  const name = `</script><img src=x onerror="document.title='x'">`
  const items = Array.from({ length: 2000 }, (_, id) => {
    const { source, ...item } = credential(id, { hash_type: `<b onclick=x>${id % 2}` })
    return { ...item, source: { ...(source as object), name } }
  })
  const { baseUrl } = await startService(({ json }) => json({ items, next: null }))
  const here = await newWorkspace({}, {}, { SPILLWAY_BASE_URL: baseUrl })
  for (const command of ['run', 'summary']) await exits(0, here.call(command))
  const { html, facts } = await summaryPageIn(here.output)
  expect(html).not.toMatch(/<img|<b onclick|person-|secret-/)
  expect(html.match(/<script/g)).toHaveLength(1)
  expect(facts!.sources.groups).toEqual([{ name, rows: 2000 }])
})
