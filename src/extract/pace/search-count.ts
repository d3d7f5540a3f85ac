import { type Measures, mayCost, type Reading, ROWS_PER_SEARCH } from '../../core/index.ts'
import { orAborted } from './or-aborted.ts'

/** A request that costs searches, from its reservation on. */
export type SearchRequest = {
  /** The highest possible one. */
  readonly cost: number
  /** Its number among those written; null until then. */
  number: number | null
  /** What was left when it was written, by the response before; null: not known. */
  before: number | null
  /** Whether none of our other requests was on the way from its writing to its response. */
  isAlone: boolean
  /** What its response says is left; null: there is none yet, or it does not say. */
  remaining: number | null
}

// So many requests of a run are sent alone while it is not known what pages cost.
const MAX_ALONE = 3
/** Pages in a row that show what pages cost. */
const SHOWN_BY = 2

/**
 * Counts the searches that our own pages cost: one each, or one for each 100 rows. Until it is shown that it is one, it
 * is the dearer one. What responses say is left is the organization's, from which others spend, too; it shows the price
 * and ends a run, nothing else.
 */
export class SearchCount {
  /** What pages cost; null: not shown yet. */
  reading: Reading | null
  /** Whether the endpoint reports what is left; null: there is no response yet. */
  isReported: boolean | null
  /** What is left, by the last response; null: there is none yet. */
  remaining: number | null = null
  readonly #open = new Set<SearchRequest>()
  #pages = 0
  #byRows = 0
  /** The number of the last request that was written, and of the last one that has told what is left. */
  #written = 0
  #told = 0
  #sentAlone = 0
  /** The last pages that were sent alone, with the rows of each and by how much the number left fell. */
  #alone: { readonly rows: number; readonly fall: number }[] = []
  #onChange: (() => void)[] = []

  /**
   * @param measures measurements of earlier runs
   * @param isReported whether the endpoint reports what is left; null: not known
   */
  constructor({ reading }: Pick<Measures, 'reading'>, isReported: boolean | null) {
    this.reading = reading
    this.isReported = isReported
  }

  get inFlight(): number {
    return this.#open.size
  }

  /** Whether the next request is to be sent alone, as it may show what pages cost. */
  get isToBeAlone(): boolean {
    return this.reading === null && this.isReported === true && this.#sentAlone < MAX_ALONE
  }

  /** The highest cost of all requests whose response has not told what is left. */
  get untold(): number {
    return sumOf(this.#open, ({ remaining }) => remaining === null)
  }

  /** The highest cost of all requests that are not counted yet. */
  get uncounted(): number {
    return sumOf(this.#open, () => true)
  }

  /** Spent so far; null: the service tells of no quota. */
  get spent(): number | null {
    if (this.isReported !== true) return null
    return this.reading === 'request' ? this.#pages : this.#byRows
  }

  /** @param cost the highest possible one */
  begin(cost: number): SearchRequest {
    if (cost > 1 && this.isToBeAlone) this.#sentAlone++
    const request = { cost, number: null, before: null, isAlone: true, remaining: null }
    this.#open.add(request)
    return request
  }

  /** The request is written to a connection. */
  write(request: SearchRequest): void {
    for (const other of this.#open) {
      if (other.number === null || other.remaining !== null) continue
      other.isAlone = false
      request.isAlone = false
    }
    request.number = ++this.#written
    request.before = this.remaining
  }

  /** @param remaining searches left, by the response; null: it does not say */
  responded(request: SearchRequest, remaining: number | null): void {
    if (remaining === null) return
    const number = request.number ?? 0
    // Responses overtake each other.
    this.remaining = number > this.#told ? remaining : Math.min(remaining, this.remaining ?? remaining)
    this.#told = Math.max(this.#told, number)
    this.isReported = true
    request.remaining = remaining
    this.#changed()
  }

  /** @param rows in the response to the request */
  read(request: SearchRequest, rows: number): void {
    this.#open.delete(request)
    this.#pages++
    this.#byRows += mayCost(null, rows)
    const { before, remaining, isAlone } = request
    if (isAlone && before !== null && remaining !== null) this.#learn(rows, before - remaining)
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

  /** Others make the number fall more, never less. A page that was free, or a count that lags behind, shows nothing. */
  #learn(rows: number, fall: number): void {
    if (mayCost(null, rows) === 1 || fall < 1) return
    this.#alone = [...this.#alone, { rows, fall }].slice(-SHOWN_BY)
    if (this.#alone.length < SHOWN_BY) return
    const searches = this.#alone.reduce((sum, { rows }) => sum + rows, 0) / ROWS_PER_SEARCH
    const fallen = this.#alone.reduce((sum, { fall }) => sum + fall, 0)
    // A search may have been paid by the page before, of which it is a part.
    const isLess = this.#alone.every(({ rows, fall }) => fall < mayCost(null, rows))
    if (isLess && fallen < Math.floor(searches)) this.reading = 'request'
    else if (this.#alone.every(({ rows, fall }) => fall === mayCost(null, rows))) this.reading ??= '100 rows'
  }

  #changed(): void {
    const waiting = this.#onChange
    this.#onChange = []
    for (const wake of waiting) wake()
  }
}

function sumOf(requests: Iterable<SearchRequest>, which: (request: SearchRequest) => boolean): number {
  let sum = 0
  for (const request of requests) if (which(request)) sum += request.cost
  return sum
}
