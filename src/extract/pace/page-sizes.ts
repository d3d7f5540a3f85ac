import type { Measures } from '../../core/index.ts'

export const MIN_PAGE_SIZE = 10

/** A page that does not come is asked for twice at each size, then at half. A first page asks for double again. */
export class PageSizes {
  /** Rows of the last page, where a larger one did not come; null: the largest came, or was not tried. */
  limit: number | null
  /** Whether a cursor was refused with another size than that of the page that it came with, and not with that. */
  bindsSizes: boolean
  readonly #most: number

  /** @param most as configured @param measures of earlier runs */
  constructor(most: number, { limit, bindsSizes }: Pick<Measures, 'limit' | 'bindsSizes'>) {
    this.#most = most
    this.limit = limit
    this.bindsSizes = bindsSizes
  }

  /** Of the first page of a chain, of a feed, of a run. */
  get first(): number {
    return this.limit === null ? this.#most : Math.min(this.#most, 2 * this.limit)
  }

  /** The size after one in which a page did not come; another chain may have been served a smaller one meanwhile. */
  after(size: number): number {
    return Math.max(MIN_PAGE_SIZE, Math.min(size >> 1, this.first))
  }

  /** A page came. @param asked the size in which it was asked for first */
  served(size: number, asked: number): void {
    if (size < asked) this.limit = size
    else if (this.limit !== null && size > this.limit) this.limit = size < this.#most ? size : null
  }
}
