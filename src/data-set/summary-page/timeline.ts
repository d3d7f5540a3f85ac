import type { Window } from '../../core/index.ts'
import { largestGroups, type SummaryPageData, type TimeUnit } from '../../report/index.ts'

// Two months of days.
const MAX_BARS = 62

const DAY_MS = 86_400_000

/**
 * Rows by day, month or year, in the finest unit that fits; if there are too many years, the last ones.
 * @param together windows whose rows may only be shown as one; null: all of them
 * @param missing windows that are not exported yet; null: some of all
 */
export function timeline(
  {
    counts,
    others,
  }: {
    readonly counts: readonly (readonly [day: number, rows: number])[]
    readonly others: number
  },
  together: readonly Window[] | null,
  missing: readonly Window[] | null,
): SummaryPageData['rows']['timeline'] {
  for (const unit of UNITS) {
    const bars = new Map<string, number>()
    const hidden = new Set<string>()
    for (const [day, rows] of counts) {
      const name = new Date(day * DAY_MS).toISOString().slice(0, LENGTHS[unit])
      bars.set(name, (bars.get(name) ?? 0) + rows)
      if (rows > 0 && isWithin(day, together)) hidden.add(name)
    }
    const inOrder = [...bars].sort(([a], [b]) => (a < b ? -1 : 1))
    // The whole span counts: days of a year ago beside those of today mean little.
    if (unit !== 'year' && spanOf(inOrder, unit) > MAX_BARS) continue
    const shown = inOrder.slice(-MAX_BARS)
    const rowsOf = (bars: Bars): number => bars.reduce((sum, [, rows]) => sum + rows, 0)
    const open = shown.filter(([name]) => !hidden.has(name))
    const rest = rowsOf(inOrder) - rowsOf(open)
    const grouped = largestGroups(open, open.length, others + rest)
    const axis = axisOf(grouped.groups, unit)
    const incomplete = axis.filter((name) => isAmong(daysOf(name, unit), missing))
    return { unit, ...grouped, axis, incomplete }
  }
  throw new Error('a year is always coarse enough')
}

const UNITS: readonly TimeUnit[] = ['day', 'month', 'year']
const LENGTHS: Record<TimeUnit, number> = { day: 10, month: 7, year: 4 }

/** Days counted from 1970, `until` excluded. */
type Days = { readonly from: number; readonly until: number }

function daysOf(name: string, unit: TimeUnit): Days {
  const [from, until] = [indexOf(name, unit), indexOf(name, unit) + 1].map(
    (index) => Date.parse(nameOf(index, unit)) / DAY_MS,
  )
  return { from: from!, until: until! }
}

function isWithin(day: number, windows: readonly Window[] | null): boolean {
  return isAmong({ from: day, until: day + 1 }, windows)
}

/** Whether any of the windows reaches into these days. */
function isAmong({ from, until }: Days, windows: readonly Window[] | null): boolean {
  const day = 1000 * DAY_MS
  return windows?.some((window) => window.from < until * day && window.until > from * day) ?? true
}

/** Whether each of the windows lies within one day, month or year. */
export function liesWithin(windows: readonly Window[], unit: TimeUnit): boolean {
  const nameAt = (at: number): string => new Date(Math.floor(at / 1000)).toISOString().slice(0, LENGTHS[unit])
  return windows.every(({ from, until }) => nameAt(from) === nameAt(until - 1))
}

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

/** The axis includes times without rows. */
function axisOf(groups: readonly { readonly name: string }[], unit: TimeUnit): readonly string[] {
  const names = groups.map(({ name }) => name)
  const indexes = names.map((name) => indexOf(name, unit))
  const first = Math.min(...indexes)
  const count = indexes.length === 0 ? 0 : 1 + Math.max(...indexes) - first
  return count > MAX_BARS ? names : Array.from({ length: count }, (_, i) => nameOf(first + i, unit))
}
