import { expect, it } from 'vitest'
import type { Manifest } from '../../src/state/index.ts'
import { type SummaryInput, summaryMarkdown, summaryPage, withVerdict } from '../../src/summary/index.ts'
import { DOMAINS, keyOf, SOME_INPUT, WHOLE, withManifest } from './some-report.ts'

const textOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

function tableOf(page: string, kind: string): string[] {
  const [table = ''] = new RegExp(`<table class="${kind}[^>]*>.*?</table>`, 's').exec(page) ?? []
  return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row]) => textOf(row!))
}

const headIn = (page: string): string => textOf(/<header>.*?<\/header>/s.exec(page)![0])

it('the head has name, period and verdict, with its cause and what to do; the title has the verdict', () => {
  const page = summaryPage(SOME_INPUT)
  expect(page).toContain('<title>acme-backfill: STOPPED: 2 of 48 partitions failed, 8 not done</title>')
  expect(headIn(page)).toBe(
    [
      'acme-backfill 2024-01-01 to 2024-10-31 STOPPED: 2 of 48 partitions failed, 8 not done',
      'The service responded with 401 (&#60;api.example.com&#62;). Check that SPILLWAY_TOKEN holds a valid token.',
      '9 items were left out (quarantine, in 1 partition, see _quarantine)',
      '3 rows in 1 partition are outside of what the pipeline file plans',
      '1 window from 2025-01-01 on waits for its end and extract.lag',
    ].join(' '),
  )
  expect(page).not.toContain('Invalid input')
  expect(headIn(summaryPage(WHOLE))).toBe(
    'acme-backfill 2024-01-01 to 2024-12-31 Complete: all 48 partitions',
  )
})

it('another verdict takes the place of the former one, and nothing else changes', () => {
  const page = summaryPage(SOME_INPUT)
  const changed = withVerdict(page, 'acme-backfill', WHOLE.verdict)
  expect(headIn(changed)).toBe(headIn(summaryPage(WHOLE)))
  expect(withVerdict(changed, 'acme-backfill', SOME_INPUT.verdict)).toBe(page)
})

it('what is not exported is named, and who ran it', () => {
  const text = textOf(summaryPage(SOME_INPUT))
  expect(text).toMatch(/Columns left out hash_type, /)
  expect(text).toContain(
    'Fields not exported severity (in 12 items), &#60;b&#62; (in 1 item) ; transform.extra_columns',
  )
  expect(text).toContain('organization 7, host etl-2')
})

it('partitions without rows explain that there are fewer files; months without rows make no chart', () => {
  const partitions = ['2024-01-01..2024-02-01', '2024-02-01..2024-03-01'].map((window) =>
    ofWindow(window, 'done', 0),
  )
  const page = summaryPage(withManifest({ partitions }, { rows: null }))
  expect(textOf(page)).toContain('20 in all; 2 partitions without rows have none.')
  expect(page).not.toContain('class="chart"')
})

it('failures are a line for each cause', () => {
  const [list] = /<ul class="failures">.*?<\/ul>/s.exec(summaryPage(SOME_INPUT))!
  expect([...list.matchAll(/<li>(.*?)<\/li>/g)].map(([, text]) => textOf(text!))).toEqual([
    '2 partitions, the first: domain.quillmere.net, 2024-01-01 to 2024-01-31 : The service responds 503. Run again.',
  ])
})

it('counts are exact, queries in natural order, and what is not exported is named', () => {
  const partitions = DOMAINS.flatMap((domain, i): Manifest['partitions'] => [
    { key: keyOf(domain, 1), state: 'done', rows: 1200 + i, quarantined: 0 },
    { key: keyOf(domain, 2), state: i === 0 ? 'failed' : 'done', rows: 3 * i, quarantined: 0 },
  ])
  expect(tableOf(summaryPage(withManifest({ partitions })), 'heat')).toEqual([
    '2024',
    'query Jan Feb total',
    'domain.quillmere.net 1,200 failed 1,200',
    'domain.scatterholt.com 1,201 3 1,204',
    'domain.unit2.example 1,202 6 1,208',
    'domain.unit10.example 1,203 9 1,212',
    'total 4,806 18 4,824',
  ])
})

it('months are columns of one chart, those without rows too, and unfinished ones are hatched', () => {
  const [chart] = /<ol class="months">.*?<\/ol>/s.exec(summaryPage({ ...SOME_INPUT, rows: null }))!
  const columns = [...chart.matchAll(/<li( class="part")? style="--s:([\d.]+)" title="(.*?)"/g)]
  expect(columns).toHaveLength(12)
  expect(columns.at(-1)!.slice(1)).toEqual([' class="part"', '0.0', '2024-12: 0'])
  expect(columns.at(-3)!.slice(1)).toEqual([undefined, '100.0', '2024-10: 42,028'])
  const counted = /<ol class="months">.*?<\/ol>/s.exec(summaryPage(SOME_INPUT))![0]
  expect(counted.match(/<li/g)).toHaveLength(14)
  expect(counted).toContain('title="2023-03: 0"')
})

const ofWindow = (window: string, state: 'done' | 'partial', rows: number) => ({
  ...{ key: `domain.a/${window}`, state, rows, quarantined: 0 },
})

