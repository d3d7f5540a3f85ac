import {
  estimatedCost,
  type Measures,
  maxCost,
  mayCost,
  orAborted,
  type PageCost,
  rowsFor,
} from '../../core/index.ts'

/** A request that costs searches, from its reservation to its response. */
export type ChargedRequest = ReturnType<SearchLedger['begin']>

type CountedResponse = {
  readonly remaining: number
  readonly writtenAt: number
  readonly respondedAt: number
  readonly flight: { readonly cost: number; rows: number | null | undefined }
}

/**
 * Counts the searches that are spent, from the number left that each response reports. Responses overtake each other,
 * so they are sorted into the order in which the service made them: by that number, once no response in flight can
 * precede them. Between two responses the number falls by the cost of the later request, or by more: others spend too.
 *
 * Example: earlier runs last saw 1,000 left. A, B and C are written in this order, for 12 each at most.
 * - B reports 980. A is in flight and may precede it, so B waits in `#responses`; 24 stay reserved, for A and C.
 * - A reports 990: it cost 1,000 − 990 = 10. Then B's predecessor is A: 990 − 980 = 10. `#base` is 980, 20 are spent.
 * - C times out and may have been charged: its 12 stay reserved, in `#lost`.
 * - D, written after that, reports 968: what C cost is in it. 12 more are spent, and C is reserved no longer.
 *
 * `test/extract/searches-are-measured.test.ts` holds the law for responses in any order.
 */
export class SearchLedger {
  readonly #costs: PageCost[]
  #isReported: boolean | null
  readonly #onCost: (cost: PageCost, usual: number) => void
  /** Counts what happens to requests. */
  #moment = 0
  readonly #open = new Set<{ readonly cost: number; writtenAt: number | null }>()
  /** Requests without a response that may have been charged. The response to a later request includes their cost. */
  #lost: { readonly cost: number; readonly at: number }[] = []
  #known: { readonly remaining: number; readonly at: number } | null = null
  /** Responses whose index in the order, or whose rows, are not known yet. */
  #responses: CountedResponse[] = []
  /** What was left after the last response with a known index. */
  #base: number | null = null
  /** What was left after the last response of earlier runs; null: not known, or of no more use. */
  #left: number | null
  /** Rows of the responses that have no predecessor. */
  #firstRows: number[] = []
  /** The possible cost of requests without a response before the first response that reports what is left. */
  #lostFirst = 0
  #spent = 0
  #onChange: (() => void)[] = []

  /**
   * @param measures measurements of earlier runs
   * @param isReported whether the endpoint reports what is left; null: not known
   * @param onCost called with the cost of each page, once it is known
   * @param left searches left, as earlier runs last saw; null: not known
   */
  constructor(
    measures: Pick<Measures, 'costs'>,
    isReported: boolean | null,
    onCost: (cost: PageCost, usual: number) => void = () => {},
    left: number | null = null,
  ) {
    this.#costs = [...measures.costs]
    this.#isReported = isReported
    this.#left = left
    this.#onCost = onCost
  }

  /** Whether the endpoint reports what is left; null: there is no response yet. */
  get isReported(): boolean | null {
    return this.#isReported
  }

  get inFlight(): number {
    return this.#open.size
  }

