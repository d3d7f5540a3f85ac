import type { Int64, Window, WindowLength } from '../../../core/index.ts'
import { windowAt } from '../../../pipeline/index.ts'

/** A window of a feed exists once a row belongs to it. The index 0 is the feed itself, which has no rows. */
export class FeedWindows {
  readonly #every: WindowLength
  readonly #windows: (Window | null)[] = [null]
  readonly #indexes = new Map<number, number>()

  constructor(every: WindowLength) {
    this.#every = every
  }

  at(index: number): Window | null {
    return this.#windows[index]!
  }

  indexOfInstant(at: Int64): number {
    const window = windowAt(at, this.#every)
    const known = this.#indexes.get(window.from)
    if (known !== undefined) return known
    this.#indexes.set(window.from, this.#windows.length)
    return this.#windows.push(window) - 1
  }
}
