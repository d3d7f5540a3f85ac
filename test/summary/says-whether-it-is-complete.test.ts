import { expect, it } from 'vitest'
import { isPageOf, type SummaryInput, summaryMarkdown, summaryPage } from '../../src/summary/index.ts'
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

const partition = (month: number, state: 'done' | 'failed' | 'pending') => ({
  key: keyOf('unit2.example', month),
  state,
  rows: 5,
  quarantined: 0,
})

it.each<readonly [SummaryInput, string]>([
  [WHOLE, 'Complete: all 48 partitions'],
  [withManifest({ partitions: [partition(1, 'done')] }, { complete: true }), 'Complete: its one partition'],
  [SOME_INPUT, 'INCOMPLETE: 2 of 48 partitions failed'],
  [
    withManifest({ partitions: [partition(1, 'done'), partition(2, 'pending')] }),
    'INCOMPLETE: 1 of 2 partitions not done',
  ],
  [withManifest({ partitions: [partition(1, 'done')] }), 'INCOMPLETE: it has no _SUCCESS'],
])('title and heading say so in one line', (input, text) => {
  const page = summaryPage(input)
  expect(page).toContain(`<title>acme-backfill: ${text}</title>`)
  expect(page).toContain(`<h1 class="${input.complete ? 'whole' : 'lacking'}">${text}</h1>`)
})

it('reasons follow the heading, without the words of a validator', () => {
  const [header] = /<header>.*?<\/header>/s.exec(summaryPage(SOME_INPUT))!
  expect([...header.matchAll(/<li>(.*?)<\/li>/g)].map(([, text]) => text)).toEqual([
    '4 partitions not finished',
    '4 partitions not begun',
    '9 items were left out (quarantine, in 1 partition, see _quarantine)',
  ])
  expect(summaryPage(SOME_INPUT)).not.toContain('Invalid input')
})

it('figures come first; scope, files and checksums last', () => {
  const page = summaryPage(SOME_INPUT)
  const places = [
    'class="figures"',
    'id="failed"',
    'id="months"',
    'id="heat"',
    'id="runs"',
    'id="scope"',
    'id="shards"',
  ].map((part) => page.indexOf(part))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places[0]).toBeGreaterThan(0)
})

it('failures are a line for each cause', () => {
  const [list] = /<ul class="failures">.*?<\/ul>/s.exec(summaryPage(SOME_INPUT))!
  expect([...list.matchAll(/<li>(.*?)<\/li>/g)].map(([, text]) => textOf(text!))).toEqual([
    '2 partitions, the first: domain.quillmere.net, 2024-01-01 to 2024-01-31 : The service responds 503. Run again.',
  ])
})

it('counts are exact, queries in natural order, and what is not exported is named', () => {
  const partitions = DOMAINS.flatMap((domain, i) => [
    { key: keyOf(domain, 1), state: 'done' as const, rows: 1200 + i, quarantined: 0 },
    {
      key: keyOf(domain, 2),
      state: i === 0 ? ('failed' as const) : ('done' as const),
      rows: 3 * i,
      quarantined: 0,
    },
  ])
  expect(tableOf(summaryPage(withManifest({ partitions })), 'heat')).toEqual([
    'query 2024 total',
    'Jan Feb',
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

const ofWindow = (window: string, state: 'done' | 'partial' | 'pending', rows: number) => ({
  ...{ key: `domain.a/${window}`, state, rows, quarantined: 0 },
})

/** The columns of the chart: month, rows, whether it is whole. */
function monthsIn(page: string) {
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
  for (const window of ['2023-01-01..2024-01-01', '2024-01-29..2024-02-05', 'all']) {
    const weekly = withManifest({ partitions: [ofWindow(window, 'done', 9)] }, { rows: null })
    expect(monthsIn(summaryPage(weekly))).toEqual([])
  }
  const partitions = [
    ofWindow('2024-01-22..2024-01-29', 'done', 9),
    ofWindow('2024-01-29..2024-02-01', 'done', 2),
  ]
  expect(monthsIn(summaryPage(withManifest({ partitions }, { rows: null })))).toEqual([['2024-01', 11, true]])
})

it('months of a long window that is not done are hatched from where its files end', () => {
  const partitions = [ofWindow('2024-01-01..2025-01-01', 'partial', 9)]
  const rows = factsOf({ '2024-01': 5, '2024-03': 4, '2024-06': 1 })
  const shard = { ...SOME_INPUT.manifest.shards[0]!, partitions: [partitions[0]!.key] }
  const until = (max: string, order = 'asc') =>
    monthsIn(
      summaryPage(
        withManifest(
          {
            partitions,
            settings: { 'extract.order': order },
            shards: [{ ...shard, imported_at: { min: '2024-01-03T00:00:00Z', max } }],
          },
          { rows },
        ),
      ),
    ).map(([month, , isWhole]) => [String(month).slice(5), isWhole])
  const months = ['01', '02', '03', '04', '05', '06']
  expect(until('2024-03-31T00:00:00Z')).toEqual(months.map((month) => [month, month < '03']))
  expect(until('2024-03-31T00:00:00Z', 'desc')).toEqual(months.map((month) => [month, month > '01']))
  // Its files hold rows of another window, too.
  expect(until('2025-03-31T00:00:00Z')).toEqual(months.map((month) => [month, false]))
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

it('a heading is not said again by its table', () => {
  expect(textOf(summaryPage(SOME_INPUT))).not.toContain('Runs Runs')
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
    '## acme-backfill: INCOMPLETE: 2 of 48 partitions failed',
    '',
    '- 4 partitions not finished',
    '- 4 partitions not begun',
    '- 9 items were left out (quarantine, in 1 partition, see \\_quarantine)',
    '',
    '| figure | |',
    '|---|--:|',
    '| rows | 1,234,567 |',
    '| people | 4,321 |',
    '| of 48 partitions done | 38 |',
    '| new in the last run | 500,000 |',
    '| last run | 2024-12-03 |',
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

it('a page is known again by its manifest and by what it says of being complete', () => {
  for (const input of [SOME_INPUT, { ...SOME_INPUT, rows: null }]) {
    const page = summaryPage(input)
    expect(isPageOf(page, SOME_INPUT)).toBe(true)
    expect(isPageOf(page, { ...SOME_INPUT, complete: true })).toBe(false)
    expect(isPageOf(page, { ...SOME_INPUT, manifestSha256: '00'.repeat(32) })).toBe(false)
  }
  expect(isPageOf(summaryPage(WHOLE), WHOLE)).toBe(true)
  expect(isPageOf(summaryPage(WHOLE), { ...WHOLE, complete: false })).toBe(false)
})
