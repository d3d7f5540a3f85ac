import { countText } from '../core/index.ts'
import { type Manifest, type ManifestPartition, splitPath } from '../state/index.ts'
import { naturally } from './contents.ts'
import { type Html, html } from './html.ts'
import { short } from './words.ts'

// The limits of a printed page, across and down.
const MAX_COLUMNS = 24
const MAX_QUERIES = 40
/** With more columns, large numbers are shortened. */
const MANY = 12
const LARGE = 100_000
/** With fewer queries no search is needed. */
const MIN_TO_SEARCH = 11

type State = Exclude<ManifestPartition['state'], 'pruned'>

type Cell = { rows: number; state: State }

type HeatMap = {
  readonly columns: readonly string[]
  /** How many columns before them are added up in a first one; 0: there is none. */
  readonly earlier: number
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
  return {
    columns,
    earlier,
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

/** Shows the rows whose first cell contains a text, and their totals. Without the script, the page has no such field. */
export const SEARCH_SCRIPT = `const field=document.getElementById('find')
field.parentElement.hidden=false
field.addEventListener('input',()=>{const text=field.value.trim().toLowerCase(),sums=[]
for(const row of document.querySelectorAll('.heat tbody tr')){row.hidden=!row.firstElementChild.textContent.toLowerCase().includes(text)
if(!row.hidden)[...row.querySelectorAll('td')].forEach((cell,i)=>{sums[i]=(sums[i]??0)+Number(cell.dataset.rows??0)})}
document.querySelectorAll('.heat tfoot td').forEach((cell,i)=>{cell.textContent=(sums[i]??0).toLocaleString('en')})})`

export function needsSearch({ lines }: HeatMap): boolean {
  return lines.length >= MIN_TO_SEARCH
}

/** The map as a table. A cell is the darker the more rows it has. */
export function heatTable({ columns, earlier, lines }: HeatMap): Html {
  const largest = Math.max(1, ...lines.flatMap(({ cells }) => cells.map((cell) => cell?.rows ?? 0)))
  const isMany = columns.length > MANY
  const width = lines[0]?.cells.length ?? 0
  const sum = (cells: readonly (Cell | null)[]): number =>
    cells.reduce((all, cell) => all + (cell?.rows ?? 0), 0)
  const total = (rows: number): Html => html`<td class="sum" data-rows="${rows}">${countText(rows)}</td>`
  const cellOf = (cell: Cell | null): Html => {
    if (cell === null) return html`<td></td>`
    const { rows, state } = cell
    const share = Math.round((100 * Math.log10(1 + rows)) / Math.log10(1 + largest))
    const text = isMany && rows >= LARGE ? short(rows) : countText(rows)
    const shown = state === 'done' || rows > 0 ? text : ''
    const mark = state === 'done' ? '' : html`${shown === '' ? '' : html`<br>`}<b>${state}</b>`
    return html`<td class="${state}" data-rows="${rows}" title="${countText(rows)}" style="--h:${share}">${shown}${mark}</td>`
  }
  const body = lines.map(
    ({
      name,
      cells,
    }) => html`<tr><th scope="row" title="${name}"><bdi>${name}</bdi></th>${cells.map(cellOf)}${
      width > 1 ? total(sum(cells)) : ''
    }</tr>
`,
  )
  const sums = Array.from({ length: width }, (_, i) => total(sum(lines.map(({ cells }) => cells[i] ?? null))))
  const all = width > 1 ? total(sum(lines.flatMap(({ cells }) => cells))) : ''
  return html`<table class="heat${isMany ? ' many' : ''}"><caption>Rows of each query in each window, which begins at the date above it</caption>
${head(columns, earlier)}<tbody>${body}</tbody>${lines.length > 1 ? html`<tfoot><tr><th scope="row">total</th>${sums}${all}</tr></tfoot>` : ''}</table>`
}

/** Years over months, months over days, days over hours: the common part of columns is a heading above them. */
function head(columns: readonly string[], earlier: number): Html {
  const names = columns.map(namesOf(columns))
  const more = (span: number): Html | string =>
    earlier > 0 ? html`<th scope="col" rowspan="${span}">and ${earlier} more</th>` : ''
  const total = (span: number): Html | string =>
    columns.length > 1 ? html`<th scope="col" rowspan="${span}">total</th>` : ''
  if (names.every(([above]) => above === '')) {
    return html`<thead><tr><th scope="col">query</th>${more(1)}${names.map(([, name]) => html`<th scope="col">${name}</th>`)}${total(1)}</tr></thead>`
  }
  const above: { name: string; span: number }[] = []
  for (const [name] of names) {
    const last = above.at(-1)
    if (last?.name === name) last.span++
    else above.push({ name, span: 1 })
  }
  return html`<thead><tr><th scope="col" rowspan="2">query</th>${more(2)}${above.map(
    ({ name, span }) => html`<th scope="colgroup" colspan="${span}">${name}</th>`,
  )}${total(2)}</tr>
<tr>${names.map(([, name]) => html`<th scope="col">${name}</th>`)}</tr></thead>`
}

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The two parts of a column's name: `2024-01-01T060000Z` → `2024-01-01`, `06:00`. */
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
