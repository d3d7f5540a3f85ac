import { counted, countText } from '../core/index.ts'
import { type Manifest, type ManifestPartition, splitPath } from '../state/index.ts'
import { naturally, type RowFacts, short } from './contents.ts'
import { type Html, html } from './html.ts'

// The limits of a printed page, across and down.
const MAX_COLUMNS = 24
const MAX_QUERIES = 40
/** With more columns, large numbers are shortened, and bars have no room for names and numbers. */
const FEW = 12
const LARGE = 100_000

type State = Exclude<ManifestPartition['state'], 'pruned'>

type Cell = { rows: number; state: State }

type HeatMap = {
  /** The two parts of each name. The first may add up those before the others. */
  readonly columns: readonly (readonly [above: string, name: string])[]
  readonly rows: number
  /** null: nothing is there. */
  readonly lines: readonly { readonly name: string; readonly cells: readonly (Cell | null)[] }[]
}

// The gravest first.
const STATES: readonly State[] = ['failed', 'partial', 'pending', 'done']

/** Too many windows are added up by month or year. Of too many queries the incomplete and the largest have lines. */
export function heatMap({ partitions }: Manifest): HeatMap {
  const queries = new Map<string, { rows: number; rank: number }>()
  const windows = new Set<string>()
  const cells: { readonly query: string; readonly window: string; readonly cell: Cell }[] = []
  for (const { key, rows, state } of partitions) {
    if (state === 'pruned') continue
    const [query, window] = splitPath(key)
    const known = queries.get(query) ?? { rows: 0, rank: STATES.length }
    queries.set(query, { rows: known.rows + rows, rank: Math.min(known.rank, STATES.indexOf(state)) })
    windows.add(window)
    cells.push({ query, window, cell: { rows, state } })
  }
  const columnOf = columnsFor(windows)
  const all = [...new Set([...windows].map(columnOf))].sort()
  const columns = all.slice(-MAX_COLUMNS)
  const first = columns[0] ?? ''
  const listed = [...queries]
    .sort(([, a], [, b]) => a.rank - b.rank || b.rows - a.rows)
    .slice(0, queries.size > MAX_QUERIES ? MAX_QUERIES - 1 : MAX_QUERIES)
    .map(([query]) => query)
    .sort(naturally)
  const others = new Map<string, Cell>()
  const lines = new Map(listed.map((query) => [query, new Map<string, Cell>()]))
  for (const { query, window, cell } of cells) {
    const line = lines.get(query) ?? others
    const column = columnOf(window) < first ? EARLIER : columnOf(window)
    const sum = line.get(column) ?? { rows: 0, state: 'done' }
    sum.rows += cell.rows
    if (STATES.indexOf(cell.state) < STATES.indexOf(sum.state)) sum.state = cell.state
    line.set(column, sum)
  }
  if (queries.size > listed.length) lines.set(`and ${queries.size - listed.length} more`, others)
  const earlier = all.length - columns.length
  const shown = earlier === 0 ? columns : [EARLIER, ...columns]
  const named = namesOf(columns)
  return {
    columns: shown.map((column) => (column === EARLIER ? ['', `and ${earlier} more`] : named(column))),
    rows: cells.reduce((sum, { cell }) => sum + cell.rows, 0),
    lines: [...lines].map(([name, line]) => ({
      name,
      cells: shown.map((column) => line.get(column) ?? null),
    })),
  }
}

const EARLIER = ''

/** The finest of windows, months and years that fit. */
function columnsFor(windows: ReadonlySet<string>): (window: string) => string {
  if (windows.size <= MAX_COLUMNS) return (window) => window.split('..')[0]!
  const start = (window: string, length: number): string =>
    window === 'all' ? window : window.slice(0, length)
  const months = new Set([...windows].map((window) => start(window, 7)))
  return (window) => start(window, months.size <= MAX_COLUMNS ? 7 : 4)
}

