import type { Measures } from '../../core/index.ts'

/** The least size to which pages shrink when the service can't serve them. */
const LEAST_SIZE = 10
/** Bounds of {@link pagesBeforeGrowth}. */
const GOOD_PAGES = 5
const MOST_GOOD_PAGES = 80
// An immediate rejection does not show how long a page may take.
const SLOW_MS = 1000

/** The size of pages with which a query continues; null: the greatest. */
export type SizeChange = { readonly query: string; readonly size: number | null }

/**
 * The number of rows to request with each page: as many as allowed, half as many each time the service can't serve
 * that, and slowly more if responses are quick. Each query has its own size. A new query begins with the size that was
 * served last.
 */
export class PageSizes {
  /** The upper bound, as configured. */
  readonly most: number
  readonly #timeoutMs: number
  readonly #onChange: (change: SizeChange, from: number, why: string) => void
  readonly #limits: Map<string, number | null>
  #limit: number | null
  /** The shortest time after which a page failed as too large; null: none did. */
  #lateMs: number | null = null

  /**
   * @param measures measurements of earlier runs
   * @param onChange called when the size of a query's pages changes
   */
  constructor(
    { most, timeoutMs }: { readonly most: number; readonly timeoutMs: number },
    measures: Pick<Measures, 'limit' | 'limits'>,
    onChange: (change: SizeChange, from: number, why: string) => void,
  ) {
    this.most = most
    this.#timeoutMs = timeoutMs
    this.#onChange = onChange
    this.#limit = measures.limit
    this.#limits = new Map(measures.limits)
  }

  /** The size with which a chain of this query begins. */
  startOf(query: string): number {
    const limit = this.#limits.has(query) ? this.#limits.get(query)! : this.#limit
    return Math.min(this.most, limit ?? this.most)
  }

  /** Whether a page of this size is as small as pages get. */
  isLeast(size: number): boolean {
    return size <= LEAST_SIZE
  }

  /** A page could not be served. @param good the greatest size that was served to this chain; null: none */
  failed(query: string, size: number, good: number | null, ms: number, why: string): number {
    if (ms >= SLOW_MS) this.#lateMs = Math.min(this.#lateMs ?? ms, ms)
    const half = Math.max(LEAST_SIZE, Math.floor(size / 2))
    const next = good !== null && good < size ? Math.max(good, half) : Math.min(half, this.startOf(query))
    this.#change({ query, size: next }, size, why)
    return next
  }

  /** A larger page was served. */
  grown(query: string, size: number, from: number): void {
    this.#change({ query, size: size === this.most ? null : size }, from, 'responses are quick')
  }

  /** Whether responses are so quick that one of twice the size can be expected in time. */
  isQuick(ms: number): boolean {
    const limitMs = Math.min(this.#timeoutMs, this.#lateMs ?? this.#timeoutMs)
    return ms * 2.5 < limitMs
  }

  #change(change: SizeChange, from: number, why: string): void {
    this.#limits.set(change.query, change.size)
    this.#limit = change.size
    this.#onChange(change, from, why)
  }
}

/** The size of pages of one chain while a run follows it. */
export class ChainSize {
  /** Rows that the pages of the present sequence of cursors are requested with. */
  size: number
  readonly #sizes: PageSizes
  readonly #query: string
  #good = 0
  #needed = GOOD_PAGES
  /** The greatest size that was served. */
  #served: number | null = null
  /** The previous size, while the present one is larger and has not been served yet. */
  #before: number | null = null
  /** Whether the next page has to be of the size that its cursor was given for. */
  #isBound = false

  constructor(sizes: PageSizes, query: string, size: number) {
    this.#sizes = sizes
    this.#query = query
    this.size = size
  }

  /** Whether smaller pages can be requested. */
  get canShrink(): boolean {
    return !this.#isBound && !this.#sizes.isLeast(this.size)
  }

  /** Whether larger pages may be requested after the page in flight, if that is as good as the previous ones. */
  get mayGrowNext(): boolean {
    return this.#isDue(this.#good + 1)
  }

  /** A page was served. @returns whether to request larger pages from then on */
  served({ ms, isNew }: { readonly ms: number; readonly isNew: boolean }): boolean {
    this.#isBound = false
    this.#served = Math.max(this.#served ?? 0, this.size)
    if (this.#before !== null) {
      this.#sizes.grown(this.#query, this.size, this.#before)
      this.#needed = pagesBeforeGrowth('grown', this.#needed)
      this.#before = null
    }
    if (!isNew || !this.#sizes.isQuick(ms)) return false
    this.#good++
    return this.#isDue(this.#good)
  }

  /** The service could not serve a page of this size. */
  shrink(ms: number, why: string): void {
    this.#needed = pagesBeforeGrowth(this.#before === null ? 'shrunk' : 'growth failed', this.#needed)
    this.#good = 0
    this.#before = null
    const good = this.#served !== null && this.#served < this.size ? this.#served : null
    this.size = this.#sizes.failed(this.#query, this.size, good, ms, why)
    // The size that failed now was too large as well.
    this.#served = null
  }

  /** The chain can't drop the cursor of the page that was not served: it requests that page again, in the same size. */
  bind(): void {
    this.#isBound = true
  }

  grow(): void {
    this.#good = 0
    this.#before = this.size
    this.size = Math.min(this.#sizes.most, this.size * 2)
  }

  /** Keeps the cursors of another size. */
  keep(size: number): void {
    this.size = size
    this.#good = 0
    this.#before = null
  }

  /** Whether so many good pages in a row are enough to request larger ones. */
  #isDue(good: number): boolean {
    return this.size < this.#sizes.most && good >= this.#needed
  }
}

/**
 * The number of good pages in a row that is needed before larger ones are requested.
 * @param now the number needed until now
 */
function pagesBeforeGrowth(outcome: 'grown' | 'growth failed' | 'shrunk', now: number): number {
  // The cause, an outage for example, has passed: pages are full again within a dozen.
  if (outcome === 'grown') return 1
  const next = outcome === 'growth failed' ? now * 2 : now
  return Math.min(MOST_GOOD_PAGES, Math.max(GOOD_PAGES, next))
}
