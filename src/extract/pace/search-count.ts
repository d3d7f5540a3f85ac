import { type Measures, searchesOf } from '../../core/index.ts'
import { orAborted } from './rate-limit.ts'

/** A request that costs searches, from its reservation until its response is read. */
export type SearchRequest = {
  /** If its page is full. */
  readonly cost: number
  /** Its number among those written; 0 until then. */
  number: number
}

/** Counts the searches that our own pages cost. What is left is the organization's: others spend it, too. */
export class SearchCount {
  /** Whether the endpoint reports what is left; null: there is no response yet. */
  isReported: boolean | null
  /** What is left, by the last response; null: there is none yet. */
  remaining: number | null = null
  readonly #rowsPerSearch: number | null
  readonly #open = new Set<SearchRequest>()
  #spent = 0
  /** The number of the last request that was written, and of the last one that has told what is left. */
  #written = 0
  #told = 0
  #onChange: (() => void)[] = []

  /** @param isReported by earlier runs; null: not known */
  constructor(rowsPerSearch: number | null, isReported: Measures['reportsSearchesLeft']) {
    this.#rowsPerSearch = rowsPerSearch
    this.isReported = isReported
  }

  costOf(rows: number): number {
    return searchesOf(rows, this.#rowsPerSearch)
  }

  get inFlight(): number {
    return this.#open.size
  }

  /** The cost of all requests whose response is not read. */
  get reserved(): number {
    let sum = 0
    for (const { cost } of this.#open) sum += cost
    return sum
  }

  /** Spent so far; null: the service tells of no quota. */
  get spent(): number | null {
    return this.isReported === true ? this.#spent : null
  }

  begin(cost: number): SearchRequest {
    const request = { cost, number: 0 }
    this.#open.add(request)
    return request
  }

  write(request: SearchRequest): void {
    request.number = ++this.#written
  }

  /** @param remaining searches left, by the response; null: it does not say */
  responded({ number }: SearchRequest, remaining: number | null): void {
    if (remaining === null) return
    // Responses overtake each other.
    this.remaining = number > this.#told ? remaining : Math.min(remaining, this.remaining ?? remaining)
    this.#told = Math.max(this.#told, number)
    this.isReported = true
    this.#changed()
  }

  read(request: SearchRequest, rows: number): void {
    this.#open.delete(request)
    this.#spent += this.costOf(rows)
  }

  /** No response comes any more, or it is read. */
  end(request: SearchRequest): void {
    this.#open.delete(request)
    this.#changed()
  }

  /** A usable response did not report what is left. */
  notReported(): void {
    if (this.isReported !== true) this.isReported = false
  }

  /** Resolves when a request has ended, or a response has told what is left. */
  change(signal: AbortSignal): Promise<void> {
    const changed = new Promise<void>((resolve) => {
      this.#onChange.push(resolve)
    })
    return orAborted(changed, signal)
  }

  #changed(): void {
    const waiting = this.#onChange
    this.#onChange = []
    for (const wake of waiting) wake()
  }
}
