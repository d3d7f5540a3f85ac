import { largestGroups, type ReportData, type TimeUnit } from '../../report/index.ts'

// Bars that can be told apart.
const MAX_BARS = 62

const DAY_MS = 86_400_000

/** Rows by day, month or year, whichever is the finest that fits; of too many years the last ones. */
export function timeline({
  counts,
  others,
}: {
  readonly counts: readonly (readonly [day: number, rows: number])[]
  readonly others: number
}): ReportData['came']['timeline'] {
  for (const unit of UNITS) {
    const bars = new Map<string, number>()
    for (const [day, rows] of counts) {
      const name = new Date(day * DAY_MS).toISOString().slice(0, LENGTHS[unit])
      bars.set(name, (bars.get(name) ?? 0) + rows)
    }
    const inOrder = [...bars].sort(([a], [b]) => (a < b ? -1 : 1))
    // Days of a year ago and of today say little side by side: what lies between counts, too.
    if (unit !== 'year' && spanOf(inOrder, unit) > MAX_BARS) continue
    const shown = inOrder.slice(-MAX_BARS)
    const before = inOrder.slice(0, -MAX_BARS).reduce((sum, [, rows]) => sum + rows, 0)
    const told = largestGroups(shown, shown.length, others + before)
    return { unit, ...told, axis: axisOf(told.groups, unit) }
  }
  throw new Error('a year is always coarse enough')
}

const UNITS: readonly TimeUnit[] = ['day', 'month', 'year']
const LENGTHS: Record<TimeUnit, number> = { day: 10, month: 7, year: 4 }

type Bars = readonly (readonly [name: string, rows: number])[]

function spanOf(bars: Bars, unit: TimeUnit): number {
  const [first, last] = [bars[0], bars.at(-1)]
  return first === undefined || last === undefined ? 0 : 1 + indexOf(last[0], unit) - indexOf(first[0], unit)
}

function indexOf(name: string, unit: TimeUnit): number {
  const [year, month = 1] = name.split('-').map(Number)
  if (unit === 'day') return Date.parse(name) / DAY_MS
  return unit === 'month' ? year! * 12 + month : year!
}

function nameOf(index: number, unit: TimeUnit): string {
  if (unit === 'day') return new Date(index * DAY_MS).toISOString().slice(0, 10)
  if (unit === 'year') return String(index).padStart(4, '0')
  const year = String(Math.floor((index - 1) / 12)).padStart(4, '0')
  return `${year}-${String(((index - 1) % 12) + 1).padStart(2, '0')}`
}

/** Times without rows are times as well. */
function axisOf(groups: readonly { readonly name: string }[], unit: TimeUnit): readonly string[] {
  const names = groups.map(({ name }) => name)
  const places = names.map((name) => indexOf(name, unit))
  const first = Math.min(...places)
  const count = places.length === 0 ? 0 : 1 + Math.max(...places) - first
  return count > MAX_BARS ? names : Array.from({ length: count }, (_, i) => nameOf(first + i, unit))
}