/** The map as a table. A cell is the darker the more rows it has. */
export function heatTable({ columns, lines }: HeatMap): Html {
  const largest = Math.max(1, ...lines.flatMap(({ cells }) => cells.map((cell) => cell?.rows ?? 0)))
  const isMany = columns.length > FEW
  const hasTotals = columns.length > 1
  const sum = (cells: readonly (Cell | null)[]): number =>
    cells.reduce((all, cell) => all + (cell?.rows ?? 0), 0)
  const total = (rows: number): Html => html`<td class="sum">${countText(rows)}</td>`
  const cellOf = (cell: Cell | null): Html => {
    if (cell === null) return html`<td></td>`
    const { rows, state } = cell
    const share = Math.round((100 * Math.log10(1 + rows)) / Math.log10(1 + largest))
    const text = isMany && rows >= LARGE ? short(rows) : countText(rows)
    const shown = state === 'done' || rows > 0 ? text : ''
    const mark = state === 'done' ? '' : html`${shown === '' ? '' : html`<br>`}<b>${state}</b>`
    return html`<td class="${state}" title="${countText(rows)}" style="--h:${share}">${shown}${mark}</td>`
  }
  const body = lines.map(
    ({
      name,
      cells,
    }) => html`<tr><th scope="row" title="${name}"><bdi>${name}</bdi></th>${cells.map(cellOf)}${
      hasTotals ? total(sum(cells)) : ''
    }</tr>
`,
  )
  const sums = columns.map((_, i) => total(sum(lines.map(({ cells }) => cells[i] ?? null))))
  const all = hasTotals ? total(sum(lines.flatMap(({ cells }) => cells))) : ''
  return html`<table class="heat${isMany ? ' many' : ''}"><caption>Rows of each query in each window, which begins at the date above it</caption>
<thead>${groupHeads(columns)}<tr><th scope="col">query</th>${columns.map(([, name]) => html`<th scope="col">${name}</th>`)}${hasTotals ? html`<th scope="col">total</th>` : ''}</tr></thead><tbody>${body}</tbody>${lines.length > 1 ? html`<tfoot><tr><th scope="row">total</th>${sums}${all}</tr></tfoot>` : ''}</table>`
}

/** Years over months, months over days, days over hours. */
function groupHeads(columns: HeatMap['columns']): Html | string {
  const all = columns.map(([above]) => above)
  if (all.every((above) => above === '')) return ''
  const heads = [...new Set(all)].map((above) => {
    const span = all.filter((each) => each === above).length
    return above === '' ? EMPTY : html`<th scope="colgroup" colspan="${span}">${above}</th>`
  })
  return html`<tr>${EMPTY}${heads}${columns.length > 1 ? EMPTY : ''}</tr>
`
}

const EMPTY = html`<td class="sum"></td>`

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Names are as short as all columns allow: `2024-01-01T060000Z` → `2024-01-01`, `06:00`. */
function namesOf(columns: readonly string[]): (column: string) => readonly [above: string, name: string] {
  if (columns.every((column) => /^\d{4}$|^all$/.test(column))) return (column) => ['', column]
  if (columns.length > 1 && columns.every((column) => column.endsWith('-01-01')))
    return (column) => ['', column.slice(0, 4)]
  if (columns.every((column) => /^\d{4}-\d\d(?:-01)?$/.test(column)))
    return (column) => [column.slice(0, 4), MONTHS[Number(column.slice(5, 7)) - 1]!]
  if (columns.every((column) => /^\d{4}-\d\d-\d\d$/.test(column)))
    return (column) => [`${MONTHS[Number(column.slice(5, 7)) - 1]} ${column.slice(0, 4)}`, column.slice(8)]
  if (columns.every((column) => /^\d{4}-\d\d-\d\d(?:T\d{6}Z)?$/.test(column))) {
    return (column) => [
      column.slice(0, 10),
      `${column.slice(11, 13) || '00'}:${column.slice(13, 15) || '00'}`,
    ]
  }
  return (column) => ['', column]
}

