import type { Between, Groups, Share, Shown } from './data.ts'

/** A count of fewer rows may concern an identifiable person. See docs/threat-model.md. */
export const MIN_ROWS = 5

/** A count of rows; null if it is small. */
export function shown(rows: number): Shown {
  return rows > 0 && rows < MIN_ROWS ? null : rows
}

/**
 * The largest groups, in the given order; all others are summed up. If that sum would be small, the smallest remaining
 * groups are added to it, as the other numbers would reveal it.
 * @param others rows in none of the groups
 */
export function largestGroups(
  groups: readonly (readonly [name: string, rows: number])[],
  most: number,
  others = 0,
): Groups {
  const bySize = groups.toSorted(([nameA, a], [nameB, b]) => b - a || (nameA < nameB ? -1 : 1))
  const kept = new Map(bySize.slice(0, most).filter(([, rows]) => rows >= MIN_ROWS))
  let folded = others
  for (const [name, rows] of groups) if (!kept.has(name)) folded += rows
  for (const [name, rows] of [...kept].reverse()) {
    if (folded === 0 || folded >= MIN_ROWS) break
    kept.delete(name)
    folded += rows
  }
  const left = groups.filter(([name]) => kept.has(name)).map(([name, rows]) => ({ name, rows }))
  return { groups: left, others: shown(folded) }
}

/**
 * Shows counts beside their total. Small counts are null. So are as many of the next smallest counts as are needed for
 * each small count to be possibly {@link MIN_ROWS} or more, given the total.
 * @param unlisted the part of the total that is not listed
 * @returns total null: it would reveal small counts, even with all counts hidden
 */
export function shownCounts(
  counts: readonly number[],
  unlisted = 0,
): { readonly counts: readonly Shown[]; readonly total: Shown } {
  const hidden = new Set(counts.flatMap((count, i) => (shown(count) === null ? [i] : [])))
  // Each hidden count is known to be 1 at least; the unlisted part may be 0.
  let room = unlisted
  for (const i of hidden) room += counts[i]! - 1
  const needed = shown(unlisted) === null ? MIN_ROWS : hidden.size > 0 ? MIN_ROWS - 1 : 0
  const bySize = counts.map((count, i) => [count, i] as const).sort(([a], [b]) => a - b)
  for (const [count, i] of bySize) {
    if (room >= needed) break
    if (count === 0 || hidden.has(i)) continue
    hidden.add(i)
    room += count - 1
  }
  const total = counts.reduce((sum, count) => sum + count, unlisted)
  return {
    counts: counts.map((count, i) => (hidden.has(i) ? null : count)),
    total: room >= needed ? shown(total) : null,
  }
}

/**
 * Shows counts of consecutive runs to readers who get a page after each of them, and compare the totals. A run with a
 * small count hides the next ones too, until their sum leaves the small one open; until then the total stays hidden.
 * So what a page shows of a run, a later one never narrows down.
 */
export function shownSeries(counts: readonly number[]): {
  readonly counts: readonly Shown[]
  /** Whether the total may be shown after the last run. */
  readonly isOpen: boolean
} {
  const told: Shown[] = []
  let segment: number[] = []
  for (const count of counts) {
    segment.push(count)
    const { counts: shown, total } = shownCounts(segment)
    if (total === null && segment.some((each) => each > 0)) continue
    told.push(...shown)
    segment = []
  }
  told.push(...segment.map((count) => (count === 0 ? 0 : null)))
  return { counts: told, isOpen: segment.length === 0 }
}

/**
 * Shows a total whose parts are shown as classes: exactly, unless it implies that a part of the smallest class has
 * fewer than {@link MIN_ROWS} rows; then as an upper bound, rounded up.
 */
export function shownTotal(
  rows: number,
  classes: readonly number[],
): { readonly rows: Shown; readonly atMost: number | null } {
  const least = classes.reduce((sum, index) => sum + leastOf(index), 0)
  const most = shown(rows) === null ? MIN_ROWS - 1 : rows
  if (!classes.includes(SMALLEST) || most - least >= MIN_ROWS - 1) return { rows: shown(rows), atMost: null }
  let step = 10
  while (Math.ceil(rows / step) * step - least < MIN_ROWS - 1) step *= 10
  return { rows: null, atMost: Math.ceil(rows / step) * step }
}

const SMALLEST = 1

/** The fewest rows of a class. */
function leastOf(index: number): number {
  return index === 0 ? 0 : 10 ** (index - 1)
}

/** The share of rows with a property, in whole percent. */
export function shareOf(part: number, rows: number): Share {
  if (part === 0) return 'none'
  if (part >= rows) return 'all'
  if (part < MIN_ROWS) return 'few'
  if (rows - part < MIN_ROWS) return 'nearly all'
  return Math.min(99, Math.max(1, Math.round((100 * part) / rows)))
}

/** Classes for the rows of a cell of the heat map, or of a shard: 0, then powers of ten. */
export const CLASSES = [
  '0',
  '1–9',
  '10–99',
  '100–999',
  '1k–9k',
  '10k–99k',
  '100k–999k',
  '1M or more',
] as const

