import {
  type Int64,
  type Int64Json,
  int64,
  int64FromJson,
  int64ToJson,
  type Order,
} from '../../../core/index.ts'
import { countOfIds, neededBefore, type PageIds, type PageSpan, type Position } from '../../../rows/index.ts'
import { countOfBlob, type FoldedChain } from '../../../state/index.ts'

/** Rows may come so late, after others by their time: what goes by the order of rows waits for them. */
const HOUR = 3_600_000_000
/** 8 MB. */
const MAX_KEPT_IDS = 1_000_000

/** The position of a chain after this page; null: it has no item with a time yet. */
export function positionAfter(before: Position | null, span: PageSpan | null, order: Order): Position | null {
  if (span === null) return before
  if (before === null) return { at: span.last, late: span.late }
  const behind = (instant: Int64Json): number => {
    const micros = Number(BigInt(before.at) - BigInt(instant))
    return order === 'asc' ? micros : -micros
  }
  const late = Math.max(before.late, span.late, behind(span.first))
  return { at: behind(span.last) < 0 ? span.last : before.at, late }
}

/** For each page whose ids a chain keeps, the last instant up to it: `LoggedIds.until`. */
export type Untils = readonly (bigint | null)[]

/**
 * What goes with the ids of a page, and how many pages before it keep theirs: the last, to know repeated rows, and all
 * since the instant of a restart.
 */
export function keptIds(
  folded: FoldedChain | undefined,
  untils: Untils,
  page: PageIds,
  position: Position | null,
  order: Order,
) {
  const refs = folded?.ids ?? []
  const from = instantOf(position, order)
  const needed = neededBefore(refs, countOfIds(page), countOfBlob)
  // What goes is at the front, nearly always nothing: a chain may keep the ids of 10,000 pages.
  let newer = refs.reduce((sum, ref) => sum + countOfBlob(ref), countOfIds(page))
  let dropped = 0
  for (; dropped < refs.length - needed; dropped++) {
    newer -= countOfBlob(refs[dropped]!)
    const last = untils[dropped] ?? null
    const isOld = from !== null && last !== null && isBefore(int64(last), from, order)
    if (!isOld && newer < MAX_KEPT_IDS) break
  }
  return { until: position === null ? null : BigInt(position.at), keep: refs.length - dropped }
}

/** An hour before the last row, or the beginning: all rows since are known. @returns null: there is no such instant */
export function restartInstant(
  { position, ids: refs, truncated, windows: { order, range } }: FoldedChain,
  untils: Untils,
): { readonly since: Int64Json | null } | null {
  const from = instantOf(position, order)
  if (from === null) return truncated ? null : { since: null }
  const kept = refs.reduce((sum, ref) => sum + countOfBlob(ref), 0)
  const [first = null] = untils
  // Rows at the first instant may be on a page whose ids are not kept.
  const isCut = truncated && kept >= MAX_KEPT_IDS && first !== null
  const known = isCut ? moved(int64(first), 1, order) : from
  const since = isBefore(known, from, order) ? from : known
  if (isBefore(int64FromJson(position!.at), since, order)) return null
  const beginning = range === null ? null : int64(order === 'asc' ? range.from : range.until)
  return { since: beginning === null || isBefore(beginning, since, order) ? int64ToJson(since) : null }
}

/** The instant up to which all rows have come once the row of an instant has: an hour before it. */
export function completeUntil(at: Int64, order: Order): Int64 {
  return moved(at, -HOUR, order)
}

/** null: the beginning of the chain. */
function instantOf(position: Position | null, order: Order): Int64 | null {
  if (position === null || position.late > HOUR) return null
  const at = completeUntil(int64FromJson(position.at), order)
  // Times of the service may be finer than a microsecond, by which they are compared.
  return order === 'asc' ? at : moved(at, -1, order)
}

/** An instant so many µs later in the order of a chain. */
function moved(at: Int64, micros: number, order: Order): Int64 {
  return int64(BigInt(at) + BigInt(order === 'asc' ? micros : -micros))
}

function isBefore(a: Int64, b: Int64, order: Order): boolean {
  return order === 'asc' ? a < b : a > b
}
