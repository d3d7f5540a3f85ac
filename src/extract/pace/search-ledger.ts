import { type Measures, mayCost, orAborted, type Reading, ROWS_PER_SEARCH } from '../../core/index.ts'

/** A request that costs searches, from its reservation on. */
export type ChargedRequest = {
  /** The highest possible one. */
  readonly cost: number
  /** Its number among those written; null until then. */
  number: number | null
  /** The lowest count when it was written; null: there was none. */
  before: number | null
  /** Other requests that may have been charged between that and its response. */
  others: number
  /** What its response says is left; null: there is none. */
  remaining: number | null
  /** Rows in the response; null: not known. */
  rows: number | null
}

/**
 * Counts the searches that are spent, by the number left that each response reports: the highest number since the last
 * refill less the lowest, and what the first page cost: by the reading, and no more than the number fell since the last
 * run. The first page that tells decides what pages cost. Other clients spend from the same number, so what is counted is
 * the most that this run has spent.
 */
export class SearchLedger {
  /** What pages cost; null: no page has told. */
  reading: Reading | null
  /** Whether the endpoint reports what is left; null: there is no response yet. */
  isReported: boolean | null
  /** What was left after the last response of earlier runs; null: not known. */
  readonly remainingBefore: number | null
  readonly #open = new Set<ChargedRequest>()
  /** Requests without a response that may have been charged. The response to a later request includes their cost. */
  #lost: { readonly cost: number; readonly last: number }[] = []
  /** The number of the last request that was written. */
  #last = 0
  /** The request with the highest count since the last refill. */
  #first: ChargedRequest | null = null
  /** The lowest count since then. */
  #lowest: number | null = null
  /** Spent before the last refill. */
  #before = 0
  /** What was left before the first count since then; null: not known. */
  #left: number | null
  #onChange: (() => void)[] = []

  /**
   * @param measures measurements of earlier runs
   * @param isReported whether the endpoint reports what is left; null: not known
   * @param left searches left, as earlier runs last saw; null: not known
   */
  constructor(
    { reading }: Pick<Measures, 'reading'>,
    isReported: boolean | null,
    left: number | null = null,
  ) {
    this.reading = reading
    this.isReported = isReported
    this.remainingBefore = left
    this.#left = left
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

  /** What is left, by the last response in the service's order; null: there is none yet. */
  get remaining(): number | null {
    return this.#lowest
  }

  /** Spent so far, at most; null: the service does not report it. */
  get spent(): number | null {
    if (this.#first === null) return null
    const { remaining, rows, cost } = this.#first
    const page = rows === null ? cost : mayCost(this.reading, rows)
    const fall = (this.#left ?? Number.POSITIVE_INFINITY) - remaining!
    return this.#before + remaining! - this.#lowest! + (fall < 0 ? page : Math.min(fall, page))
  }

  /** @param cost the highest possible one */
  begin(cost: number): ChargedRequest {
    const request = { cost, number: null, before: null, others: 0, remaining: null, rows: null }
    this.#open.add(request)
    return request
  }

  /** The request is written to a connection. */
  write(request: ChargedRequest): void {
    request.others = this.#lost.length
    for (const { number } of this.#open) if (number !== null) request.others++
    request.number = ++this.#last
    request.before = this.#lowest
  }

  /**
   * The request has ended.
   * @param remaining searches left, by the response; null: it does not report them, or there is no response
   * @param mayBeCharged whether the service may have charged the request
   */
  responded(request: ChargedRequest, remaining: number | null, mayBeCharged: boolean): void {
    if (!this.#open.delete(request)) return
    if (remaining !== null) this.#see(request, remaining)
    else if (this.isReported !== false && mayBeCharged)
      this.#lost.push({ cost: request.cost, last: this.#last })
    this.#changed()
  }

  /** No response comes any more. A request that was written may have been charged. Does nothing after `responded`. */
  end(request: ChargedRequest): void {
    this.responded(request, null, request.number !== null)
  }

  /** @param rows in the response to the request */
  read(request: ChargedRequest, rows: number): void {
    request.rows = rows
    this.reading ??= readingBy(request, request.before ?? this.remainingBefore)
    this.#changed()
  }

  /** A usable response did not report what is left. */
  notReported(): void {
    if (this.isReported === true) return
    this.isReported = false
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

  #see(request: ChargedRequest, remaining: number): void {
    const { number, before } = request
    const lowest = this.#lowest
    // Responses overtake each other; but more than when the request was written shows that the quota was refilled.
    const isRefill = before !== null && remaining > Math.max(before, lowest!)
    if (isRefill) {
      this.#before = this.spent!
      this.#left = null
    }
    if (isRefill || this.#first === null || remaining > this.#first.remaining!) this.#first = request
    if (isRefill || lowest === null || remaining < lowest) this.#lowest = remaining
    request.remaining = remaining
    request.others += this.#last - number!
    this.isReported = true
    this.#lost = this.#lost.filter(({ last }) => last >= number!)
  }

  #changed(): void {
    const waiting = this.#onChange
    this.#onChange = []
    for (const wake of waiting) wake()
  }
}

/**
 * What the fall of the count shows of a page's cost; null: nothing, as others may have spent. By the reading of rows, the
 * page before may have paid for some of its rows.
 */
function readingBy({ cost, others, remaining, rows }: ChargedRequest, before: number | null): Reading | null {
  const least = Math.floor((rows ?? 0) / ROWS_PER_SEARCH)
  if (before === null || remaining === null || least <= 1 + others) return null
  const fall = before - remaining
  if (fall >= 1 && fall <= 1 + others) return 'request'
  return fall >= least && fall <= mayCost(null, rows ?? 0) + others * cost ? '100 rows' : null
}

function sumOf(requests: Iterable<{ readonly cost: number }>): number {
  let sum = 0
  for (const { cost } of requests) sum += cost
  return sum
}
