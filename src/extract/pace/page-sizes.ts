import type { Measures } from '../../core/index.ts'

/** The least size to which pages shrink. */
export const MIN_PAGE_SIZE = 10

/**
 * The number of rows to request with a page. A page that does not come is asked for twice at each size, then at half of
 * it; the pages after it have the size in which it came. The first page of a chain, of a feed, of a run asks for double
 * what was last served.
 */
export class PageSizes {
  readonly #most: number
  #limit: number | null
  #bindsSizes: boolean

  /**
   * @param most the upper bound, as configured
   * @param measures measurements of earlier runs
   */
  constructor(most: number, { limit, bindsSizes }: Pick<Measures, 'limit' | 'bindsSizes'>) {
    this.#most = most
    this.#limit = limit
    this.#bindsSizes = bindsSizes
  }

  /** As of `Measures`. */
  get limit(): number | null {
    return this.#limit
  }

  /** As of `Measures`. */
  get bindsSizes(): boolean {
    return this.#bindsSizes
  }

  /** Of the first page of a chain, of a feed, of a run. */
  get first(): number {
    return this.#limit === null ? this.#most : Math.min(this.#most, 2 * this.#limit)
  }

  /** The size after one in which a page did not come; another chain may have been served a smaller one meanwhile. */
  after(size: number): number {
    return Math.max(MIN_PAGE_SIZE, Math.min(size >> 1, this.first))
  }

  /** A page came. @param asked the size in which it was asked for first */
  served(size: number, asked: number): void {
    if (size < asked) this.#limit = size
    else if (this.#limit !== null && size > this.#limit) this.#limit = size < this.#most ? size : null
  }

  /** A cursor was refused with another size than that of the page that it came with, and not with that. */
  bind(): void {
    this.#bindsSizes = true
  }
}
