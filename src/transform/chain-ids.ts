import type { PageContext, PageIds } from '../rows/index.ts'
import { doubled, FIRST_ELEMENTS, MAX_KEPT_ELEMENTS } from './columns/lists.ts'

/** Detects items that a chain has had before. A decoder reuses one for all its pages: its memory is allocated once. */
export class ChainIds {
  readonly #rows = new ChainSet()
  readonly #rejected = new ChainSet()
  /** Ids that the chain had before it lost its cursor. */
  #knownRows: ReadonlySet<Id> = new Set()
  #knownRejected: ReadonlySet<Id> = new Set()
  #front: readonly PageIds[] = []
  repeated = 0
  /** Whether one of them is of the front of the feed as it was last read. */
  met = false

  begin({ feed, known, recent: last }: Pick<PageContext, 'feed' | 'known' | 'recent'>): void {
    this.repeated = 0
    this.met = false
    const earlier = feed?.earlier ?? []
    this.#front = earlier.slice(0, feed?.front ?? 0)
    const recent = [...earlier, ...last]
    this.#rows.begin(recent.map(({ rows }) => rows))
    this.#rejected.begin(recent.map(({ rejected }) => rejected))
    this.#knownRows = new Set(known.flatMap(({ rows }) => idsOf(rows)))
    this.#knownRejected = new Set(known.flatMap(({ rejected }) => idsOf(rejected)))
  }

  /** Whether the chain had this row before it lost its cursor. */
  isKnownRow(id: Id): boolean {
    return this.#knownRows.has(id)
  }

  /** Call it for every row that is to be kept. @returns false when it is repeated */
  isNewRow(id: Id): boolean {
    return this.#isNew(id, this.#rows, 'rows')
  }

  /** Call it for every item with an id that is to be rejected. @returns false when it was rejected before */
  isNewRejection(id: Id): boolean {
    if (this.#knownRejected.has(id)) return false
    return this.#isNew(id, this.#rejected, 'rejected')
  }

  #isNew(id: Id, known: ChainSet, kind: keyof PageIds): boolean {
    if (known.add(id)) return true
    this.repeated++
    this.met ||= this.#front.some((page) => idsOf(page[kind]).includes(id))
    return false
  }

  page(): PageIds {
    return { rows: this.#rows.page(), rejected: this.#rejected.page() }
  }
}

type Id = number | bigint

/** The service mostly assigns ids in order. The set is made only when an id lies within the range of earlier ones. */
class ChainSet {
  /** All ids; null: not needed yet. */
  #set: Set<Id> | null = null
  readonly #added = new WordList()
  #recent: readonly Int32Array[] = []
  #recentRange: Range | null = null
  #range: Range | null = null

  begin(recent: readonly Int32Array[]): void {
    this.#set = null
    this.#added.length = 0
    this.#recent = recent
    this.#range = null
    this.#recentRange = recent.map(rangeOf).reduce(around, null)
  }

  /** @returns false when the id is repeated */
  add(id: Id): boolean {
    const isOutside = !isWithin(this.#range, id)
    if (isOutside) this.#range = widened(this.#range, id)
    if (this.#set === null && !(isOutside && !isWithin(this.#recentRange, id)))
      this.#set = new Set([...this.#recent.flatMap(idsOf), ...idsOf(this.#added.view())])
    if (this.#set !== null) {
      if (this.#set.has(id)) return false
      this.#set.add(id)
    }
    this.#added.add(id)
    return true
  }

  page(): Int32Array<ArrayBuffer> {
    const words = this.#added.copy()
    RANGES.set(words, this.#range)
    return words
  }
}

/** Ids as pairs of words: their low and high 32 bits. */
class WordList {
  #words = new Int32Array(2 * FIRST_ELEMENTS)
  length = 0

  add(id: Id): void {
    if (this.length === this.#words.length) this.#words = doubled(this.#words)
    const isDouble = typeof id === 'number'
    this.#words[this.length++] = isDouble ? id | 0 : Number(BigInt.asIntN(32, id))
    this.#words[this.length++] = isDouble ? Math.floor(id / TWO_32) | 0 : Number(BigInt.asIntN(32, id >> 32n))
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

const TWO_32 = 2 ** 32

/** Ids from their low and high 32 bits; bigints where a double is not exact. */
function idsOf(words: Int32Array): Id[] {
  return Array.from({ length: words.length / 2 }, (_, i) => {
    const [low, high] = [words[2 * i]! >>> 0, words[2 * i + 1]!]
    const id = high * TWO_32 + low
    return Number.isSafeInteger(id) ? id : (BigInt(high) << 32n) | BigInt(low)
  })
}

/** null: no ids. */
type Range = { least: Id; greatest: Id }

function isWithin(range: Range | null, id: Id): boolean {
  return range !== null && id >= range.least && id <= range.greatest
}

/** The same range, made to hold an id outside it: an object for each id would be garbage. */
function widened(range: Range | null, id: Id): Range {
  if (range === null) return { least: id, greatest: id }
  if (id < range.least) range.least = id
  else range.greatest = id
  return range
}

function around(one: Range | null, other: Range | null): Range | null {
  if (one === null || other === null) return one ?? other
  return {
    least: other.least < one.least ? other.least : one.least,
    greatest: other.greatest > one.greatest ? other.greatest : one.greatest,
  }
}

/** Of earlier pages: of small pages there are hundreds, for each of their successors. */
const RANGES = new WeakMap<Int32Array, Range | null>()

function rangeOf(words: Int32Array): Range | null {
  const known = RANGES.get(words)
  if (known !== undefined) return known
  const range = idsOf(words).reduce<Range | null>(
    (range, id) => (isWithin(range, id) ? range : widened(range, id)),
    null,
  )
  RANGES.set(words, range)
  return range
}