/** @returns index into {@link CLASSES} */
export function classOf(rows: number): number {
  return rows === 0 ? 0 : Math.min(CLASSES.length - 1, String(rows).length)
}

/** The range of rows of a class. */
function classRange(index: number): Between {
  return {
    least: leastOf(index),
    most: index === 0 ? 0 : index === CLASSES.length - 1 ? null : 10 ** index - 1,
  }
}

/** A sum of partitions, each of which is also shown by the class of its rows. */
export type Sum = {
  readonly rows: number
  /** The sums of the bounds of its parts' classes. */
  readonly least: number
  readonly most: number
  /** Whether one of the parts is small. */
  readonly hasFew: boolean
}

/** Aggregates of nothing. */
export const NO_ROWS: Sum = { rows: 0, least: 0, most: 0, hasFew: false }

/** Adds a part to a sum. */
export function withPart(sum: Sum, rows: number): Sum {
  const { least, most } = classRange(classOf(rows))
  return {
    rows: sum.rows + rows,
    least: sum.least + least,
    most: sum.most + (most ?? Number.POSITIVE_INFINITY),
    hasFew: sum.hasFew || shown(rows) === null,
  }
}

/**
 * Shows the cells of a table whose column totals may be known exactly. A cell is exact if every small part of the column
 * may still have {@link MIN_ROWS} rows; else as many cells as needed have their first two digits, or the bounds of
 * their parts' classes, which are shown anyway. Columns in
 * which even these reveal too much are returned in `together`: their totals may only be shown as one sum.
 * @returns safe: whether that sum may be shown
 */
export function shownCells(columns: readonly (readonly Sum[])[]): {
  readonly cells: readonly (readonly Between[])[]
  readonly together: ReadonlySet<number>
  readonly safe: boolean
} {
  const told = columns.map((cells) => shownColumn(cells))
  const together = new Set(told.flatMap((cells, i) => (cells === null ? [i] : [])))
  const totals = columns.map((cells) => cells.reduce((sum, { rows }) => sum + rows, 0))
  const bySize = totals.map((_, i) => i).sort((a, b) => totals[a]! - totals[b]!)
  const isSafe = (): boolean => {
    const all = [...together].flatMap((i) => columns[i]!)
    return keepsSmallCountsAmbiguous(all, all.map(asParts))
  }
  let safe = isSafe()
  for (const i of bySize) {
    if (safe) break
    together.add(i)
    safe = isSafe()
  }
  const cells = columns.map((sums, i) => (together.has(i) ? sums.map(asParts) : told[i]!))
  return { cells, together, safe }
}

/** The bounds of a sum by the classes of its parts. */
export function asParts({ least, most }: Sum): Between {
  return { least, most: most === Number.POSITIVE_INFINITY ? null : most }
}

/** The first two digits of a number, unless its parts show more. */
function twoDigits({ rows, least, most }: Sum): Between {
  if (rows < 10) return { least, most }
  const step = 10 ** Math.max(0, String(rows).length - 2)
  const from = Math.floor(rows / step) * step
  return { least: from, most: from + step - 1 }
}

/** null: the total of the column would reveal small parts, whatever is shown. */
function shownColumn(cells: readonly Sum[]): readonly Between[] | null {
  const told: Between[] = cells.map(({ rows }) => ({ least: rows, most: rows }))
  if (keepsSmallCountsAmbiguous(cells, told)) return told
  // The smallest cells lose the least precision.
  const bySize = cells.map((_, i) => i).sort((a, b) => cells[a]!.rows - cells[b]!.rows)
  for (const shorter of [twoDigits, asParts]) {
    for (const i of bySize) {
      told[i] = cells[i]!.hasFew ? asParts(cells[i]!) : shorter(cells[i]!)
      if (keepsSmallCountsAmbiguous(cells, told)) return told
    }
  }
  return null
}

/**
 * Whether the total of the cells, with what is shown of cells and parts, leaves at least {@link MIN_ROWS} possible
 * values for every small part, one of them at least {@link MIN_ROWS}.
 */
function keepsSmallCountsAmbiguous(cells: readonly Sum[], told: readonly Between[]): boolean {
  const ranges = cells.map(({ least, most }, i) => ({
    low: Math.max(least, told[i]!.least),
    high: Math.min(most, told[i]!.most ?? Number.POSITIVE_INFINITY),
  }))
  const total = cells.reduce((sum, { rows }) => sum + rows, 0)
  const lows = ranges.reduce((sum, { low }) => sum + low, 0)
  const highs = ranges.reduce((sum, { high }) => sum + high, 0)
  return cells.every(({ least, most, hasFew }, i) => {
    if (!hasFew) return true
    const { low, high } = ranges[i]!
    const cellLow = Math.max(low, Number.isFinite(highs) ? total - (highs - high) : low)
    const cellHigh = Math.min(high, total - (lows - low))
    const few = classRange(SMALLEST) as { readonly least: number; readonly most: number }
    const partHigh = Math.min(few.most, cellHigh - (least - few.least))
    const partLow = Math.max(few.least, cellLow - (most - few.most))
    return partHigh >= MIN_ROWS && partHigh - partLow >= MIN_ROWS - 1
  })
}
