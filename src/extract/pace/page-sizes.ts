import { ExportError, type Measures } from '../../core/index.ts'

/** The least size to which pages shrink when the service cannot serve them. */
const MIN_PAGE_SIZE = 10
/** Bounds of {@link pagesBeforeGrowth}. */
const GOOD_PAGES = 5
const MAX_GOOD_PAGES = 80
// An immediate rejection shows neither how long a page may take nor that its size is the cause.
const SLOW_MS = 1000

/** The size of pages with which a query continues; null: the greatest. */
export type SizeChange = { readonly query: string; readonly size: number | null }

/** How a chain chooses the size of its pages. */
export type Sizing = Pick<
  ChainSize,
  'canShrink' | 'isLarger' | 'isTooLarge' | 'mayGrowNext' | 'served' | 'failed' | 'afford'
>

/** A page in whose place a smaller one can be requested: see `ChainSize.next`. */
export class PageTooLarge extends ExportError {}

/** A page that could not be served. */
type FailedPage = {
  readonly ms: number
  readonly why: string
  /** Whether a gateway refused it; else no response came in time. */
  readonly isRefusal: boolean
}

/** What is known about the pages of one query. */
type QueryPages = {
  /** The size with which its chains begin; null: the greatest; undefined: not known. */
  limit: number | null | undefined
  /** The least size that could not be served, if no page as large was served since; else Infinity. */
  failed: number
  /** Whether a page was served in this run. */
  isServed: boolean
  /** Good pages in a row, and how many are needed before larger ones are requested. */
  good: number
  needed: number
}

/**
 * The number of rows to request with each page: as many as allowed, half as many each time the service cannot serve
 * that, and slowly more if responses are quick. Each query has its own size, which its chains share. A new query begins
 * with the size that was served last. A query of which no page was served in this run takes over what others could not
 * get.
 */
export class PageSizes {
  /** The upper bound, as configured. */
  readonly most: number
  readonly #timeoutMs: number
  readonly #onChange: (change: SizeChange, from: number, why: string) => void
  readonly #queries = new Map<string, QueryPages>()
  #limit: number | null
  /** Good pages in a row before a query's first larger one. */
  readonly #needed: number
  /** As `QueryPages.failed`, of all queries; failed growth does not count. */
  #failed = Number.POSITIVE_INFINITY
  /** The shortest time after which a page failed as too large; null: none did. */
  #lateMs: number | null = null
  /** Whether no page was served since the size was last reduced. */
  isDescending = false

  /**
   * @param bounds `start`: the size of a query's first page, which grows with the first good one; null: the greatest
   * @param measures measurements of earlier runs
   * @param onChange called when the size of a query's pages changes
   */
  constructor(
    {
      most,
      timeoutMs,
      start = null,
    }: { readonly most: number; readonly timeoutMs: number; readonly start?: number | null },
    measures: Pick<Measures, 'limit' | 'limits'>,
    onChange: (change: SizeChange, from: number, why: string) => void,
  ) {
    this.most = most
    this.#timeoutMs = timeoutMs
    this.#onChange = onChange
    this.#limit = measures.limit ?? start
    this.#needed = start === null ? GOOD_PAGES : 1
    for (const [query, limit] of measures.limits) this.of(query).limit = limit
  }

  of(query: string): QueryPages {
    const known = this.#queries.get(query)
    if (known !== undefined) return known
    const fresh = {
      limit: undefined,
      failed: Number.POSITIVE_INFINITY,
      isServed: false,
      good: 0,
      needed: this.#needed,
    }
    this.#queries.set(query, fresh)
    return fresh
  }

