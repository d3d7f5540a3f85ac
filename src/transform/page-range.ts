import { ExportError, type Int64, int64, int64FromJson, int64ToJson, type Window } from '../core/index.ts'
import type { DecodeSettings, PageContext, PageSpan } from '../rows/index.ts'
import type { ChainIds } from './chain-ids.ts'
import { pageLocation } from './response.ts'

type Bounds = { readonly from: Int64; readonly until: Int64 }

function boundsOf(window: Window | null): Bounds {
  return {
    from: int64(window?.from ?? Number.NEGATIVE_INFINITY),
    until: int64(window?.until ?? Number.POSITIVE_INFINITY),
  }
}

/**
 * - `keep`: the row belongs to this chain
 * - `drop`: the row belongs to another chain, or was exported before a rejected cursor and is requested again
 * - `repeated`: the chain already has the row, and the service sends it again
 * - `outside`: the row was not requested, so the service ignored the filter
 */
export type Verdict = 'keep' | 'drop' | 'repeated' | 'outside'

/** A resume position holds at most this number of ids. */
const MAX_LAST_IDS = 1000

/** Checks `imported_at` of the items of one page: which items belong to the chain, and the span of the page. */
export class PageRange {
  readonly #isAscending: boolean
  readonly #requested: Bounds
  readonly #own: Bounds
  readonly #since: Int64 | null
  readonly #sinceIds: ReadonlySet<Int64>
  #first: Int64 | null = null
  #last: Int64 = 0
  /** The first ids with `imported_at` = `last`. The array is reused, because almost every item begins a new list. */
  readonly #lastIds: Int64[] = [0]
  #lastCount = 0
  #isSorted = true
  readonly #ids: ChainIds

  /** @param ids has the rows of the pages before; serves one page at a time */
  constructor(order: DecodeSettings['order'], context: PageContext, ids: ChainIds) {
    this.#ids = ids
    const { since } = context
    this.#isAscending = order === 'asc'
    this.#requested = boundsOf(context.requested)
    this.#own = boundsOf(context.own)
    this.#since = since === null ? null : int64FromJson(since.at)
    this.#sinceIds = new Set(since?.ids.map(int64FromJson))
  }

  /** Whether it was requested but belongs to another chain, by the end of the windows or because that took some over. */
  isLeftToOthers(at: Int64): boolean {
    return !this.#wasNotRequested(at) && (at < this.#own.from || at >= this.#own.until)
  }

  #wasNotRequested(at: Int64): boolean {
    // The service's filter is inclusive at both ends.
    return at < this.#requested.from || at > this.#requested.until
  }

  /** Call it once for every valid item, in the order of the response. */
  admit(id: Int64, at: Int64): Verdict {
    const verdict = this.#verdict(id, at)
    // A repeated row does not affect the order of the others.
    if (verdict !== 'repeated') this.#follow(id, at)
    return verdict
  }

  #verdict(id: Int64, at: Int64): Verdict {
    if (this.#wasNotRequested(at)) return 'outside'
    if (this.#since !== null) {
      if (at === this.#since && this.#sinceIds.has(id)) return 'drop'
      if (this.#isBefore(at, this.#since)) return 'outside'
    }
    if (at < this.#own.from || at >= this.#own.until) return 'drop'
    return this.#ids.isNewRow(id) ? 'keep' : 'repeated'
  }

  /** Span of all items but repeated ones; null when there are none, or they are not in order. */
  get span(): PageSpan | null {
    if (this.#first === null || !this.#isSorted) return null
    const lastIds =
      this.#lastCount > MAX_LAST_IDS ? null : this.#lastIds.slice(0, this.#lastCount).map(int64ToJson)
    return { first: int64ToJson(this.#first), last: int64ToJson(this.#last), lastIds }
  }

  /** Whether an instant comes before another in the order of the chain. */
  #isBefore(at: Int64, other: Int64): boolean {
    return this.#isAscending ? at < other : at > other
  }

  #follow(id: Int64, at: Int64): void {
    if (this.#first === null) {
      this.#first = at
    } else if (at === this.#last) {
      if (this.#lastCount < MAX_LAST_IDS) this.#lastIds[this.#lastCount] = id
      this.#lastCount++
      return
    } else if (this.#isBefore(at, this.#last)) {
      this.#isSorted = false
    }
    this.#last = at
    this.#lastIds[0] = id
    this.#lastCount = 1
  }
}

/** An item is outside the requested window. @param index of the item, from 0 on */
export function ignoredFilter(index: number, context: PageContext): ExportError {
  return new ExportError({
    kind: 'data',
    what: `Item ${index + 1} of the response has an imported_at outside the requested range: the service ignored the filter`,
    where: pageLocation(context),
    next: 'Check that service.search_path names an endpoint that filters by imported_at: the service does so for every kind of query since May 2026 only, and an older deployment ignores the filter. Leave out extract.windows there.',
  })
}
