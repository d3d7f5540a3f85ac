import {
  type ExportError,
  type Int64,
  type Int64Json,
  type Log,
  type NamedQuery,
  type Partition,
  partition,
  type Window,
  type WindowRun,
} from '../../core/index.ts'
import type { ExtractedPage, PageSizes } from '../../extract/index.ts'
import type { Slice } from '../../load/index.ts'
import type { PlannedChain } from '../../pipeline/index.ts'
import type { PageContext, RejectedItem } from '../../rows/index.ts'
import {
  chainEntry,
  decodeIds,
  type FeedProgress,
  type FoldedChain,
  type FoldedPartition,
  type Journal,
  type JournalEntry,
  type LoggedIds,
  type PageEntry,
  presentOf,
} from '../../state/index.ts'

/** Where a sequence of cursors begins, and what is known of the rows that may come in it. */
export type Start = Pick<PageContext, 'recent' | 'known' | 'feed'> & {
  /** null: at the beginning of what is requested. */
  readonly cursor: string | null
  readonly requested: Window | null
  readonly since: Int64Json | null
  /** The size of its first page, asked for in that alone if it is a trial; absent: the usual one. */
  readonly first?: { readonly size: number; readonly isTrial: boolean }
}

/** A page whose rows and rejected items are assigned to their partitions. */
export type SplitPage = ExtractedPage & {
  readonly slices: readonly Slice[]
  /** The number of rows by the index of their window in the chain. */
  readonly rows: ReadonlyMap<number, number>
  /** Rejected items, likewise; an item without a readable time goes to the current partition of the chain. */
  readonly rejected: ReadonlyMap<number, readonly RejectedItem[]>
  /** The number of items that were dropped for forgotten people, likewise. */
  readonly forgotten: ReadonlyMap<number, number>
}

/** How a page changes its chain: windows by their index. */
export type PageChange = {
  /** How many of its windows can get no more rows. */
  readonly watermark: number
  /** Windows that are done with this page and were not before. */
  readonly finished: readonly number[]
  /** Windows that had ended, done or failed, and are reopened for late rows. */
  readonly reopened: readonly number[]
  /** Windows that fail with the chain if too many of their items are rejected. */
  readonly inProgress: readonly number[]
  /** Goes with the ids of the page into the log; null: they are not needed. */
  readonly ids: { readonly until: bigint | null; readonly keep: number } | null
  /** Whether it begins to use the schema of the chain. */
  readonly hasSchema: boolean
  /** Entries before that of the page. */
  readonly before: readonly JournalEntry[]
  /** The part of the entry that only a search, or only a feed, has. */
  readonly entry: Partial<PageEntry>
}

/** What other chains export where a partition failed, first to last, and how many windows the chain keeps; null: all. */
export type Rest = { readonly chains: readonly PlannedChain[]; readonly keep: number | null }

export type ChainParts = Pick<Chain, 'chain' | 'query' | 'schema'> & {
  readonly windows: WindowRun
  readonly journal: Pick<Journal, 'state' | 'read' | 'append'>
}

/** One chain while a run follows it: its state in the checkpoint, or before its first page the plan. */
export abstract class Chain {
  readonly chain: number
  readonly query: NamedQuery
  /** Number of the schema of its rows. A cursor belongs to the columns that it was requested with. */
  readonly schema: number
  /** Partitions that are done with the chain, by index. */
  abstract readonly doneAtEnd: readonly number[]
  abstract readonly mayPrefetch: boolean
  /** Whether it may go on without a cursor that is served in no size. */
  abstract readonly mayRestart: boolean
  protected readonly journal: ChainParts['journal']
  readonly #windows: WindowRun

  constructor({ journal, chain, query, schema, windows }: ChainParts) {
    this.journal = journal
    this.chain = chain
    this.query = query
    this.schema = schema
    this.#windows = windows
  }

  /** Undefined before the first page is committed, and after the last. */
  get folded(): FoldedChain | undefined {
    return this.journal.state.chains.get(this.chain)
  }

  get windows(): WindowRun {
    return this.folded?.windows ?? this.#windows
  }

  /** How many of its windows can get no more rows. */
  abstract get watermark(): number
  /** How many windows are behind it, by the time of its last row; the current one counts as a fraction. */
  abstract get advanced(): number
  /** Whether the present sequence of cursors has given all that this run needs of it. */
  abstract get isOver(): boolean

  get currentIndex(): number {
    return Math.min(this.watermark, this.windows.count - 1)
  }

  get current(): Partition {
    return this.partitionAt(this.currentIndex)
  }

  /** null: the chain has no windows. */
  abstract windowAt(index: number): Window | null
  /** The window of an instant; null: what belongs there is left out. */
  abstract indexOf(at: Int64): number | null
  /** The same of an item, whose time may be missing, or wrong. */
  abstract indexOfItem(at: number | null): number | null

  partitionAt(index: number): Partition {
    return partition(this.query, this.windowAt(index))
  }

  foldedAt(index: number): FoldedPartition | undefined {
    return this.foldedOf(this.partitionAt(index).key)
  }

  foldedOf(partition: string): FoldedPartition | undefined {
    return presentOf(this.journal.state, partition)
  }

  /** Keys of the partitions that its next page may have rows of. */
  abstract get openPartitions(): readonly string[]

  /** The next sequence of cursors; null: this run has all that it needs. @throws ExportError when ids are lost */
  abstract next(): Promise<Start | null>

  /** Where to go on without the cursor. @throws ExportError where rows would be lost or doubled */
  abstract withoutCursor(refusal: ExportError, sizes: PageSizes, log: Log): Promise<Start>

  abstract after(page: SplitPage): PageChange

  abstract committed(change: PageChange): void

  /** The entry of the chain, before that of its first page. */
  protected begin(feed: FeedProgress | null): readonly JournalEntry[] {
    if (this.folded !== undefined) return []
    return [chainEntry(this.chain, this.query.name, this.windows, feed, this.schema)]
  }

  /** The index of the partition that fails. */
  abstract indexOfFault(error: ExportError): number

  /** @param index of the partition that failed */
  abstract rest(index: number, error: ExportError, hasKeyedSecrets: boolean): Rest

  protected async idsInLog(): Promise<readonly LoggedIds[]> {
    const ids: LoggedIds[] = []
    for (const ref of this.folded?.ids ?? []) {
      const bytes = await this.journal.read(ref)
      if (bytes === null) throw await this.lost('The ids of the last pages are damaged or missing')
      ids.push(decodeIds(bytes))
    }
    return ids
  }

  /** Nothing is known from which it can go on. */
  protected abstract lost(why: string, cause?: ExportError): Promise<ExportError>
}
