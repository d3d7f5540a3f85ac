import type { DecodePlan, Micros, PageContext, PageSpan } from '../core/index.ts'
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
  private readonly direction: 1 | -1
  private readonly from: Micros
  private readonly until: Micros
  private readonly since: Micros | null
  private readonly sinceIds: ReadonlySet<number>
  private min = Number.POSITIVE_INFINITY
  private max = Number.NEGATIVE_INFINITY
  private first: Micros | null = null
  private last: Micros = 0
  /** Ids at `last`: an array that never grows, because almost every item begins a new list. */
  private readonly lastIds = new Float64Array(MAX_LAST_IDS)
  private lastCount = 0
  private isSorted = true

  /** @param ids knows the rows of the pages before; for one page at a time */
  constructor(
    order: DecodePlan['order'],
    context: PageContext,
    private readonly ids: ChainIds,
  ) {
    this.direction = order === 'asc' ? 1 : -1
    this.from = context.partition.window?.from ?? Number.NEGATIVE_INFINITY
    this.until = context.partition.window?.until ?? Number.POSITIVE_INFINITY
    this.since = context.since?.at ?? null
    this.sinceIds = new Set(context.since?.ids)
  }

  /** Whether this is the very end of the window, which is not part of it. */
  isEnd(at: Micros): boolean {
    return at === this.until
  }

  /** To be asked once for every valid item, in the order of the answer. */
  admit(id: number, at: Micros): Verdict {
    const verdict = this.verdict(id, at)
    // A row that comes again says nothing about the order of the others.
    if (verdict !== 'repeated') this.follow(id, at)
    return verdict
  }

  private verdict(id: number, at: Micros): Verdict {
    // The service's filter is inclusive at both ends; a window is not.
    if (this.isEnd(at)) return 'drop'
    if (at < this.from || at > this.until) return 'outside'
    if (this.since !== null) {
      if (at === this.since && this.sinceIds.has(id)) return 'drop'
      if ((at - this.since) * this.direction < 0) return 'outside'
    }
    if (!this.ids.isNewRow(id)) return 'repeated'
    if (at < this.min) this.min = at
    if (at > this.max) this.max = at
    return 'keep'
  }

  /** Of the rows kept; null when there are none. */
  get importedAt(): { readonly min: Micros; readonly max: Micros } | null {
    return this.min > this.max ? null : { min: this.min, max: this.max }
  }

  /** Of all items but repeated ones; null when there are none, or they are not in order. */
  get span(): PageSpan | null {
    if (this.first === null || !this.isSorted) return null
    const lastIds = this.lastCount > MAX_LAST_IDS ? null : [...this.lastIds.subarray(0, this.lastCount)]
    return { first: this.first, last: this.last, lastIds }
  }

  private follow(id: number, at: Micros): void {
    if (this.first === null) {
      this.first = at
    } else if (at === this.last) {
      // Beyond the end of a typed array nothing is written.
      this.lastIds[this.lastCount++] = id
      return
    } else if ((at - this.last) * this.direction < 0) {
      this.isSorted = false
    }
    this.last = at
    this.lastIds[0] = id
    this.lastCount = 1
  }
}