const MAX_MONTHS = 120

type Month = { readonly month: string; readonly rows: number; readonly isWhole: boolean }

/** Oldest first, without gaps. Empty: nobody has counted, and a window is longer than a month. */
export function monthsOf({ partitions }: Manifest, counted: RowFacts['months'] | null): readonly Month[] {
  const sums = new Map<string, number>(counted?.map(({ month, rows }) => [month, rows]))
  const unfinished = new Set<string>()
  for (const { key, rows, state } of partitions) {
    if (state === 'pruned') continue
    const [first, last] = monthsIn(splitPath(key)[1])
    if (state !== 'done') {
      unfinished.add(last)
      for (let month = first; month < last; month = shifted(month, 1)) unfinished.add(month)
    }
    if (counted !== null) continue
    if (first === last && first !== ALL) sums.set(first, (sums.get(first) ?? 0) + rows)
    else if (rows > 0) return []
  }
  const names = [...sums.keys()].sort()
  if (names.length === 0) return []
  const all: Month[] = []
  for (let month = names[0]!; month <= names.at(-1)!; month = shifted(month, 1))
    all.push({ month, rows: sums.get(month) ?? 0, isWhole: !unfinished.has(month) && !unfinished.has(ALL) })
  return all
}

const ALL = 'all'

function monthsIn(window: string): readonly [first: string, last: string] {
  const [from = '', until = ''] = window.split('..')
  if (until === '') return [ALL, ALL]
  const last = until.slice(0, 7)
  return [from.slice(0, 7), /^\d{4}-\d\d-01$/.test(until) ? shifted(last, -1) : last]
}

function shifted(month: string, by: 1 | -1): string {
  const months = 12 * Number(month.slice(0, 4)) + Number(month.slice(5)) - 1 + by
  return `${String(Math.floor(months / 12)).padStart(4, '0')}-${String((months % 12) + 1).padStart(2, '0')}`
}

export function monthChart(all: readonly Month[]): Html {
  const months = all.slice(-MAX_MONTHS)
  const earlier = all.slice(0, -MAX_MONTHS)
  const sum = earlier.reduce((rows, month) => rows + month.rows, 0)
  const more =
    sum === 0 ? '' : ` And ${counted(earlier.length, 'month')} before, with ${counted(sum, 'row')}.`
  const largest = months.reduce((most, each) => (each.rows > most.rows ? each : most), months[0]!)
  const years = new Map<string, number>()
  for (const { month } of months) years.set(month.slice(0, 4), (years.get(month.slice(0, 4)) ?? 0) + 1)
  const isFew = months.length <= FEW
  const share = (rows: number): string => ((100 * rows) / Math.max(1, largest.rows)).toFixed(1)
  return html`<figure class="chart" style="--n:${months.length}" aria-label="Rows by month"><ol class="months">${months.map(
    ({ month, rows, isWhole }) =>
      html`<li${isWhole ? '' : html` class="part"`} style="--s:${share(rows)}" title="${month}: ${countText(rows)}"><span class="sr">${month}: ${countText(rows)}${isWhole ? '' : ', a window is not done'}</span>${isFew ? html`<b aria-hidden="true">${short(rows)}</b>` : ''}</li>`,
  )}</ol>
${isFew ? html`<div class="axis" aria-hidden="true">${months.map(({ month }) => html`<span style="flex:1">${MONTHS[Number(month.slice(5)) - 1]!}</span>`)}</div>` : ''}<div class="axis" aria-hidden="true">${[...years].map(([year, count]) => html`<span style="flex:${count}">${year}</span>`)}</div>
<figcaption>Most: ${countText(largest.rows)} in ${largest.month}.${months.some(({ isWhole }) => !isWhole) ? ' Hatched: a window of the month is not done.' : ''}${more}</figcaption></figure>`
}
