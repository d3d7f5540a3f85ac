import { type Int64Json, int64FromJson } from './int64.ts'
import type { Window } from './partition.ts'
import type { IdentityPolicy, NamedQuery, Order, Resource, SecretPolicy } from './pipeline.ts'
import type { ColumnSpec, ExtraField } from './schema.ts'

/** What every page of a run is decoded with. Plain data and bytes only: it is sent to a worker thread once. */
export type DecodePlan = {
  readonly resource: Resource
  readonly columns: readonly ColumnSpec[]
  /** Where the values of additional columns stand in an item; each is among `columns`. */
  readonly extras: readonly ExtraField[]
  readonly order: Order
  readonly secret: SecretPolicy
  readonly identity: IdentityPolicy
  /** Key of the `hmac` policies; null where no policy needs one. */
  readonly maskKey: Uint8Array | null
}

/** What the decoding of one page depends on besides its bytes. */
export type PageContext = {
  readonly query: NamedQuery
  /** The partition that the chain stands in, by its key: for messages. */
  readonly partition: string
  /** Number of pages of this chain before this one. */
  readonly page: number
  /** The range that was requested, both ends included; null: everything. */
  readonly asked: Window | null
  /** What of that is this chain's to take, its end excluded; null: everything. */
  readonly own: Window | null
  /** The `query_value` column: masked already where the query is a secret. */
  readonly queryValue: string
  /** Set when a refused cursor made the chain start again: rows at or before this position are exported already. */
  readonly since: Restart | null
  /** What the last pages of this chain brought: of that, nothing is taken again. */
  readonly recent: readonly PageIds[]
}

/** Least and greatest `imported_at`, microseconds. */
export type Span = { readonly min: Int64Json; readonly max: Int64Json }

/** What covers both. */
export function spanOf(a: Span | null, b: Span | null): Span | null {
  if (a === null || b === null) return a ?? b
  return {
    min: int64FromJson(b.min) < int64FromJson(a.min) ? b.min : a.min,
    max: int64FromJson(b.max) > int64FromJson(a.max) ? b.max : a.max,
  }
}

/**
 * How far a sorted chain has come: the last `imported_at`, and the ids that were seen exactly there; null: more than
 * are worth keeping, so that it can't start again there.
 */
export type Position = { readonly at: Int64Json; readonly ids: readonly Int64Json[] | null }

/** Where a chain starts again. */
export type Restart = { readonly at: Int64Json; readonly ids: readonly Int64Json[] }

/** One page, flattened and masked. */
export type DecodedPage = {
  readonly next: string | null
  /**
   * The rows in columnar form ({@link encodeRecordBatch}); null when there are none. Whoever is done with them says so: the
   * memory may be used again.
   */
  readonly recordBatch: Uint8Array | null
  /** Rows in the record batch. */
  readonly rows: number
  /** Items in the response. */
  readonly items: number
  /** Items that the chain had before; they are neither among the rows nor in quarantine. */
  readonly repeated: number
  /** For the pages that follow. */
  readonly ids: PageIds
  /** `imported_at` of every row, microseconds; null when rows have no such time: reports. */
  readonly times: Times | null
  /** Where a restarted chain would go on; null when the page is not sorted by `imported_at`, or has no item. */
  readonly span: PageSpan | null
  readonly quarantined: readonly RefusedItem[]
  /** Occurrences of fields that nobody knows; at most 50 names, the rest under `…`. */
  readonly unknownFields: Readonly<Record<string, number>>
}

export type PageSpan = {
  readonly first: Int64Json
  readonly last: Int64Json
  /** Ids of the items at `last`; null when there are more than 1,000. */
  readonly lastIds: readonly Int64Json[] | null
}

/** Integers of microseconds; 64-bit integers where a double does not hold them all. */
export type Times = Float64Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>

/** An item that broke the schema; its secrets are masked. */
export type RefusedItem = {
  /** Its `imported_at` as near as a double comes; null where it has none that can be read. */
  readonly at: number | null
  /** Position in the response's `items`. */
  readonly index: number
  /** Digits as text where a number would lose some, also of one that no column holds; null: none was sent. */
  readonly id: Int64Json | null
  readonly issues: readonly { readonly path: string; readonly message: string }[]
  readonly item: unknown
}

/** Turns one response's bytes into a page. @throws ExportError `transient` when they are no such response at all */
export type DecodePage = (body: Uint8Array, context: PageContext) => Promise<DecodedPage>

/**
 * The ids that one page of a chain brought, so that the pages after it can tell what was there before. An id is two
 * numbers, its low and its high 32 bits: exact for every id, and cheap to compare and to keep.
 */
export type PageIds = {
  readonly rows: Int32Array<ArrayBuffer>
  /** Of items that went into quarantine: a good row of the same id is still news. */
  readonly refused: Int32Array<ArrayBuffer>
}

export const NO_IDS: PageIds = { rows: new Int32Array(0), refused: new Int32Array(0) }

// The service may repeat a row from one page to the next, and at some distance. What is older is forgotten, so that
// the memory of a chain does not depend on its length.
const PAGES = 2
const IDS = 20_000

/**
 * What is known of a chain after one more page: at least the last two pages that brought anything, and of small pages
 * as many as make 20,000 ids.
 */
export function withPage(recent: readonly PageIds[], page: PageIds): readonly PageIds[] {
  const words = ({ rows, refused }: PageIds): number => rows.length + refused.length
  if (words(page) === 0) return recent
  const known = [...recent, page]
  let count = known.reduce((sum, ids) => sum + words(ids) / 2, 0)
  while (known.length > PAGES && count - words(known[0]!) / 2 >= IDS) count -= words(known.shift()!) / 2
  return known
}
