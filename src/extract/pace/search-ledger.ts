import { type Measures, mayCost, orAborted, type Reading, ROWS_PER_SEARCH } from '../../core/index.ts'

/** A request that costs searches, from its reservation to its response. */
export type ChargedRequest = ReturnType<SearchLedger['begin']>

/** A count of searches left, and what the page that came with it may have cost. */
type Counted = {
  readonly remaining: number
  rows: number | null
  readonly cost: number
  /** How far the count fell to it from the last one that earlier runs saw; null: not known. */
  readonly fall: number | null
  /** What requests without a response before it may have cost. */
  readonly lost: number
}

/** The highest count since the last refill, the lowest, and when that came. */
type Counts = { first: Counted; lowest: number; at: number }

/** A request in flight. */
type Flight = {
  readonly cost: number
  /** Null until it is written. */
  writtenAt: number | null
  /** What was left when it was written; null: not known. */
  before: number | null
  /** How many other requests may be counted between `before` and its response, and what they may cost. */
  others: number
  othersCost: number
}

/**
 * Counts the searches that are spent, by the number left that each response reports: the highest number since the last
 * refill less the lowest, and what the first page cost: by the reading, and no more than the number fell since the last run. The first page that tells decides what pages cost. Other clients
 * spend from the same number, so what is counted is the most that this run has spent.
 */
export class SearchLedger {
  /** What pages cost; null: no page has told. */
  reading: Reading | null
  /** Whether the endpoint reports what is left; null: there is no response yet. */
  isReported: boolean | null
  /** What was left after the last response of earlier runs; null: not known. */
  readonly remainingBefore: number | null
  /** Counts what happens to requests. */
  #moment = 0
  readonly #open = new Set<Flight>()
  /** Requests without a response that may have been charged. The response to a later request includes their cost. */
  #lost: { readonly cost: number; readonly at: number }[] = []
  #counts: Counts | null = null
  /** Spent before the last refill. */
  #before = 0
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
    return this.#counts?.lowest ?? null
  }

  /** Spent so far, at most; null: the service does not report it. */
  get spent(): number | null {
    return this.#counts === null ? null : this.#before + this.#sinceRefill(this.#counts)
  }

  /** @param cost the highest possible one */
  begin(cost: number) {
    const flight: Flight = { cost, writtenAt: null, before: null, others: 0, othersCost: 0 }
    this.#open.add(flight)
    let counted: Counted | null = null
    /**
     * The request has ended.
     * @param remaining searches left, by the response; null: it does not report them, or there is no response
     * @param mayBeCharged whether the service may have charged the request
     */
    const responded = (remaining: number | null, mayBeCharged: boolean): void => {
      if (!this.#open.delete(flight)) return
      if (remaining !== null) {
        const fall =
          this.#counts !== null || this.remainingBefore === null ? null : this.remainingBefore - remaining
        counted = { remaining, rows: null, cost, fall, lost: this.lost }
        this.#see(counted, flight.writtenAt ?? 0)
      } else if (this.isReported !== false && mayBeCharged) this.#lost.push({ cost, at: ++this.#moment })
      this.#changed()
    }
    return {
      cost,
      /** The request is written to a connection. */
      write: (): void => this.#write(flight),
      responded,
      /** The number of rows in the response; null: it could not be read. */
      rows: (count: number | null): void => {
        if (counted === null || count === null) return
        counted.rows = count
        this.reading ??= readingBy(flight, counted.remaining, count)
        this.#changed()
      },
      /** No response comes any more. A request that was written may have been charged. Does nothing after `responded`. */
      end: () => responded(null, flight.writtenAt !== null),
    }
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

  #write(flight: Flight): void {
    flight.writtenAt = ++this.#moment
    flight.before = this.remaining ?? this.remainingBefore
    flight.others = this.#lost.length
    flight.othersCost = this.lost
    for (const other of this.#open) {
      if (other === flight || other.writtenAt === null) continue
      flight.others++
      flight.othersCost += other.cost
      other.others++
      other.othersCost += flight.cost
    }
  }

  #see(counted: Counted, writtenAt: number): void {
    this.isReported = true
    const at = ++this.#moment
    const { remaining } = counted
    const counts = this.#counts
    // Responses overtake each other; but if a later request reports more, the service has refilled the quota.
    const isRefill = counts !== null && remaining > counts.lowest && writtenAt > counts.at
    if (isRefill) this.#before += this.#sinceRefill(counts)
    if (counts === null || isRefill) this.#counts = { first: counted, lowest: remaining, at }
    else {
      if (remaining > counts.first.remaining) counts.first = counted
      if (remaining < counts.lowest) Object.assign(counts, { lowest: remaining, at })
    }
    this.#lost = this.#lost.filter((lost) => lost.at > writtenAt)
  }

  #sinceRefill({ first, lowest }: Counts): number {
    const { remaining, rows, cost, fall, lost } = first
    const page = rows === null ? cost : mayCost(this.reading, rows)
    return remaining - lowest + (fall === null || fall < 0 ? page : Math.min(fall, page + lost))
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
function readingBy({ before, others, othersCost }: Flight, remaining: number, rows: number): Reading | null {
  const least = Math.floor(rows / ROWS_PER_SEARCH)
  if (before === null || least <= 1 + others) return null
  const fall = before - remaining
  if (fall >= 1 && fall <= 1 + others) return 'request'
  return fall >= least && fall <= mayCost(null, rows) + othersCost ? '100 rows' : null
}

function sumOf(requests: Iterable<{ readonly cost: number }>): number {
  let sum = 0
  for (const { cost } of requests) sum += cost
  return sum
}