  /** The highest cost of all requests whose cost is not known yet. */
  get reserved(): number {
    return this.lost + sumOf(this.#open)
  }

  /** The same of requests that have ended. */
  get lost(): number {
    return sumOf(this.#lost)
  }

  /** What was left after the last response of earlier runs, before the first response of this one; null: not known. */
  get remainingBefore(): number | null {
    return this.#left
  }

  /** What is left, by the last response in the service's order; null: there is none yet. */
  get remaining(): number | null {
    return this.#known?.remaining ?? null
  }

  /** Spent so far, by the responses; null: the service does not report it. */
  get spent(): number | null {
    if (this.#isReported !== true) return null
    let spent = this.#spent
    for (const rows of this.#firstRows) spent += Math.min(maxCost(rows), estimatedCost(this.#costs, rows))
    // Responses without an index are counted as if all had arrived.
    const values = this.#responses.map(({ remaining }) => remaining)
    if (values.length === 0) return spent
    const base = this.#base ?? Math.max(...values)
    const below = values.filter((value) => value <= base)
    // The first of them may have cost what was reserved for it, until its rows are known.
    if (this.#base === null) {
      const first = this.#responses.filter(({ remaining }) => remaining === base)
      spent += Math.max(...first.map(({ flight }) => flight.cost))
    }
    return spent + (below.length === 0 ? 0 : base - Math.min(...below))
  }

  /** The highest cost of a page of so many rows. */
  mayCost(size: number): number {
    return mayCost(this.#costs, size)
  }

  /** The number of rows that a page may have to cost at most so many searches. */
  rowsFor(searches: number): number {
    return rowsFor(this.#costs, searches)
  }

  get costs(): readonly PageCost[] {
    return this.#costs
  }

  /** @param cost the highest possible one */
  begin(cost: number) {
    const entry = { cost, writtenAt: null as number | null }
    this.#open.add(entry)
    const known: CountedResponse['flight'] = { cost, rows: undefined }
    /**
     * The request has ended.
     * @param remaining searches left, by the response; null: it does not report them, or there is no response
     * @param mayBeCharged whether the service may have charged the request
     */
    const responded = (remaining: number | null, mayBeCharged: boolean): void => {
      if (!this.#open.delete(entry)) return
      const at = ++this.#moment
      const writtenAt = entry.writtenAt ?? at
      if (remaining !== null) this.#see({ remaining, writtenAt, respondedAt: at, flight: known })
      else if (this.#isReported !== false && mayBeCharged) {
        this.#lost.push({ cost, at })
        if (this.#known === null) this.#lostFirst += cost
      }
      this.#changed()
    }
    return {
      cost,
      /** The request is written to a connection. */
      write: (): void => {
        entry.writtenAt = ++this.#moment
      },
      responded,
      /** The number of rows in the response; null: it could not be read. */
      rows: (count: number | null): void => {
        known.rows = count
        this.#changed()
      },
      /** No response comes any more. A request that was written may have been charged. Does nothing after `responded`. */
      end: () => responded(null, entry.writtenAt !== null),
    }
  }

  /** A usable response did not report what is left. */
  notReported(): void {
    if (this.#isReported === true) return
    this.#isReported = false
    this.#lost = []
    this.#changed()
  }

  /** Resolves when a request has ended. */
  change(signal: AbortSignal): Promise<void> {
    const changed = new Promise<void>((resolve) => {
      this.#onChange.push(resolve)
    })
    return orAborted(changed, signal)
  }

  #see(response: CountedResponse): void {
    this.#isReported = true
    const { remaining, writtenAt, respondedAt } = response
    // Of responses that overtook each other, the lowest is the last. If a later request reports more, that one counts.
    if (this.#known === null || remaining < this.#known.remaining || writtenAt > this.#known.at) {
      this.#known = { remaining, at: respondedAt }
    }
    this.#lost = this.#lost.filter(({ at }) => at > writtenAt)
    this.#responses.push(response)
  }

  #changed(): void {
    this.#settle()
    const waiting = this.#onChange
    this.#onChange = []
    for (const wake of waiting) wake()
  }

  /** Fixes the order of the responses that no other can precede any more. */
  #settle(): void {
    let open = Number.POSITIVE_INFINITY
    for (const { writtenAt } of this.#open) open = Math.min(open, writtenAt ?? open)
    const last = this.#responses.filter(({ respondedAt }) => respondedAt < open)
    if (last.length === 0) return
    // Responses that precede one of these in the service's order have their index as well.
    const isBefore = (response: CountedResponse): boolean =>
      last.some((other) => response.writtenAt < other.respondedAt && response.remaining >= other.remaining)
    const all = new Set([...last, ...this.#responses.filter(isBefore)])
    // Their rows are known after decoding.
    if ([...all].some(({ flight }) => flight.rows === undefined)) return
    this.#responses = this.#responses.filter((response) => !all.has(response))
    const inOrder = [...all].sort((a, b) => b.remaining - a.remaining || a.respondedAt - b.respondedAt)
    const base = this.#base
    // More is left than before: the service has reset its count, so these come last.
    const isAfterReset = ({ remaining }: CountedResponse): boolean => base !== null && remaining > base
    for (const response of inOrder.filter((response) => !isAfterReset(response))) this.#account(response)
    const afterReset = inOrder.filter(isAfterReset)
    if (afterReset.length > 0) this.#base = null
    for (const response of afterReset) this.#account(response)
  }

  #account({ remaining, flight }: CountedResponse): void {
    const rows = flight.rows ?? null
    if (this.#base === null) this.#accountFirst(remaining, rows)
    else this.#spend(this.#base - remaining, rows)
    this.#base = remaining
  }

  /**
   * The predecessor of the first response is the last one of earlier runs, if the number fell by no more than this run's
   * requests may cost: then nobody else has spent in between. Otherwise its cost is estimated.
   */
  #accountFirst(remaining: number, rows: number | null): void {
    const fall = this.#left === null ? null : this.#left - remaining
    this.#left = null
    const page = Math.max(maxCost(rows ?? 0), estimatedCost(this.#costs, rows ?? 0))
    if (fall === null || fall < 0 || fall > page + this.#lostFirst) {
      this.#firstRows.push(rows ?? 0)
      return
    }
    this.#spend(fall, this.#lostFirst === 0 ? rows : null)
  }

  /** @param rows of the page that cost it; null: none, or not that page alone */
  #spend(searches: number, rows: number | null): void {
    this.#spent += searches
    // A request without a page may have been charged. The page after it is not more expensive for that.
    if (rows === null) return
    const usual = estimatedCost(this.#costs, rows)
    this.#costs.push([rows, searches])
    this.#onCost([rows, searches], usual)
  }
}

function sumOf(requests: Iterable<{ readonly cost: number }>): number {
  let sum = 0
  for (const { cost } of requests) sum += cost
  return sum
}
