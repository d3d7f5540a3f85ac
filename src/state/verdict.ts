import { formatInstant, type Micros, parseInstant, parseWindow } from '../core/index.ts'
import type { PartitionCounts, PartitionState } from './checkpoint/folded-partition.ts'
import { splitPath } from './checkpoint/packed-collections.ts'
import type { Scope } from './journal-entry.ts'

/** A half-open range of time, as `2024-01-01T00:00:00Z`. */
export type TimeRange = { readonly from: string; readonly until: string }

/** What a data set is, for what the given pipeline file plans, as of the last run. Every window onto it prints this. */
export type Verdict = {
  /** `stopped`: the last start ended early, or could not begin, and none followed. */
  readonly state: 'complete' | 'incomplete' | 'stopped' | 'damaged'
  /** In one line: `complete: all 48 partitions`. */
  readonly headline: string
  /** Sentences without their full stops; empty: there is nothing to say. */
  readonly why: string
  readonly next: string
  /** From where to where every query is exported without a hole; null: nowhere, or there are no windows. */
  readonly covers: TimeRange | null
  /** Windows that have begun, and are exported once `lag` is over after their end. */
  readonly waiting: readonly TimeRange[]
  /** Of the plan; null: nothing is exported, or its names need a key. */
  readonly partitions: PartitionCounts | null
  /** Whether all that is planned is exported, whatever became of the last start. */
  readonly complete: boolean
  /** What is not among the rows by intent, and what is there beside the plan, a clause each. */
  readonly leftOut: readonly string[]
  /** What is exported and not planned: queries and windows that the file no longer has. */
  readonly outside: { readonly partitions: number; readonly rows: number }
}

/** As scripts read it. */
export function verdictJson({ state, headline, why, next }: Verdict) {
  return { state, what: why === '' ? headline : `${headline}. ${why}`, next }
}

type Span = { from: Micros; until: Micros; isOpen: boolean }

/**
 * Of the queries and windows of a scope. What was pruned at its beginning is not covered.
 * @param partitions of each query in the order of their windows; others are passed over
 */
export function coverage(
  { queries, windows }: Pick<Scope, 'queries' | 'windows'>,
  partitions: Iterable<{ readonly key: string; readonly state: PartitionState }>,
): TimeRange | null {
  if (windows === null || queries.length === 0) return null
  const begin = parseInstant(windows.from) ?? 0
  const spans = new Map<string, Span>(
    queries.map((query) => [query, { from: begin, until: begin, isOpen: true }]),
  )
  for (const { key, state } of partitions) {
    const [query, name] = splitPath(key)
    const span = spans.get(query)
    if (span?.isOpen !== true) continue
    const window = parseWindow(name)
    if (window === null) return null
    if (window.until <= span.until) continue
    span.isOpen = window.from <= span.until && (state === 'done' || state === 'pruned')
    if (!span.isOpen) continue
    if (state === 'pruned' && span.from === span.until) span.from = window.until
    span.until = window.until
  }
  const all = [...spans.values()]
  const from = Math.max(...all.map((span) => span.from))
  const end = windows.until === 'now' ? null : parseInstant(windows.until)
  const until = Math.min(end ?? Number.POSITIVE_INFINITY, ...all.map((span) => span.until))
  return from < until ? rangeOf(from, until) : null
}

export function rangeOf(from: Micros, until: Micros): TimeRange {
  return { from: formatInstant(from), until: formatInstant(until) }
}