  /** The size with which a chain of this query begins. */
  startOf(query: string): number {
    const { limit = this.#limit, isServed = false } = this.#queries.get(query) ?? {}
    const own = Math.min(this.most, limit ?? this.most)
    return isServed || this.#failed === Number.POSITIVE_INFINITY
      ? own
      : Math.min(own, this.#limit ?? this.most)
  }

  /** Whether a page of this size could not be served, as far as any chain knows. */
  isTooLarge(query: string, size: number): boolean {
    const { failed, isServed } = this.of(query)
    return size >= (isServed ? failed : Math.min(failed, this.#failed)) && size > this.startOf(query)
  }

  /** A page was served. @param before the previous size, if this one is the first of a larger size; else null */
  served(query: string, size: number, before: number | null): void {
    const pages = this.of(query)
    const start = this.startOf(query)
    pages.isServed = true
    this.isDescending = false
    // From now on its own limit counts, which may be from before the others' last failure.
    if (start < this.startOf(query))
      this.#change({ query, size: start }, this.startOf(query), 'other queries failed')
    if (size >= pages.failed) pages.failed = Number.POSITIVE_INFINITY
    if (size >= this.#failed) this.#failed = Number.POSITIVE_INFINITY
    if (before === null) return
    pages.needed = pagesBeforeGrowth('grown', pages.needed)
    if (pages.limit !== undefined && size <= (pages.limit ?? this.most)) return
    this.#change({ query, size: size === this.most ? null : size }, before, 'responses are quick')
  }

  /**
   * A page could not be served.
   * @param good the greatest size that was served to this chain; null: none
   * @returns the size to continue with
   */
  failed(
    query: string,
    size: number,
    { good, isGrowth }: { readonly good: number | null; readonly isGrowth: boolean },
    { ms, why }: FailedPage,
  ): number {
    const pages = this.of(query)
    if (ms >= SLOW_MS) this.#lateMs = Math.min(this.#lateMs ?? ms, ms)
    const half = Math.max(MIN_PAGE_SIZE, Math.floor(size / 2))
    const isGood = good !== null && good < Math.min(size, pages.failed)
    const next = isGood ? Math.max(good, half) : Math.min(half, this.startOf(query))
    pages.needed = pagesBeforeGrowth(isGrowth ? 'growth failed' : 'shrunk', pages.needed)
    pages.good = 0
    pages.failed = Math.min(pages.failed, size)
    if (!isGrowth) this.#failed = Math.min(this.#failed, size)
    this.isDescending = true
    if (pages.limit !== next) this.#change({ query, size: next }, size, why)
    return next
  }

  /** Whether responses are so quick that one of twice the size can be expected in time. */
  isQuick(ms: number): boolean {
    const limitMs = Math.min(this.#timeoutMs, this.#lateMs ?? this.#timeoutMs)
    return ms * 2.5 < limitMs
  }

  #change(change: SizeChange, from: number, why: string): void {
    this.of(change.query).limit = change.size
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
  /** The greatest size that was served. */
  #served: number | null = null
  /** The previous size, while the present one is larger and has not been served yet. */
  #before: number | null = null
  /** The smaller size that a failure or the searches left require; null: none does. */
  #required: number | null = null
  /** The size without regard to the searches left, while these pay for less; null: they pay for pages of any size. */
  #unpaid: number | null = null
  /** Whether the next page has to be of the size that its cursor was given for. */
  #isBound = false
  /** Whether a page that was refused at once is requested again. */
  #isRepeating = false

  constructor(sizes: PageSizes, query: string, size: number) {
    this.#sizes = sizes
    this.#query = query
    this.size = size
  }

  /** Whether smaller pages can be requested. */
  get canShrink(): boolean {
    return !this.#isBound && this.size > MIN_PAGE_SIZE
  }

  /** Whether pages of this size are larger than those before, and none was served yet. */
  get isLarger(): boolean {
    return this.#before !== null
  }

  /** Whether a page of this size is not worth a request: another chain has learned that it cannot be served. */
  get isTooLarge(): boolean {
    return this.canShrink && this.#sizes.isTooLarge(this.#query, this.size)
  }

  /** The size for the next page; the present one if a page that was refused at once is requested again. */
  get next(): number {
    const learned = this.isTooLarge ? this.#sizes.startOf(this.#query) : this.size
    return Math.min(learned, this.#required ?? learned)
  }

  /** Whether larger pages may be requested after the page in flight, if that is as good as the previous ones. */
  get mayGrowNext(): boolean {
    return this.#unpaid !== null || this.#isDue(1)
  }

  /** A page was served. @returns whether to request larger pages from then on */
  served({ ms, isNew }: { readonly ms: number; readonly isNew: boolean }): boolean {
    this.#isBound = false
    this.#isRepeating = false
    this.#served = Math.max(this.#served ?? 0, this.size)
    this.#sizes.served(this.#query, this.size, this.#before)
    this.#before = null
    if (this.#unpaid !== null) return isNew
    if (!isNew || !this.#sizes.isQuick(ms)) return false
    this.#sizes.of(this.#query).good++
    return this.#isDue(0)
  }

  /**
   * The service could not serve a page of this size. All chains know it from now on. A first refusal at once may have
   * another cause, a deployment for example: the page is requested again.
   */
  failed(page: FailedPage): void {
    const { isRefusal, ms } = page
    if (isRefusal && ms < SLOW_MS && !this.#isRepeating && !this.#sizes.isDescending) {
      this.#isRepeating = true
      return
    }
    const good = this.#served !== null && this.#served < this.size ? this.#served : null
    const isGrowth = this.#before !== null
    this.#required = this.#sizes.failed(this.#query, this.size, { good, isGrowth }, page)
    // The size that failed now was too large as well.
    this.#served = null
    this.#before = null
    this.#unpaid = null
  }

  /** The searches left pay for a page of so many rows only. @returns false: a page cannot be that small */
  afford(rows: number): boolean {
    if (!this.canShrink || rows >= this.size || rows < MIN_PAGE_SIZE) return false
    this.#unpaid ??= this.#before ?? this.size
    this.#required = rows
    return true
  }

  /** Whether the size is small only because the searches left pay for no more. */
  get isUnpaid(): boolean {
    return this.#unpaid !== null
  }

  /** Continues with pages of the next size. */
  shrink(): void {
    this.size = this.next
    this.#required = null
    this.#before = null
  }

  /** The chain cannot drop the cursor of the page that was not served: it requests that page again, in the same size. */
  bind(): void {
    this.#isBound = true
    this.#required = null
    this.#unpaid = null
  }

  grow(): void {
    if (this.#unpaid !== null) {
      this.size = this.#unpaid
      this.#unpaid = null
      return
    }
    const pages = this.#sizes.of(this.#query)
    pages.good = 0
    this.#before = this.size
    this.size = Math.min(this.#sizes.most, Math.max(this.size * 2, pages.limit ?? 0))
    // After so many good pages it is worth another attempt.
    if (this.size >= pages.failed) pages.failed = Number.POSITIVE_INFINITY
  }

  /** Keeps the cursors of another size. */
  keep(size: number): void {
    this.size = size
    this.#before = null
  }

  /** Whether so many good pages more are enough to request larger ones. */
  #isDue(more: number): boolean {
    const { good, needed } = this.#sizes.of(this.#query)
    return this.size < this.#sizes.most && good + more >= needed
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
  return Math.min(MAX_GOOD_PAGES, Math.max(GOOD_PAGES, next))
}
