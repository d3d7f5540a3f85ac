import { hash } from 'node:crypto'
import {
  type ExtraField,
  type IdentityPolicy,
  type Int64Json,
  int64FromJson,
  type NamedQuery,
  type Order,
  type Resource,
  type SecretFacts,
  type SecretPolicy,
  type Window,
} from '../core/index.ts'
import type { ColumnSpec } from './schema.ts'

export type DecodeSettings = {
  readonly resource: Resource
  readonly columns: readonly ColumnSpec[]
  /** Fields of an item that become additional columns; `columns` includes these columns. */
  readonly extras: readonly ExtraField[]
  /** null: `columns` has no facts about secrets. */
  readonly secretFacts: SecretFacts | null
  readonly order: Order
  readonly secret: SecretPolicy
  readonly identity: IdentityPolicy
  /** Key of the `hmac` policies; null where no policy needs one. */
  readonly maskKey: Uint8Array | null
  /** Items of these people are dropped; null: nobody was forgotten. */
  readonly suppress: SuppressList | null
}

/** Forgotten people: HMACs of their identities in hex, and the key of these. */
export type SuppressList = { readonly key: Uint8Array; readonly digests: readonly string[] }

export type PageContext = {
  readonly query: NamedQuery
  /** Key of the partition that the chain has reached, for messages. */
  readonly partition: string
  /** Index of the page in its chain. */
  readonly page: number
  /** The range that was requested, both ends included; null: everything. */
  readonly requested: Window | null
  /** The part of `requested` whose rows this chain exports, its end excluded; null: everything. */
  readonly own: Window | null
  /** The value of the column `query_value`, already masked. */
  readonly queryValue: string
  /** The instant at which a chain begins that has lost its cursor: later in its order than the range; null: it has not. */
  readonly since: Int64Json | null
  /** Ids of the last pages of this chain; rows with these ids are skipped. */
  readonly recent: readonly PageIds[]
  /** Ids that a chain which has lost its cursor had from `since` on; items with these ids are dropped. */
  readonly known: readonly PageIds[]
  /** What is known of a feed; absent: it is none. */
  readonly feed?: FeedIds | undefined
}

/** Ids that were known of a feed before its present sequence of cursors; rows with these ids are skipped. */
export type FeedIds = {
  readonly earlier: readonly PageIds[]
  /** How many of them, from the first on, are its front as it was last read: see `DecodedPage.met`. */
  readonly front: number
}

/** Least and greatest `imported_at`, microseconds. */
export type Span = { readonly min: Int64Json; readonly max: Int64Json }

export function spanOf(a: Span | null, b: Span | null): Span | null {
  if (a === null || b === null) return a ?? b
  return {
    min: int64FromJson(b.min) < int64FromJson(a.min) ? b.min : a.min,
    max: int64FromJson(b.max) > int64FromJson(a.max) ? b.max : a.max,
  }
}

/** Where a chain is: the last instant in its order of any row so far, and by how many µs rows came late at most. */
export type Position = { readonly at: Int64Json; readonly late: number }

export type DecodedPage = {
  readonly next: string | null
  /** See {@link encodeRecordBatch}; null when there are no rows. */
  readonly recordBatch: Uint8Array | null
  readonly rows: number
  /** Items in the response. */
  readonly items: number
  /** Number of items that the chain already has; they are neither among the rows nor in quarantine. */
  readonly repeated: number
  /** `imported_at` of each item that was dropped for a forgotten person, as of a {@link RejectedItem}. */
  readonly forgotten: readonly (number | null)[]
  /** Whether an item is of the front of the feed as it was last read. */
  readonly met: boolean
  readonly ids: PageIds
  /** `imported_at` of every row, microseconds; null for reports, which have none. */
  readonly times: Times | null
  /** The times of its items, dropped ones too; null: it has none with a time but repeated ones. */
  readonly span: PageSpan | null
  readonly quarantined: readonly RejectedItem[]
  /** Occurrences of unknown fields; at most 50 names, the rest under `…`. */
  readonly unknownFields: Readonly<Record<string, number>>
}

