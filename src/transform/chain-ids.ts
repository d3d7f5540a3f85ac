import type { PageContext, PageIds } from '../rows/index.ts'
import { copied, FIRST_ELEMENTS, MAX_KEPT_ELEMENTS } from './columns/lists.ts'
import { highWord, IdSet, lowWord } from './id-set.ts'

/**
 * Detects items that a chain has had before: on its last pages or earlier on the current page. A decoder reuses one for
 * all its pages, so that its memory is allocated once.
 */
export class ChainIds {
  readonly #rows = new ChainSet()
  readonly #rejected = new ChainSet()
  readonly #known = { rows: new KnownIds(), rejected: new KnownIds() }
  #front: readonly PageIds[] = []
  /** Number of items of this page that are repeated. */
  repeated = 0
  /** Whether one of them is of the front of the feed as it was last read. */
  met = false

  /** Begins a page. */
  begin({ feed, known, recent: last }: Pick<PageContext, 'feed' | 'known' | 'recent'>): void {
    this.repeated = 0
    this.met = false
    const earlier = feed?.earlier ?? []
    this.#front = earlier.slice(0, feed?.front ?? 0)
    const recent = [...earlier, ...last]
    this.#rows.begin(recent.map(({ rows }) => rows))
    this.#rejected.begin(recent.map(({ rejected }) => rejected))
    this.#known.rows.begin(known.map(({ rows }) => rows))
    this.#known.rejected.begin(known.map(({ rejected }) => rejected))
  }

  /** Whether the chain had this row before it lost its cursor. */
  isKnownRow(id: number | bigint): boolean {
    return this.#known.rows.has(id)
  }

  /** Call it for every row that is to be kept. @returns false when it is repeated */
  isNewRow(id: number | bigint): boolean {
    return this.#isNew(id, this.#rows, 'rows')
  }

  /** Call it for every item with an id that is to be rejected. @returns false when it was rejected before */
  isNewRejection(id: number | bigint): boolean {
    if (this.#known.rejected.has(id)) return false
    return this.#isNew(id, this.#rejected, 'rejected')
  }

  #isNew(id: number | bigint, known: ChainSet, kind: keyof PageIds): boolean {
    const [low, high] = [lowWord(id), highWord(id)]
    if (known.add(low, high)) return true
    this.repeated++
    this.met ||= this.#front.some((page) => holds(page[kind], low, high))
    return false
  }

  /** The ids of this page. */
  page(): PageIds {
    return { rows: this.#rows.page(), rejected: this.#rejected.page() }
  }
}

/** The ids that a chain had before it lost its cursor. */
class KnownIds {
  readonly #set = new IdSet()
  #ids: readonly Int32Array[] = []

  begin(ids: readonly Int32Array[]): void {
    if (ids.length === 0 && this.#ids.length === 0) return
    this.#ids = ids
    this.#set.clear()
    for (const words of ids) for (let i = 0; i < words.length; i += 2) this.#set.add(words[i]!, words[i + 1]!)
  }

  has(id: number | bigint): boolean {
    return this.#ids.length > 0 && this.#set.has(lowWord(id), highWord(id))
  }
}

function holds(words: Int32Array, low: number, high: number): boolean {
  for (let i = 0; i < words.length; i += 2) if (words[i] === low && words[i + 1] === high) return true
  return false
}

/**
 * The ids of a page and of the pages before it. The service mostly assigns ids in the order of import. An id is new if
 * it is above or below all others of its page and outside the range of the pages before. The set is filled only when an
 * id is not new by this rule.
 */
class ChainSet {
  readonly #set = new IdSet()
  readonly #added = new WordList()
  #recent: readonly Int32Array[] = []
  readonly #recentRange = new WordRange()
  readonly #range = new WordRange()
  /** Whether the set has all ids; if not, it is empty. */
  #isSet = false

  begin(recent: readonly Int32Array[]): void {
    if (this.#isSet) this.#set.clear()
    this.#isSet = false
    this.#added.length = 0
    this.#recent = recent
    this.#range.clear()
    this.#recentRange.clear()
    for (const words of recent) {
      const ends = endsOf(words)
      for (let i = 0; i < ends.length; i += 2) this.#recentRange.extend(ends[i]!, ends[i + 1]!)
    }
  }

  /** @returns false when the id is repeated */
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

/** Least and greatest id of earlier pages: of small pages there are hundreds, for each of their successors. */
const ENDS = new WeakMap<Int32Array, readonly number[]>()

function endsOf(words: Int32Array): readonly number[] {
  const known = ENDS.get(words)
  if (known !== undefined) return known
  const range = new WordRange()
  for (let i = 0; i < words.length; i += 2) range.extend(words[i]!, words[i + 1]!)
  const ends = range.ends()
  ENDS.set(words, ends)
  return ends
}

/** The range of some 64-bit integers, each given as its low and its high 32 bits. */
class WordRange {
  #isEmpty = true
  #leastLow = 0
  #leastHigh = 0
  #greatestLow = 0
  #greatestHigh = 0

  clear(): void {
    this.#isEmpty = true
  }

  /** The least and the greatest integer; none if there are none. */
  ends(): readonly number[] {
    return this.#isEmpty ? [] : [this.#leastLow, this.#leastHigh, this.#greatestLow, this.#greatestHigh]
  }

  has(low: number, high: number): boolean {
    return !this.#isEmpty && !this.#isAbove(low, high) && !this.#isBelow(low, high)
  }

  /** @returns whether the integer was outside the range */
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

/** A list of 64-bit integers as pairs of words: low, high. */
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
