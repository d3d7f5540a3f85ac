import { ExportError, type Measures } from '../../core/index.ts'

/** The least size to which pages shrink. */
const MIN_PAGE_SIZE = 10
/** Pages in time before a larger size is requested. */
const PAGES_IN_TIME = 20

/** No response of this size came in time: the page is to be requested in another. */
export class PageTooLarge extends ExportError {}

/** The new size of pages; null: the greatest. */
export type SizeChange = { readonly size: number | null }

/** How a page is requested in another size. */
export type Sizing = {
  /** Whether another chain has learned that pages of this size do not come in time. */
  isTooLarge(): boolean
  /** This page did not come in time. @returns whether it is to be requested in another size */
  timedOut(why: string): boolean
}

/**
 * The number of rows to request with each page, one for all chains of a data set. It is halved when a page of this size
 * does not come in time, and doubled when a chain begins after twenty pages that did. If the least size fails as well,
 * the cause is an outage: the size is again what it was, until a page comes.
 */
export class PageSizes {
  readonly #most: number
  readonly #onChange: (change: SizeChange, from: number, to: number, why: string) => void
  #size: number
  /** Pages that came in time since the size last changed. */
  #pages: number
  /** The last size that was served before it was halved; null: it was not halved since. */
  #before: number | null = null
  #isOutage = false

  /**
   * @param most the upper bound, as configured
   * @param measures measurements of earlier runs
   * @param onChange called when the size changes
   */
  constructor(
    most: number,
    { limit, times }: Pick<Measures, 'limit' | 'times'>,
    onChange: (change: SizeChange, from: number, to: number, why: string) => void,
  ) {
    this.#most = most
    this.#onChange = onChange
    this.#size = Math.min(most, limit ?? most)
    this.#pages = times.length
  }

  get size(): number {
    return this.#size
  }

  /** @returns the size with which a chain begins */
  begin(): number {
    if (this.#size < this.#most && this.#pages >= PAGES_IN_TIME)
      this.#change(Math.min(this.#most, 2 * this.#size), `${PAGES_IN_TIME} pages came in time`)
    return this.#size
  }

  served(size: number): void {
    this.#isOutage = false
    this.#before = null
    if (size === this.#size) this.#pages++
  }

  /** A page did not come in time. @returns whether another size than this one is to be requested */
  timedOut(size: number, why: string): boolean {
    this.#pages = 0
    if (size === this.#size && !this.#isOutage) {
      const before = this.#before ?? size
      this.#isOutage = size <= MIN_PAGE_SIZE
      this.#change(this.#isOutage ? before : Math.max(MIN_PAGE_SIZE, size >> 1), why)
      this.#before = before
    }
    return size !== this.#size
  }

  #change(size: number, why: string): void {
    if (size === this.#size) return
    const from = this.#size
    this.#size = size
    this.#pages = 0
    this.#onChange({ size: size === this.#most ? null : size }, from, size, why)
  }
}