/** The columns of the chart: month, rows, whether it is whole. */
function monthsOf(partitions: Manifest['partitions'], rows: SummaryInput['rows'] = null) {
  const page = summaryPage(withManifest({ partitions }, { rows }))
  const [chart = ''] = /<ol class="months">.*?<\/ol>/s.exec(page) ?? []
  return [...chart.matchAll(/<li( class="part")? style="[^"]*" title="(.*?): ([\d,]+)"/g)].map(
    ([, part, month, rows]) => [month, Number(rows!.replaceAll(',', '')), part === undefined],
  )
}

const factsOf = (months: Readonly<Record<string, number>>) => ({
  ...SOME_INPUT.rows!,
  months: Object.entries(months).map(([month, rows]) => ({ month, rows, people: null })),
})

it('months are counted rows, or windows that lie within one', () => {
  for (const window of ['2023-01-01..2024-01-01', '2024-01-29..2024-02-05', 'all'])
    expect(monthsOf([ofWindow(window, 'done', 9)])).toEqual([])
  const partitions = [
    ofWindow('2024-01-22..2024-01-29', 'done', 9),
    ofWindow('2024-01-29..2024-02-01', 'done', 2),
  ]
  expect(monthsOf(partitions)).toEqual([['2024-01', 11, true]])
})

it('months of a long window that is not done are hatched', () => {
  const partitions = [
    ofWindow('2023-01-01..2024-01-01', 'done', 9),
    ofWindow('2024-01-01..2024-03-01', 'partial', 9),
  ]
  const rows = factsOf({ '2023-12': 5, '2024-01': 4, '2024-03': 1 })
  expect(monthsOf(partitions, rows)).toEqual([
    ['2023-12', 5, true],
    ['2024-01', 4, false],
    ['2024-02', 0, false],
    ['2024-03', 1, true],
  ])
})

it('a total counts what is not shown, which is said', () => {
  const years = Array.from({ length: 34 }, (_, i) => 1990 + i)
  const partitions = years.map((year, i) => ofWindow(`${year}-01-01..${year + 1}-01-01`, 'done', i + 1))
  const total = (34 * 35) / 2
  const page = summaryPage(
    withManifest({ partitions, totals: { ...SOME_INPUT.manifest.totals, rows: total } }, { rows: null }),
  )
  const [head, line] = tableOf(page, 'heat')
  expect(head).toMatch(/^query and 10 more 2000 2001 .* 2023 total$/)
  expect(line).toMatch(new RegExp(`^domain.a 55 11 12 .* 34 ${total}$`))
  const months = Object.fromEntries(
    Array.from({ length: 130 }, (_, i) => [
      `${2010 + Math.floor(i / 12)}-${String((i % 12) + 1).padStart(2, '0')}`,
      2,
    ]),
  )
  const long = textOf(summaryPage(withManifest({}, { rows: factsOf(months) })))
  expect(long).toContain('And 10 months before, with 20 rows.')
})

it('rows that are in no file yet are told from those that are', () => {
  const partitions = [ofWindow('2024-01-01..2024-02-01', 'partial', 1200)]
  const page = summaryPage(withManifest({ partitions, totals: { ...SOME_INPUT.manifest.totals, rows: 200 } }))
  expect(textOf(page)).toContain('1,000 rows of these are in no file yet.')
})

it('what only rows tell is there when they were asked', () => {
  const page = summaryPage(SOME_INPUT)
  expect(page).toContain('<b>4,321</b>people')
  expect(tableOf(page, 'bars')).toContainEqual('and 11 more 530,000')
  // The others are no bar: they would be the longest.
  expect(page).toMatch(/and 11 more<\/th><td class="n">530,000<\/td><td><\/td>/)
  expect(textOf(page)).toContain('month rows a year before people a year before 2024-01 1,002 1,000 12 10')
  expect(summaryPage({ ...SOME_INPUT, rows: null })).not.toMatch(/<\/b>people|Where it leaked/)
})

it('as Markdown it has verdict, figures and failures', () => {
  expect(summaryMarkdown(SOME_INPUT).split('\n')).toEqual([
    '## acme-backfill: STOPPED: 2 of 48 partitions failed, 8 not done',
    '',
    '- The service responded with 401 (\\<api.example.com\\>)',
    '- Check that SPILLWAY\\_TOKEN holds a valid token.',
    '- covers 2024-01-01 to 2024-10-31',
    '- 9 items were left out (quarantine, in 1 partition, see \\_quarantine)',
    '- 3 rows in 1 partition are outside of what the pipeline file plans',
    '- 1 window from 2025-01-01 on waits for its end and extract.lag',
    '',
    '| figure | |',
    '|---|--:|',
    '| rows | 1,234,567 |',
    '| people | 4,321 |',
    '| of 48 partitions done | 38 |',
    '| new in the last run | 500,000 |',
    '| last run, UTC | 2024-12-03 02:00 |',
    '| searches left | 9,000 |',
    '| quarantined | 9 |',
    '| files | 20 |',
    '| size | 98.8 MB |',
    '',
    '| what failed | why | what next |',
    '|---|---|---|',
    '| 2 partitions, the first: domain.quillmere.net, 2024-01-01 to 2024-01-31 | The service responds 503 | Run again. |',
  ])
})
