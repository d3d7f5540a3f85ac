import type { Int64Json, NamedQuery, Order, Resource, Window } from '../core/index.ts'
import type { FeedIds, PageIds, SeenCursors } from '../rows/index.ts'
import type { PageSizes } from './pace/page-sizes.ts'

/** What the pages of a chain are requested with. */
export type ChainRequest = {
  readonly resource: Resource
  readonly query: NamedQuery
  /** The requested range, both ends included, the same on every page; null: everything. */
  readonly requested: Window | null
  /** As in `PageContext`. */
  readonly since: Int64Json | null
  readonly include: readonly string[]
  readonly order: Order
  /** The value of a secret query, the same for all of its chains in a run; null for other queries. */
  readonly secret: string | null
}

/** A chain, from its beginning or from the resume position of a checkpoint. */
export type Chain = ChainRequest & {
  /** The part of the requested range whose rows the chain keeps, the end excluded. It may shrink during the chain. */
  readonly own: () => Window | null
  /** The key of its current partition, for messages. */
  readonly partition: () => string
  /** Whether the chain has all of its rows although more pages follow. Called after each commit. */
  readonly isOver: () => boolean
  /** The cursor to resume with; null: from the beginning. */
  readonly cursor: string | null
  /** Rows of the page that the cursor came with; null: there is no cursor. */
  readonly cursorSize: number | null
  readonly pageSize: number
  /** How pages that do not come are requested in other sizes; null: they are not. */
  readonly sizes: PageSizes | null
  /** Whether a page that no size of its cursor serves may be requested without it. */
  readonly mayRestart: boolean
  /** Whether its first page is asked for in one size alone. */
  readonly isTrial: boolean
  /** Pages received before. */
  readonly page: number
  /** Requests of this run that no committed page counts yet, from before a restart. */
  readonly requestsBefore: number
  readonly queryValue: string
  /** The ids of the last pages before; of a feed: those of this sequence. */
  readonly recent: readonly PageIds[]
  /** As in `PageContext`. */
  readonly known: readonly PageIds[]
  /** As in `PageContext`. */
  readonly feed?: FeedIds | undefined
  /** Every cursor of this chain. Each is added before its page is yielded. */
  readonly seen: SeenCursors
  readonly onRequest: () => void
  /** A crash loses each response that is charged and not committed: never more than a run may have in flight. */
  readonly mayPrefetch: () => boolean
}
