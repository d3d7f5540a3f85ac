import type { Int64Json } from './int64.ts'
import type { PageIds } from './page-ids.ts'
import type { Partition } from './partition.ts'
import type { IdentityPolicy, InvalidPolicy, Resource, SecretPolicy } from './pipeline.ts'
import type { ColumnSpec } from './schema.ts'

/** What every page of a run is decoded with. Plain data and bytes only: it is sent to a worker thread once. */
export type DecodePlan = {
  readonly resource: Resource
  readonly columns: readonly ColumnSpec[]
  readonly order: 'asc' | 'desc'
  readonly secret: SecretPolicy
  readonly identity: IdentityPolicy
  /** Key of the `hmac` policies; null where no policy needs one. */
  readonly maskKey: Uint8Array | null
  readonly onInvalid: InvalidPolicy
}

/** What the decoding of one page depends on besides its bytes. */
export type PageContext = {
  readonly partition: Partition
  /** Pages of this partition answered before this one. */
  readonly page: number
  /** The `query_value` column: masked already where the query is a secret. */
  readonly queryValue: string
  /** Set when a refused cursor made the chain start again: rows at or before this position are exported already. */
  readonly since: Position | null
  /** What the last pages of this chain brought: of that, nothing is taken again. */
  readonly recent: readonly PageIds[]
}

/** Least and greatest `imported_at`, microseconds. */
export type Span = { readonly min: Int64Json; readonly max: Int64Json }

/** How far a sorted chain has come: the last `imported_at`, and the ids that were seen exactly there. */
export type Position = { readonly at: Int64Json; readonly ids: readonly Int64Json[] }

/** One answered page, flattened and masked. */
export type DecodedPage = {
  readonly next: string | null
  /**
   * The rows in columnar form ({@link encodeFrame}); null when there are none. Whoever is done with them says so: the
   * memory may be used again.
   */
  readonly frame: Uint8Array | null
  /** Rows in the frame. */
  readonly rows: number
  /** Items in the answer. */
  readonly items: number
  /** Items that the chain had before; they are neither among the rows nor in quarantine. */
  readonly repeated: number
  /** For the pages that follow. */
  readonly ids: PageIds
  /** Least and greatest `imported_at` of the rows; null when there are none (or no such column: reports). */
  readonly importedAt: Span | null
  /** Where a restarted chain would go on; null when the page is not sorted by `imported_at`, or has no item. */
  readonly span: PageSpan | null
  readonly quarantined: readonly QuarantinedItem[]
  /** Occurrences of fields that nobody knows; at most 50 names, the rest under `…`. */
  readonly unknownFields: Readonly<Record<string, number>>
}

export type PageSpan = {
  readonly first: Int64Json
  readonly last: Int64Json
  /** Ids of the items at `last`; null when there are more than 1,000. */
  readonly lastIds: readonly Int64Json[] | null
}

/** One line of `_quarantine/*.jsonl`; the item's secrets are masked. */
export type QuarantinedItem = {
  readonly partition: string
  readonly page: number
  /** Position in the answer's `items`. */
  readonly index: number
  /** Digits as text where a number would lose some, also of one that no column holds; null: none was sent. */
  readonly id: Int64Json | null
  readonly issues: readonly { readonly path: string; readonly message: string }[]
  readonly item: unknown
}

/** Turns one answer's bytes into a page. @throws ExportError `transient` when they are no such answer at all */
export type DecodePage = (body: Uint8Array, context: PageContext) => Promise<DecodedPage>
