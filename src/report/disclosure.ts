import type { Between, Groups, Share, Shown } from './data.ts'

/** What is said of fewer rows is said of somebody. See docs/threat-model.md. */
export const LEAST_ROWS = 5

/** A count of rows, unless it is one of few. */
export function shown(rows: number): Shown {
  return rows > 0 && rows < LEAST_ROWS ? null : rows
}

/**
 * The largest groups, in the order given; all others are one. That one is never small either, or what is told of the
 * rest would tell it: then the smallest groups that are left go into it.
 * @param others rows that are in none of the groups
 */
export function largestGroups(
  groups: readonly (readonly [name: string, rows: number])[],
  most: number,
  others = 0,
): Groups {
  const bySize = groups.toSorted(([nameA, a], [nameB, b]) => b - a || (nameA < nameB ? -1 : 1))
  const kept = new Map(bySize.slice(0, most).filter(([, rows]) => rows >= LEAST_ROWS))
  let folded = others
  for (const [name, rows] of groups) if (!kept.has(name)) folded += rows
  for (const [name, rows] of [...kept].reverse()) {
    if (folded === 0 || folded >= LEAST_ROWS) break
    kept.delete(name)
    folded += rows
  }
  const left = groups.filter(([name]) => kept.has(name)).map(([name, rows]) => ({ name, rows }))
  return { groups: left, others: shown(folded) }
}

/**
 * Counts that come to a total which is told as well, each where it stands: null for those of few, and for as many others,
 * the smallest first, as it takes that each of the few may be {@link LEAST_ROWS} as well for all that the total tells.
 * @param unlisted what is in the total besides, and is not listed
 * @returns total null: it would tell them all the same, as there is nothing left to hide
 */
export function toldCounts(
  counts: readonly number[],
  unlisted = 0,
): { readonly counts: readonly Shown[]; readonly total: Shown } {
  const hidden = new Set(counts.flatMap((count, i) => (shown(count) === null ? [i] : [])))
  // Each that is hidden is known to be 1 at least; what is not listed may be nothing.
  let room = unlisted
  for (const i of hidden) room += counts[i]! - 1
  const needed = shown(unlisted) === null ? LEAST_ROWS : hidden.size > 0 ? LEAST_ROWS - 1 : 0
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
 * What may be told of a total whose parts are told as classes: itself, unless by it one of the smallest class could not be
 * {@link LEAST_ROWS}; then what it is at most, rounded up.
 */
export function toldTotal(
  rows: number,
  classes: readonly number[],
): { readonly rows: Shown; readonly atMost: number | null } {
  const least = classes.reduce((sum, index) => sum + leastOf(index), 0)
  const most = shown(rows) === null ? LEAST_ROWS - 1 : rows
  if (!classes.includes(SMALLEST) || most - least >= LEAST_ROWS - 1)
    return { rows: shown(rows), atMost: null }
  let step = 10
  while (Math.ceil(rows / step) * step - least < LEAST_ROWS - 1) step *= 10
  return { rows: null, atMost: Math.ceil(rows / step) * step }
}

const SMALLEST = 1

/** The fewest rows of a class. */
function leastOf(index: number): number {
  return index === 0 ? 0 : 10 ** (index - 1)
}

/** How much of some rows has something, in whole percent. */
export function shareOf(part: number, rows: number): Share {
  if (part === 0) return 'none'
  if (part >= rows) return 'all'
  if (part < LEAST_ROWS) return 'few'
  if (rows - part < LEAST_ROWS) return 'nearly all'
  return Math.min(99, Math.max(1, Math.round((100 * part) / rows)))
}

/** How many rows a cell of the heat map, or a shard, has: 0, then by powers of ten. */
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

/** Rows of a class, from its least to its most. */
function classRange(index: number): Between {
  return {
    least: leastOf(index),
    most: index === 0 ? 0 : index === CLASSES.length - 1 ? null : 10 ** index - 1,
  }
}

/** Partitions that are told together, by what else tells of each of them: the class of its rows. */
export type Sum = {
  readonly rows: number
  /** What the classes of its parts come to. */
  readonly least: number
  readonly most: number
  /** Whether one of the parts is one of few. */
  readonly hasFew: boolean
}

/** Aggregates of nothing. */
export const NO_ROWS: Sum = { rows: 0, least: 0, most: 0, hasFew: false }

/** A sum and one more part of it. */
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
 * What may be told of the cells of a table of which others may know what each column comes to, to the row: two digits where
 * that leaves it open for every part that is one of few whether it has {@link LEAST_ROWS}, else what the classes of its
 * parts tell in any case. Columns in which even that tells too much are named: what tells what these come to must tell it
 * of all of them together.
 * @returns safe: whether it is enough that no more is told than what all those columns come to
 */
export function toldCells(columns: readonly (readonly Sum[])[]): {
  readonly cells: readonly (readonly Between[])[]
  readonly together: ReadonlySet<number>
  readonly safe: boolean
} {
  const told = columns.map((cells) => toldColumn(cells))
  const together = new Set(told.flatMap((cells, i) => (cells === null ? [i] : [])))
  const totals = columns.map((cells) => cells.reduce((sum, { rows }) => sum + rows, 0))
  const bySize = totals.map((_, i) => i).sort((a, b) => totals[a]! - totals[b]!)
  const isSafe = (): boolean => {
    const all = [...together].flatMap((i) => columns[i]!)
    return leavesOpen(all, all.map(asParts))
  }
  let safe = isSafe()
  for (const i of bySize) {
    if (safe) break
    together.add(i)
    safe = isSafe()
  }
  const cells = columns.map((sums, i) => (together.has(i) ? sums.map(asParts) : told[i]!))
  return { cells: cells.map((column) => column.map(finite)), together, safe }
}

/** What the classes of its parts tell of a sum. */
export function asParts({ least, most }: Sum): Between {
  return { least, most }
}

/** JSON has no infinity. */
function finite({ least, most }: Between): Between {
  return { least, most: most === Number.POSITIVE_INFINITY ? null : most }
}

/** The first two digits of a number, where its parts tell no more. */
function twoDigits({ rows, least, most }: Sum): Between {
  if (rows < 10) return { least, most }
  const step = 10 ** Math.max(0, String(rows).length - 2)
  const from = Math.floor(rows / step) * step
  return { least: from, most: from + step - 1 }
}

/** null: whatever is told, what the column comes to would tell the rest. */
function toldColumn(cells: readonly Sum[]): readonly Between[] | null {
  const told = cells.map(twoDigits)
  // The smallest lose least by it.
  const bySize = cells.map((_, i) => i).sort((a, b) => cells[a]!.rows - cells[b]!.rows)
  for (const i of [null, ...bySize]) {
    if (i !== null) told[i] = asParts(cells[i]!)
    if (leavesOpen(cells, told)) return told
  }
  return null
}

/**
 * Whether everybody who knows what cells come to, and what is told of each of them and of its parts, has to reckon with
 * {@link LEAST_ROWS} numbers at least for every part that is one of few, and with {@link LEAST_ROWS} rows.
 */
function leavesOpen(cells: readonly Sum[], told: readonly Between[]): boolean {
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
    return partHigh >= LEAST_ROWS && partHigh - partLow >= LEAST_ROWS - 1
  })
}
