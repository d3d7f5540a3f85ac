import { counted, countText } from '../core/index.ts'
import { type Manifest, type ManifestPartition, splitPath } from '../state/index.ts'
import type { RowFacts } from './contents.ts'
import { MONTHS } from './heat-map.ts'
import { type Html, html } from './html.ts'
import { short } from './words.ts'

const MAX_COLUMNS = 120
/** Fewer columns have room for names and numbers. */
const FEW = 12
type Month = { readonly month: string; readonly rows: number; readonly isWhole: boolean }

/** Oldest first, without gaps. Empty: nobody has counted, and a window is longer than a month. */
export function monthsOf(manifest: Manifest, counted: RowFacts['months'] | null): readonly Month[] {
  const sums = new Map<string, number>(counted?.map(({ month, rows }) => [month, rows]))
  const unfinished = new Set<string>()
  for (const partition of manifest.partitions) {
    const { key, rows, state } = partition
    if (state === 'pruned') continue
    const [first, last] = monthsIn(splitPath(key)[1])
    if (state !== 'done') {
      const [from, until] = missingOf(partition, first, last, manifest)
      for (let month = from; month <= until && month !== ''; month = shifted(month, 1)) unfinished.add(month)
      if (first === ALL) unfinished.add(ALL)
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

/** The months of a window that is not done in which rows may be missing: those that its files have not passed. */
function missingOf(
  { key }: ManifestPartition,
  first: string,
  last: string,
  { shards, settings }: Manifest,
): readonly [from: string, until: string] {
  if (first === last) return first === ALL ? ['', ''] : [first, last]
  const spans = shards.flatMap(({ partitions, imported_at }) =>
    partitions.includes(key) && imported_at !== null ? imported_at : [],
  )
  const isWithin = (month: string): boolean => first <= month && month <= last
  const months = (edge: 'min' | 'max') => spans.map((span) => span[edge].slice(0, 7)).sort()
  const [newest, oldest] = [months('max').at(-1) ?? '', months('min')[0] ?? '']
  if (!isWithin(newest) || !isWithin(oldest)) return [first, last]
  return settings['extract.order'] === 'desc' ? [first, oldest] : [newest, last]
}

function shifted(month: string, by: 1 | -1): string {
  const months = 12 * Number(month.slice(0, 4)) + Number(month.slice(5)) - 1 + by
  return `${String(Math.floor(months / 12)).padStart(4, '0')}-${String((months % 12) + 1).padStart(2, '0')}`
}

export function monthChart(all: readonly Month[]): Html {
  const months = all.slice(-MAX_COLUMNS)
  const earlier = all.slice(0, -MAX_COLUMNS)
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
