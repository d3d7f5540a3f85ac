import type { NamedQuery, Order, Resource, Window } from '../core/index.ts'
import type { FeedIds, PageIds, Restart, SeenCursors } from '../rows/index.ts'
import type { Sizing } from './pace/page-sizes.ts'

/** What the pages of a chain are requested with. */
export type ChainRequest = {
  readonly resource: Resource
  readonly query: NamedQuery
  /** The requested range, both ends included, the same on every page; null: everything. */
  readonly requested: Window | null
  /** Set when the chain restarts after rows that are already exported. */
  readonly since: Restart | null
  readonly include: readonly string[]
  readonly order: Order
  /** Rows to request for each of its pages: the same for all cursors of a sequence. */
  readonly pageSize: number
  /** How a page that does not come in time is requested in another size; null: it is not. */
  readonly sizing: Sizing | null
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
  /** Pages received before. */
  readonly page: number
  /** Requests of this run that no committed page counts yet, from before a restart or a change of the page size. */
  readonly requestsBefore: number
  /** The `query_value` column. */
  readonly queryValue: string
  /** The ids of the last pages before; of a feed: those of this sequence. */
  readonly recent: readonly PageIds[]
  /** As in `PageContext`. */
  readonly feed?: FeedIds | undefined
  /** Every cursor of this chain. Each is added before its page is yielded. */
  readonly seen: SeenCursors
  /** Called each time a request of this chain is sent. */
  readonly onRequest: () => void
  /**
   * Whether a page may be requested before its predecessor is committed. A crash loses every response that is charged
   * and not committed, so there are never more of these than a run may have pages in flight.
   */
  readonly mayPrefetch: () => boolean
}
