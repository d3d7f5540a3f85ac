import { expect, it } from 'vitest'
import type { SummaryPageData } from '../../src/report/index.ts'
import { summaryPage } from '../../src/report/index.ts'
import { SOME_REPORT } from './some-report.ts'

type Verdict = SummaryPageData['verdict']

const ALL = { total: 144, done: 144, failed: 0, partial: 0, pending: 0 }
const YEAR = { from: '2024-01-01T00:00:00Z', until: '2025-01-01T00:00:00Z' }

it.each<readonly [Omit<Verdict, 'left_out'> & Partial<Verdict>, string]>([
  [{ complete: true, partitions: ALL, span: YEAR }, 'Complete: all 144 partitions, 2024-01-01 to 2024-12-31'],
  [{ complete: true, partitions: { ...ALL, total: 1, done: 1 }, span: null }, 'Complete: its one partition'],
  [{ complete: true, partitions: null, span: null }, 'Complete'],
  [
    { complete: false, partitions: { ...ALL, done: 126, failed: 6, pending: 12 }, span: YEAR },
    'INCOMPLETE: 6 of 144 partitions failed, 12 not begun; the figures below are too low',
  ],
  [
    { complete: false, partitions: { ...ALL, done: 0, failed: 144 }, span: YEAR },
    'INCOMPLETE: 144 of 144 partitions failed; the figures below are too low',
  ],
  [
    { complete: false, partitions: { ...ALL, done: 143, partial: 1 }, span: YEAR },
    'INCOMPLETE: 1 of 144 partitions not finished; the figures below are too low',
  ],
  [
    { complete: false, partitions: null, span: null },
    'INCOMPLETE: it has no _SUCCESS; the figures below may be too low',
  ],
  [
    {
      complete: true,
      partitions: ALL,
      span: YEAR,
      left_out: ['171 items were left out', 'two were removed'],
    },
    'Complete: all 144 partitions, 2024-01-01 to 2024-12-31, but 171 items were left out, and two were removed',
  ],
])('title and heading say so: %j', async (given, text) => {
  const verdict = { left_out: [], ...given }
  const page = summaryPage({ ...SOME_REPORT, verdict })
  expect(page).toContain(`<title>acme-backfill: ${text}</title>`)
  const kind = verdict.complete ? 'whole' : 'lacking'
  expect(page).toContain(`<h1 class="${kind}"><bdi>acme-backfill</bdi>: ${text}</h1>`)
})

it('failed and pending cells are named, and totals say that more is to come', async () => {
  const heat = {
    columns: ['2024-01-01', '2024-02-01'],
    rows: [
      {
        query: 'domain.a',
        cells: [
          { least: 1200, most: 1299, state: 'done' as const },
          { least: 0, most: 0, state: 'failed' as const },
        ],
      },
      {
        query: 'domain.b',
        isNew: true,
        cells: [
          { least: 100, most: 999, state: 'done' as const },
          { least: 0, most: 0, state: 'pending' as const },
        ],
      },
    ],
    folded: 0,
  }
  const page = summaryPage({ ...SOME_REPORT, rows: { ...SOME_REPORT.rows, heat } })
  const [table] = /<table class="heat">.*?<\/table>/s.exec(page)!
  const texts = [...table.matchAll(/<t[dh][^>]*>(.*?)<\/t[dh]>/gs)].map(([, text]) =>
    text!.replace(/<[^>]*>/g, ' ').trim(),
  )
  expect(texts).toEqual([
    ...['query', '2024', 'total', 'Jan', 'Feb'],
    ...['domain.a', '1.2k', 'failed', '≥1,200'],
    ...['domain.b   new', '≥100', 'pending', '≥100'],
    ...['total', '≥1,300', '–', '≥1,300'],
  ])
  expect(table).toContain('<td class="failed"')
})

it('failures are a table of query, period, reason and what next', async () => {
  const page = summaryPage(SOME_REPORT)
  const [, cells] =
    /<tr>(<th scope="row"><bdi>domain\.quillmere\.net<\/bdi><\/th><td>2024-01-01 to.*?)<\/tr>/.exec(page)!
  expect(cells!.replace(/<[^>]*>/g, '|')).toBe(
    '||domain.quillmere.net|||2024-01-01 to 2024-01-31||the service or the network did not give a usable response||run again|',
  )
})

it('its ranges all include their last day, and the order of queries is said', async () => {
  const windows = {
    from: '2024-01-01T00:00:00Z',
    until: '2025-01-01T00:00:00Z',
    every: 'a window each month',
  }
  const page = summaryPage({ ...SOME_REPORT, request: { ...SOME_REPORT.request, windows } })
  expect(page).toContain('<dt>Windows</dt><dd>2024-01-01 to 2024-12-31, a window each month</dd>')
  expect(page).toContain(
    'First come queries with failed windows, then those that are not finished, then new ones',
  )
})

it('rows of files and rows of the last run do not look like one figure while partitions are not finished', async () => {
  const page = summaryPage(SOME_REPORT)
  expect(page).toContain('</b>rows in finished files</li>')
  expect(page).toContain('Partitions that are not finished have more rows')
  const verdict = { complete: true, partitions: null, span: null, left_out: [] }
  const whole = summaryPage({ ...SOME_REPORT, verdict })
  expect(whole).toContain('</b>rows</li>')
  expect(whole).not.toContain('Partitions that are not finished have more rows')
})

it('captions break on narrow screens', async () => {
  const page = summaryPage(SOME_REPORT)
  expect(page).toMatch(/@media screen and \(max-width:40rem\)\{.*caption\{white-space:normal/)
  // The word makes columns of a table of two years too wide; it stays for readers of the screen.
  expect(page).toContain('.many .pending b{font-size:0}')
})

it('bars show the share of the largest group, and times without a number have none', () => {
  const groups = [
    { name: '2024-01', rows: 400 },
    { name: '2024-03', rows: 100 },
  ]
  const axis = ['2024-01', '2024-02', '2024-03']
  const timeline = { unit: 'month' as const, groups, others: null, axis, incomplete: ['2024-03'] }
  const page = summaryPage({ ...SOME_REPORT, rows: { ...SOME_REPORT.rows, timeline } })
  const table = /<caption>When rows were imported<\/caption>.*?<\/table>/s.exec(page)?.[0] ?? ''
  const lines = Array.from(table.matchAll(/<tr>(<th scope="row">.*?)<\/tr>/gs), ([, cells = '']) => cells)
  expect(lines.map((cells) => cells.replace(/<[^>]*>/g, '|').replace(/\|+/g, '|'))).toEqual([
    '|2024-01|400|',
    '|2024-02|',
    '|2024-03| (not complete)|100|',
    '|all others|not shown|',
  ])
  const shares = Array.from(table.matchAll(/class="(bar[^"]*)" style="--s:([\d.]+)"/g), ([, ...each]) => each)
  expect(shares).toEqual([
    ['bar', '100.0'],
    ['bar', '0.0'],
    ['bar part', '25.0'],
    ['bar', '0.0'],
  ])
  expect(page).toContain('Without a number: no rows, or too few to be shown.')
})

it('bars of incomplete periods are hatched', async () => {
  const page = summaryPage(SOME_REPORT)
  expect(page).toContain('class="bar part"')
  expect(page).toContain('Hatched: not everything of it is exported.')
  const { timeline } = SOME_REPORT.rows
  const whole = { ...SOME_REPORT.rows, timeline: { ...timeline, incomplete: [] } }
  expect(summaryPage({ ...SOME_REPORT, rows: whole })).not.toContain('class="bar part"')
})
