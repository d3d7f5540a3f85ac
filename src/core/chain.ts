import { hash } from 'node:crypto'
import { type Window, windowRange } from './partition.ts'
import type { Order } from './pipeline.ts'
import type { Int64 } from './rows/int64.ts'

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

/**
 * Cursors are some hundred characters. Each is a line of the checkpoint, read again by every later run: an endless one
 * is not to fill disk and memory.
 */
export const MAX_CURSOR_BYTES = 65_536

/**
 * The cursors that a chain has met, as 64 bits of digest each: enough to tell apart the pages of one chain (one
 * chance in four billion of a false alarm among 100,000), and so small, 1 MB for these, that chains may be of any
 * length and cursors as well.
 */
export class SeenCursors {
  /** Open addressing: a slot is two words; both zero: free. */
  #table: Uint32Array
  #size: number

  /** @param before those met before; they are copied */
  constructor(before: SeenCursors | null = null) {
    this.#table = before === null ? new Uint32Array(2 * FEWEST_SLOTS) : before.#table.slice()
    this.#size = before === null ? 0 : before.#size
  }

  get size(): number {
    return this.#size
  }

  has(cursor: string): boolean {
    const [first, second] = digestOf(cursor)
    return this.#table[indexOfDigest(this.#table, first, second)] !== 0
  }

  add(cursor: string): void {
    const [first, second] = digestOf(cursor)
    this.#add(first, second)
  }

  #add(first: number, second: number): void {
    const slot = indexOfDigest(this.#table, first, second)
    if (this.#table[slot] !== 0) return
    this.#table[slot] = first
    this.#table[slot + 1] = second
    this.#size++
    if (16 * this.#size > FULLEST_16TH * this.#table.length) this.#grow()
  }

  /** All of them, as bytes; see {@link SeenCursors.from}. */
  toBytes(): Uint8Array {
    const words: number[] = []
    for (let at = 0; at < this.#table.length; at += 2) {
      if (this.#table[at] !== 0) words.push(this.#table[at]!, this.#table[at + 1]!)
    }
    return new Uint8Array(new Uint32Array(words).buffer)
  }

  static from(bytes: Uint8Array): SeenCursors {
    // What a Buffer's own `slice` gives is no copy.
    const words = new Uint32Array(new Uint8Array(bytes).buffer)
    const seen = new SeenCursors()
    for (let at = 0; at < words.length; at += 2) seen.#add(words[at]!, words[at + 1]!)
    return seen
  }

  #grow(): void {
    const before = this.#table
    this.#table = new Uint32Array(2 * before.length)
    for (let at = 0; at < before.length; at += 2) {
      const [first, second] = [before[at]!, before[at + 1]!]
      if (first === 0) continue
      const slot = indexOfDigest(this.#table, first, second)
      this.#table[slot] = first
      this.#table[slot + 1] = second
    }
  }
}

const FEWEST_SLOTS = 8
// Of each two words; seven of eight slots may be taken.
const FULLEST_16TH = 7

/** Where the digest stands, or the free slot where it belongs. */
function indexOfDigest(table: Uint32Array, first: number, second: number): number {
  const mask = table.length - 1
  let slot = (2 * first) & mask
  while (table[slot] !== 0 && (table[slot] !== first || table[slot + 1] !== second)) {
    slot = (slot + 2) & mask
  }
  return slot
}

/** The first word is never 0, which stands for a free slot. */
function digestOf(cursor: string): readonly [first: number, second: number] {
  const digest = hash('sha256', cursor, 'buffer')
  return [digest.readUInt32LE(0) || 1, digest.readUInt32LE(4)]
}
