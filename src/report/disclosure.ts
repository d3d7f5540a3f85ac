import type { Groups, Share, Shown } from './data.ts'

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

/** How much of some rows has something, in whole percent. */
export function shareOf(part: number, rows: number): Share {
  if (part === 0) return 'none'
  if (part >= rows) return 'all'
  if (part < LEAST_ROWS) return 'few'
  if (rows - part < LEAST_ROWS) return 'nearly all'
  return Math.min(99, Math.max(1, Math.round((100 * part) / rows)))
}

/** How many rows a place of the heat map, or a shard, has: 0, then by powers of ten. */
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
