import type { Clock, Reading } from '../core/index.ts'
import type { Budget, ThisMonth } from './pace/budget.ts'
import type { RateLimit } from './pace/rate-limit.ts'
import type { SearchLedger } from './pace/search-ledger.ts'

type CounterParts = {
  readonly budget: Budget
  readonly ledger: SearchLedger
  readonly pace: { readonly search: RateLimit }
  readonly clock: Clock
}

/** What a run has sent and spent, and what the responses say is left. */
export class ServiceCounters {
  readonly #parts: CounterParts
  #retries = 0
  #isReached = false
  #isFound = false
  #notFound = 0

  constructor(parts: CounterParts) {
    this.#parts = parts
  }

  /** Counts a request that is written to a connection. */
  sent(isRetry: boolean): void {
    this.#isReached = true
    if (isRetry) this.#retries++
  }

  /** Counts a response to a search by what it shows of the address. A 404 to a cursor may concern the cursor. */
  responded(shows: 'found' | 'not found' | 'unknown'): void {
    if (shows === 'found') this.#isFound = true
    else if (shows === 'not found') this.#notFound++
  }

  /** Whether a search ever succeeded. */
  get isFound(): boolean {
    return this.#isFound
  }

  /** Searches and report requests written to a connection, retries among them. */
  get requests(): number {
    return this.#parts.budget.requests
  }

  thisMonth(): ThisMonth {
    return this.#parts.budget.thisMonth()
  }

  get retries(): number {
    return this.#retries
  }

  /** By the last response; null: there is none yet. */
  get searchesRemaining(): number | null {
    return this.#parts.ledger.remaining
  }

  /** Quota spent, by what responses report as left; null: they do not report it. */
  get searchesSpent(): number | null {
    return this.#parts.ledger.spent
  }

  /** Whether responses report what is left; null: there is none yet. */
  get reportsSearchesLeft(): boolean | null {
    return this.#parts.ledger.isReported
  }

  /** What pages cost; null: no page has told. */
  get reading(): Reading | null {
    return this.#parts.ledger.reading
  }

  /** The end of the pause after a 429 (epoch ms); null: no pause. */
  get pausedUntilMs(): number | null {
    const leftMs = this.#parts.pace.search.pausedForMs()
    return leftMs === 0 ? null : Math.round(this.#parts.clock.now() + leftMs)
  }

  /** Whether any request was written to a connection. */
  get isReached(): boolean {
    return this.#isReached
  }

  /** Searches with response 404 before the first success; 0 from then on. */
  get notFound(): number {
    return this.#isFound ? 0 : this.#notFound
  }
}
