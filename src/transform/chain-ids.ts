import type { PageIds } from '../core/index.ts'
import { copied, FIRST_ELEMENTS, MAX_KEPT_ELEMENTS } from './columns/lists.ts'
import { highWord, IdSet, lowWord } from './id-set.ts'

/**
 * Tells what a chain has had before: on its last pages, and on the page that is being read. A decoder keeps one, and
 * with it the memory.
 */
export class ChainIds {
  readonly #rows = new ChainSet()
  readonly #refused = new ChainSet()
  /** Items of this page that were there before. */
  repeated = 0

  /** Begins a page, after those given. */
  begin(recent: readonly PageIds[]): void {
    this.repeated = 0
    this.#rows.begin(recent.map(({ rows }) => rows))
    this.#refused.begin(recent.map(({ refused }) => refused))
  }

  /** Call it for every row that is to be kept. @returns false when it was there before */
  isNewRow(id: number | bigint): boolean {
    return this.#isNew(id, this.#rows)
  }

  /** Call it for every item that is to be rejected, if it has an id. @returns false when it was rejected before */
  isNewRefusal(id: number | bigint): boolean {
    return this.#isNew(id, this.#refused)
  }

  #isNew(id: number | bigint, known: ChainSet): boolean {
    if (known.add(lowWord(id), highWord(id))) return true
    this.repeated++
    return false
  }

  /** The ids of this page. */
  page(): PageIds {
    return { rows: this.#rows.page(), refused: this.#refused.page() }
  }
}

/**
 * The ids of some pages before, and of a page. The service mostly gives items their ids in the order in which it
 * imports them. An id above or below all others of its page, and all of the pages before, is new: as long as all are,
 * no set is needed.
 */
class ChainSet {
  readonly #set = new IdSet()
  readonly #added = new WordList()
  #recent: readonly Int32Array[] = []
  readonly #recentRange = new WordRange()
  readonly #range = new WordRange()
  /** Whether the set has all ids; otherwise it has none. */
  #isSet = false

  begin(recent: readonly Int32Array[]): void {
    if (this.#isSet) this.#set.clear()
    this.#isSet = false
    this.#added.length = 0
    this.#recent = recent
    this.#range.clear()
    this.#recentRange.clear()
    for (const words of recent) {
      for (let i = 0; i < words.length; i += 2) this.#recentRange.extend(words[i]!, words[i + 1]!)
    }
  }

  /** @returns false when it was there before */
  add(low: number, high: number): boolean {
    const isNew = this.#range.extend(low, high) && !this.#recentRange.has(low, high)
    if (!isNew && !this.#isSet) this.#fill()
    if (this.#isSet && !this.#set.add(low, high)) return false
    this.#added.add(low, high)
    return true
  }

  /** The ids of this page. */
  page(): Int32Array<ArrayBuffer> {
    return this.#added.copy()
  }

  #fill(): void {
    this.#isSet = true
    for (const words of [...this.#recent, this.#added.view()]) {
      for (let i = 0; i < words.length; i += 2) this.#set.add(words[i]!, words[i + 1]!)
    }
  }
}

/** From the least to the greatest of some 64-bit integers, each given as its low and its high 32 bits. */
class WordRange {
  #isEmpty = true
  #leastLow = 0
  #leastHigh = 0
  #greatestLow = 0
  #greatestHigh = 0

  clear(): void {
    this.#isEmpty = true
  }

  has(low: number, high: number): boolean {
    return !this.#isEmpty && !this.#isAbove(low, high) && !this.#isBelow(low, high)
  }

  /** @returns whether it was outside */
  extend(low: number, high: number): boolean {
    const isAbove = this.#isEmpty || this.#isAbove(low, high)
    const isBelow = this.#isEmpty || this.#isBelow(low, high)
    this.#isEmpty = false
    if (isAbove) {
      this.#greatestLow = low
      this.#greatestHigh = high
    }
    if (isBelow) {
      this.#leastLow = low
      this.#leastHigh = high
    }
    return isAbove || isBelow
  }

  #isAbove(low: number, high: number): boolean {
    if (high !== this.#greatestHigh) return high > this.#greatestHigh
    return low >>> 0 > this.#greatestLow >>> 0
  }

  #isBelow(low: number, high: number): boolean {
    if (high !== this.#leastHigh) return high < this.#leastHigh
    return low >>> 0 < this.#leastLow >>> 0
  }
}

/** Pairs of words, one after the other. */
class WordList {
  #words = new Int32Array(2 * FIRST_ELEMENTS)
  length = 0

  add(low: number, high: number): void {
    if (this.length === this.#words.length) this.#words = copied(this.#words, new Int32Array(2 * this.length))
    this.#words[this.length++] = low
    this.#words[this.length++] = high
  }

  view(): Int32Array {
    return this.#words.subarray(0, this.length)
  }

  copy(): Int32Array<ArrayBuffer> {
    const copy = this.#words.slice(0, this.length)
    if (this.#words.length > MAX_KEPT_ELEMENTS) this.#words = new Int32Array(2 * FIRST_ELEMENTS)
    return copy
  }
}
