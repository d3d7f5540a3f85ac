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
 * `drop`: another chain's row. `known`: requested again, since the chain has lost its cursor. `repeated`: the service
 * sends it again. `outside`: it was not requested, so the service ignored the filter.
 */
export type Verdict = 'keep' | 'drop' | 'known' | 'repeated' | 'outside'

export class PageRange {
  readonly #isAscending: boolean
  readonly #requested: Bounds
  readonly #own: Bounds
  readonly #since: Int64 | null
  #first: Int64 | null = null
  #last: Int64 = 0
  #late = 0
  readonly #ids: ChainIds

  /** @param ids has the rows of the pages before; serves one page at a time */
  constructor(order: DecodeSettings['order'], context: PageContext, ids: ChainIds) {
    this.#ids = ids
    const { since } = context
    this.#isAscending = order === 'asc'
    this.#requested = boundsOf(context.requested)
    this.#own = boundsOf(context.own)
    this.#since = since === null ? null : int64FromJson(since)
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
    // A row that the chain has had does not affect the order of the others.
    if (verdict !== 'repeated' && verdict !== 'known') this.#follow(at)
    return verdict
  }

  #verdict(id: Int64, at: Int64): Verdict {
    if (this.#wasNotRequested(at)) return 'outside'
    if (this.#since !== null && this.#isBefore(at, this.#since)) return 'outside'
    if (this.#ids.isKnownRow(id)) return 'known'
    if (at < this.#own.from || at >= this.#own.until) return 'drop'
    return this.#ids.isNewRow(id) ? 'keep' : 'repeated'
  }

  /** Span of all items but those that the chain has had; null when there are none. */
  get span(): PageSpan | null {
    if (this.#first === null) return null
    return { first: int64ToJson(this.#first), last: int64ToJson(this.#last), late: this.#late }
  }

  #isBefore(at: Int64, other: Int64): boolean {
    return this.#isAscending ? at < other : at > other
  }

  #follow(at: Int64): void {
    if (this.#first === null) {
      this.#first = at
      this.#last = at
    } else if (this.#isBefore(at, this.#last)) {
      this.#late = Math.max(this.#late, Math.abs(Number(this.#last) - Number(at)))
      if (this.#isBefore(at, this.#first)) this.#first = at
    } else this.#last = at
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
