import {
  type DecodePlan,
  type Int64,
  int64,
  int64FromJson,
  int64ToJson,
  type PageContext,
  type PageSpan,
  type Span,
} from '../core/index.ts'
import type { ChainIds } from './chain-ids.ts'

/**
 * - `keep`: the row belongs to this window
 * - `drop`: it belongs to the next window, or was exported before a refused cursor and had to be asked for again
 * - `repeated`: the chain has had it, and the service sends it again
 * - `outside`: nobody asked for it, so the service ignored the filter
 */
export type Verdict = 'keep' | 'drop' | 'repeated' | 'outside'

/** Positions with more ids than this are not worth remembering. */
const MAX_LAST_IDS = 1000

/** Follows `imported_at` through the items of one page: what belongs, what the page spans. */
export class PageRange {
  private readonly isAscending: boolean
  private readonly from: Int64
  private readonly until: Int64
  private readonly since: Int64 | null
  private readonly sinceIds: ReadonlySet<Int64>
  private min: Int64 = Number.POSITIVE_INFINITY
  private max: Int64 = Number.NEGATIVE_INFINITY
  private first: Int64 | null = null
  private last: Int64 = 0
  /** Ids at `last`, the first of them; one array for all, because almost every item begins a new list. */
  private readonly lastIds: Int64[] = [0]
  private lastCount = 0
  private isSorted = true

  /** @param ids knows the rows of the pages before; for one page at a time */
  constructor(
    order: DecodePlan['order'],
    context: PageContext,
    private readonly ids: ChainIds,
  ) {
    const { since, partition } = context
    this.isAscending = order === 'asc'
    this.from = int64(partition.window?.from ?? Number.NEGATIVE_INFINITY)
    this.until = int64(partition.window?.until ?? Number.POSITIVE_INFINITY)
    this.since = since === null ? null : int64FromJson(since.at)
    this.sinceIds = new Set(since?.ids.map(int64FromJson))
  }

  /** Whether this is the very end of the window, which is not part of it. */
  isEnd(at: Int64): boolean {
    return at === this.until
  }

  /** To be asked once for every valid item, in the order of the answer. */
  admit(id: Int64, at: Int64): Verdict {
    const verdict = this.verdict(id, at)
    // A row that comes again says nothing about the order of the others.
    if (verdict !== 'repeated') this.follow(id, at)
    return verdict
  }

  private verdict(id: Int64, at: Int64): Verdict {
    // The service's filter is inclusive at both ends; a window is not.
    if (this.isEnd(at)) return 'drop'
    if (at < this.from || at > this.until) return 'outside'
    if (this.since !== null) {
      if (at === this.since && this.sinceIds.has(id)) return 'drop'
      if (this.isBefore(at, this.since)) return 'outside'
    }
    if (!this.ids.isNewRow(id)) return 'repeated'
    if (at < this.min) this.min = at
    if (at > this.max) this.max = at
    return 'keep'
  }

  /** Of the rows kept; null when there are none. */
  get importedAt(): Span | null {
    return this.min > this.max ? null : { min: int64ToJson(this.min), max: int64ToJson(this.max) }
  }

  /** Of all items but repeated ones; null when there are none, or they are not in order. */
  get span(): PageSpan | null {
    if (this.first === null || !this.isSorted) return null
    const lastIds =
      this.lastCount > MAX_LAST_IDS ? null : this.lastIds.slice(0, this.lastCount).map(int64ToJson)
    return { first: int64ToJson(this.first), last: int64ToJson(this.last), lastIds }
  }

  /** Whether an instant comes before another in the order of the chain. */
  private isBefore(at: Int64, other: Int64): boolean {
    return this.isAscending ? at < other : at > other
  }

  private follow(id: Int64, at: Int64): void {
    if (this.first === null) {
      this.first = at
    } else if (at === this.last) {
      if (this.lastCount < MAX_LAST_IDS) this.lastIds[this.lastCount] = id
      this.lastCount++
      return
    } else if (this.isBefore(at, this.last)) {
      this.isSorted = false
    }
    this.last = at
    this.lastIds[0] = id
    this.lastCount = 1
  }
}
