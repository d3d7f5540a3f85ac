import type { Credentials } from '../data/credentials.ts'
import type { Selection } from './selection.ts'

/** Indexes of a selection, `[low, high)`, oldest first. */
export type IndexRange = { readonly low: number; readonly high: number }

export type Page = {
  /** Positions on the timeline, in the requested order. */
  readonly positions: number[]
  /** The index of the first match that did not fit, or null when there is none. */
  readonly next: number | null
}

/**
 * Collects up to `size` matches, going up or down from an index. It looks for one match more than fits:
 * a cursor is handed out only when something follows.
 */
export function collectPage(
  selection: Selection,
  range: IndexRange,
  start: number,
  order: 'asc' | 'desc',
  size: number,
): Page {
  const positions: number[] = []
  const step = order === 'asc' ? 1 : -1
  for (let index = start; index >= range.low && index < range.high; index += step) {
    const position = selection.positionAt(index)
    if (selection.matches !== null && !selection.matches(position)) continue
    if (positions.length === size) return { positions, next: index }
    positions.push(position)
  }
  return { positions, next: null }
}

/**
 * The matches imported between two instants, both inclusive as the service's filter is.
 * @param bounds microseconds since 1970; null leaves an end open
 */
export function indexRange(
  data: Credentials,
  selection: Selection,
  bounds: { readonly gte: number | null; readonly lte: number | null },
): IndexRange {
  const { timeline } = data
  const first = bounds.gte === null ? 0 : timeline.firstAtOrAfter(bounds.gte)
  const last = bounds.lte === null ? timeline.total : timeline.firstAtOrAfter(bounds.lte + 1)
  return { low: selection.matchesBefore(first), high: selection.matchesBefore(Math.max(first, last)) }
}
