import { countText } from '../core/index.ts'
import { type Manifest, splitPath } from '../state/index.ts'
import type { RowFacts } from './contents.ts'
import { MONTHS } from './heat-map.ts'
import { type Html, html } from './html.ts'
import { short } from './words.ts'

const MAX_COLUMNS = 120
/** Fewer columns have room for names and numbers. */
const FEW = 12
const MONTH_MS = 31 * 86_400_000

type Month = { readonly month: string; readonly rows: number; readonly isWhole: boolean }

/**
 * Rows by month of `imported_at`: as counted from rows, else by the month in which their window begins.
 * @returns oldest first, without gaps; empty: windows are longer than months, or there are none
 */
export function monthsOf({ partitions }: Manifest, counted: RowFacts['months'] | null): readonly Month[] {
  const sums = new Map<string, number>(counted?.map(({ month, rows }) => [month, rows]))
  const unfinished = new Set<string>()
  for (const { key, rows, state } of partitions) {
    const [from = '', until = ''] = splitPath(key)[1].split('..')
    const month = from.slice(0, 7)
    if (state === 'pruned') continue
    if (state !== 'done') unfinished.add(month)
    if (counted !== null) continue
    const isLong = Date.parse(until.slice(0, 10)) - Date.parse(from.slice(0, 10)) > MONTH_MS
    if (rows > 0 && (until === '' || isLong)) return []
    if (until !== '') sums.set(month, (sums.get(month) ?? 0) + rows)
  }
  const names = [...sums.keys()].sort()
  if (names.length === 0) return []
  const all: Month[] = []
  for (let month = names[0]!; month <= names.at(-1)!; month = after(month))
    all.push({ month, rows: sums.get(month) ?? 0, isWhole: !unfinished.has(month) && !unfinished.has('all') })
  return all.slice(-MAX_COLUMNS)
}

function after(month: string): string {
  const [year, index] = [Number(month.slice(0, 4)), Number(month.slice(5))]
  return index === 12
    ? `${String(year + 1).padStart(4, '0')}-01`
    : `${month.slice(0, 5)}${String(index + 1).padStart(2, '0')}`
}

/** A column for each month. */
export function monthChart(months: readonly Month[]): Html {
  const largest = months.reduce((most, each) => (each.rows > most.rows ? each : most), months[0]!)
  const years = new Map<string, number>()
  for (const { month } of months) years.set(month.slice(0, 4), (years.get(month.slice(0, 4)) ?? 0) + 1)
  const isFew = months.length <= FEW
  const share = (rows: number): string => ((100 * rows) / Math.max(1, largest.rows)).toFixed(1)
  return html`<figure class="chart" style="--n:${months.length}" aria-label="Rows by month"><ol class="months">${months.map(
    ({ month, rows, isWhole }) =>
      html`<li${isWhole ? '' : html` class="part"`} style="--s:${share(rows)}" title="${month}: ${countText(rows)}"><span class="sr">${month}: ${countText(rows)}${isWhole ? '' : ', not complete'}</span>${isFew ? html`<b aria-hidden="true">${short(rows)}</b>` : ''}</li>`,
  )}</ol>
${isFew ? html`<div class="axis" aria-hidden="true">${months.map(({ month }) => html`<span style="flex:1">${MONTHS[Number(month.slice(5)) - 1]!}</span>`)}</div>` : ''}<div class="axis" aria-hidden="true">${[...years].map(([year, count]) => html`<span style="flex:${count}">${year}</span>`)}</div>
<figcaption>Most: ${countText(largest.rows)} in ${largest.month}.${months.some(({ isWhole }) => !isWhole) ? ' Hatched: not everything of the month is exported.' : ''}</figcaption></figure>`
}
