import type { Between, HeatCell, HeatMap } from './data.ts'
import { Html, html } from './html.ts'
import { betweenText, number } from './words.ts'

// With more columns, names of queries get less space.
const MANY = 13

// With fewer queries no search is needed.
const MIN_TO_SEARCH = 11

/** Shows the rows whose first cell contains a string. Without the script, the page has no search field. */
export const SEARCH_SCRIPT = `const field=document.getElementById('find')
field.parentElement.hidden=false
field.addEventListener('input',()=>{const text=field.value.trim().toLowerCase()
for(const row of document.querySelectorAll('.heat tbody tr'))row.hidden=!row.firstElementChild.textContent.toLowerCase().includes(text)})`

export function needsSearch(map: HeatMap | null): boolean {
  return map !== null && map.rows.length >= MIN_TO_SEARCH
}

/** Rows by query and window. Totals are computed from the shown bounds of cells only. */
export function heatTable(map: HeatMap): Html {
  const { columns, rows } = map
  const largest = Math.max(
    10,
    ...rows.flatMap(({ cells }) => cells.map((cell) => (cell === null ? 0 : middle(cell)))),
  )
  const isGrand = columns.length > 1
  const totals = columns.map((_, i) => totalOf(rows.map(({ cells }) => cells[i] ?? null)))
  const total = (sum: Html): Html => (isGrand ? sum : html``)
  const body = rows.map(
    ({
      query,
      isNew,
      cells,
    }) => html`<tr><th scope="row" title="${query}"><bdi>${query}</bdi>${isNew ? html` <small>new</small>` : ''}</th>${cells.map((cell) => cellOf(cell, largest))}${total(
      html`<td class="sum">${totalText(totalOf(cells))}</td>`,
    )}</tr>
`,
  )
  const foot = html`<tfoot><tr><th scope="row">total</th>${totals.map((sum) => html`<td class="sum">${totalText(sum)}</td>`)}${total(
    html`<td class="sum">${totalText(totalOf(rows.flatMap(({ cells }) => cells)))}</td>`,
  )}</tr></tfoot>`
  return html`<table class="heat${columns.length > MANY ? ' many' : ''}"><caption>Rows of each query in each window, which begins at the date above it</caption>
${head(columns, isGrand)}<tbody>${body}</tbody>${rows.length > 1 ? foot : ''}</table>`
}

function cellOf(cell: HeatCell | null, largest: number): Html {
  if (cell === null) return html`<td></td>`
  const { state } = cell
  const share = Math.round((100 * Math.log10(1 + middle(cell))) / Math.log10(1 + largest))
  const isEmpty = cell.most === 0
  if (state === 'done') return html`<td style="--h:${share}">${betweenText(cell)}</td>`
  return html`<td class="${state}" style="--h:${share}">${isEmpty ? '' : html`${betweenText(cell)}<br>`}<b>${STATES[state]}</b></td>`
}

const STATES = { failed: 'failed', partial: 'partial', pending: 'pending' } as const

function middle({ least, most }: Between): number {
  return most === null ? least : Math.sqrt(Math.max(0, least) * most)
}

type Total = Between & { readonly isWhole: boolean }

function totalOf(cells: readonly (HeatCell | null)[]): Total {
  let [least, most, isWhole]: [number, number | null, boolean] = [0, 0, true]
  for (const cell of cells) {
    if (cell === null) continue
    least += cell.least
    most = most === null || cell.most === null ? null : most + cell.most
    if (cell.state !== 'done') isWhole = false
  }
  return { least, most, isWhole }
}

/** Exact if all its cells are; else the least that they add up to, if they do. */
function totalText({ isWhole, least, most }: Total): string {
  if (isWhole && least === most) return number(least)
  return least === 0 ? '–' : `≥${number(least)}`
}

/** Years over months, months over days, days over hours: the common part of columns is a heading above them. */
function head(columns: readonly string[], hasTotal: boolean): Html {
  const names = columns.map(namesOf(columns))
  const total = (span: number): Html =>
    hasTotal ? html`<th scope="col"${new Html(span > 1 ? ` rowspan="${span}"` : '')}>total</th>` : html``
  if (names.every(([above]) => above === '')) {
    return html`<thead><tr><th scope="col">query</th>${names.map(([, name]) => html`<th scope="col">${name}</th>`)}${total(1)}</tr></thead>`
  }
  const above: { name: string; span: number }[] = []
  for (const [name] of names) {
    const last = above.at(-1)
    if (last?.name === name) last.span++
    else above.push({ name, span: 1 })
  }
  return html`<thead><tr><th scope="col" rowspan="2">query</th>${above.map(
    ({ name, span }) => html`<th scope="colgroup" colspan="${span}">${name}</th>`,
  )}${total(2)}</tr>
<tr>${names.map(([, name]) => html`<th scope="col">${name}</th>`)}</tr></thead>`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The two parts of a column's name: `2024-01-01T060000Z` → `2024-01-01`, `06:00`. */
function namesOf(columns: readonly string[]): (column: string) => readonly [above: string, name: string] {
  const areMany = columns.length > 1
  if (columns.every((column) => /^\d{4}$|^all$/.test(column))) return (column) => ['', column]
  if (areMany && columns.every((column) => column.endsWith('-01-01')))
    return (column) => ['', column.slice(0, 4)]
  if (columns.every((column) => /^\d{4}-\d\d(?:-01)?$/.test(column))) {
    return (column) => [column.slice(0, 4), MONTHS[Number(column.slice(5, 7)) - 1]!]
  }
  if (columns.every((column) => /^\d{4}-\d\d-\d\d$/.test(column))) {
    return (column) => [`${MONTHS[Number(column.slice(5, 7)) - 1]} ${column.slice(0, 4)}`, column.slice(8)]
  }
  if (columns.every((column) => /^\d{4}-\d\d-\d\d(?:T\d{6}Z)?$/.test(column))) {
    return (column) => [
      column.slice(0, 10),
      `${column.slice(11, 13) || '00'}:${column.slice(13, 15) || '00'}`,
    ]
  }
  return (column) => ['', column]
}