/** In the order of the chain: the first instant, the last one, and by how many µs a row came late at most. */
export type PageSpan = { readonly first: Int64Json; readonly last: Int64Json; readonly late: number }

/** Microseconds; 64-bit integers if a double does not hold all of them exactly. */
export type Times = Float64Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>

/** An item that breaks the schema; its secrets are masked. */
export type RejectedItem = {
  /** Its `imported_at`, rounded to a double; null: missing or not readable. */
  readonly at: number | null
  /** Index in the response's `items`. */
  readonly index: number
  /** Its digits as a string if a number is not exact; it may be too large for the column. null: missing. */
  readonly id: Int64Json | null
  /** `found`: the kind and length of the value, never the value: `string of 12 characters`. */
  readonly issues: readonly { readonly path: string; readonly message: string; readonly found: string }[]
  readonly item: unknown
}

/** Later pages detect repeated rows by them. An id is two numbers: its low and high 32 bits, exact for every id. */
export type PageIds = {
  readonly rows: Int32Array<ArrayBuffer>
  /** Of items in quarantine. A valid row with the same id is not a repeated row. */
  readonly rejected: Int32Array<ArrayBuffer>
}

// The service may repeat a row some pages later. With a limit, the memory of a chain does not depend on its length.
const PAGES = 2
export const MAX_IDS = 20_000

export function countOfIds({ rows, rejected }: PageIds): number {
  return (rows.length + rejected.length) / 2
}

/** Lists of fewer ids are joined with those of the next page: decoding a page reads the bounds of each list. */
const SHORT_IDS = 1000

/** Keeps the last two pages that have ids, and earlier ones up to 20,000 ids. Ids of small pages are in one list. */
export function withPage(recent: readonly PageIds[], page: PageIds): readonly PageIds[] {
  if (countOfIds(page) === 0) return recent
  const last = recent.at(-1)
  if (last !== undefined && countOfIds(last) < SHORT_IDS) return [...recent.slice(0, -1), joined(last, page)]
  return withLast(recent, page, countOfIds)
}

export function withLast<T>(recent: readonly T[], page: T, countOf: (page: T) => number): readonly T[] {
  return [...recent.slice(recent.length - neededBefore(recent, countOf(page), countOf)), page]
}

/** The number of pages that are still needed before one with so many ids. */
export function neededBefore<T>(recent: readonly T[], ids: number, countOf: (page: T) => number): number {
  let needed = 0
  for (let count = ids; needed < recent.length && (needed < PAGES - 1 || count < MAX_IDS); needed++)
    count += countOf(recent[recent.length - 1 - needed]!)
  return needed
}

function joined(one: PageIds, other: PageIds): PageIds {
  return { rows: both(one.rows, other.rows), rejected: both(one.rejected, other.rejected) }
}

function both(one: Int32Array, other: Int32Array): Int32Array<ArrayBuffer> {
  const words = new Int32Array(one.length + other.length)
  words.set(one)
  words.set(other, one.length)
  return words
}

/** Usual cursors have some hundred characters. The journal keeps each, so a huge one would fill disk and memory. */
export const MAX_CURSOR_BYTES = 65_536

/** A digest takes some 45 bytes. Among 100,000 cursors the probability of a collision is one in four billion. */
export class SeenCursors {
  readonly #digests: Set<bigint>

  /** @param before the initial cursors; they are copied */
  constructor(before: SeenCursors | null = null) {
    this.#digests = new Set(before === null ? [] : before.#digests)
  }

  get size(): number {
    return this.#digests.size
  }

  has(cursor: string): boolean {
    return this.#digests.has(digestOf(cursor))
  }

  add(cursor: string): void {
    this.#digests.add(digestOf(cursor))
  }

  toBytes(): Uint8Array {
    return new Uint8Array(BigUint64Array.from(this.#digests).buffer)
  }

  static from(bytes: Uint8Array): SeenCursors {
    const seen = new SeenCursors()
    // `slice` of a Buffer does not copy.
    for (const digest of new BigUint64Array(new Uint8Array(bytes).buffer)) seen.#digests.add(digest)
    return seen
  }
}

function digestOf(cursor: string): bigint {
  return hash('sha256', cursor, 'buffer').readBigUInt64LE()
}
