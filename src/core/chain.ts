import type { Int64 } from './int64.ts'
import { type Window, windowRange } from './partition.ts'
import type { Order } from './pipeline.ts'

/**
 * Adjacent windows of one query, in the order in which a chain goes through them. One without bounds stands for the one
 * partition of a query that has no windows.
 */
export class WindowRun {
  readonly order: Order
  /** Instants in ascending order: each window lies between two of them; null: no windows. */
  readonly bounds: Float64Array | null

  constructor(order: Order, bounds: Float64Array | null) {
    this.order = order
    this.bounds = bounds
  }

  /** @param windows in ascending order, each ending where the next begins; null alone: no windows */
  static of(order: Order, windows: readonly (Window | null)[]): WindowRun {
    const [first] = windows
    if (first === null || first === undefined) return new WindowRun(order, null)
    return new WindowRun(order, Float64Array.from([first.from, ...windows.map((window) => window!.until)]))
  }

  /** How many windows. */
  get count(): number {
    return this.bounds === null ? 1 : this.bounds.length - 1
  }

  /** From the beginning of the first to the end of the last. */
  get range(): Window | null {
    if (this.bounds === null || this.count === 0) return null
    return { from: this.bounds[0]!, until: this.bounds.at(-1)! }
  }

  /** The window at this index in the order of the chain. */
  at(index: number): Window | null {
    if (this.bounds === null) return null
    const byTime = this.order === 'asc' ? index : this.count - 1 - index
    return { from: this.bounds[byTime]!, until: this.bounds[byTime + 1]! }
  }

  /** Of its windows, in order: see {@link windowRange}. */
  get names(): readonly string[] {
    return Array.from({ length: this.count }, (_, index) => windowRange(this.at(index)))
  }

  /** The index of the window that holds an instant, which must be within the range. */
  indexOfInstant(at: Int64): number {
    const { bounds } = this
    if (bounds === null) return 0
    let low = 0
    let high = bounds.length - 1
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (bounds[middle]! <= at) low = middle
      else high = middle
    }
    return this.order === 'asc' ? low : this.count - 1 - low
  }

  /** How many windows nothing more can come for once rows that are in order have come to this instant. */
  watermarkAt(last: Int64): number {
    const { bounds, count } = this
    if (bounds === null) return 0
    if (this.order === 'asc') {
      if (last >= bounds[count]!) return count
      return last < bounds[0]! ? 0 : this.indexOfInstant(last)
    }
    // More rows may come with the very time at which a window begins.
    if (last < bounds[0]!) return count
    return last >= bounds[count]! ? 0 : this.indexOfInstant(last)
  }

  /** The windows of indices `[from, to)`. */
  part(from: number, to: number): WindowRun {
    if (this.bounds === null) return this
    const [first, last] = this.order === 'asc' ? [from, to] : [this.count - to, this.count - from]
    return new WindowRun(this.order, this.bounds.subarray(first, last + 1))
  }
}
