import {
  int64FromJson,
  type NamedQuery,
  type Partition,
  partition,
  type Window,
  type WindowRun,
} from '../../core/index.ts'
import {
  type CheckpointState,
  type FoldedChain,
  type FoldedPartition,
  isInOrder,
  NEW_FEED,
  passOf,
  presentOf,
} from '../../state/index.ts'
import type { FeedWindows } from './pages/feed-windows.ts'

type Followed = Pick<ChainProgress, 'chain' | 'query' | 'windows' | 'wanted' | 'feedWindows' | 'schema'>

/** One chain while a run follows it: its state in the checkpoint, or before its first page the plan. */
export class ChainProgress {
  readonly chain: number
  readonly query: NamedQuery
  /** How many of its windows this run exports; the chain may cover more. */
  readonly wanted: number
  /** The windows of a feed's rows; null: the chain is a search. */
  readonly feedWindows: FeedWindows | null
  /** Number of the schema of its rows. A cursor belongs to the columns that it was requested with. */
  readonly schema: number
  readonly #state: CheckpointState
  #windows: WindowRun
  #hasEnded = false
  #watermark = 0

  constructor(state: CheckpointState, followed: Followed) {
    this.#state = state
    this.chain = followed.chain
    this.query = followed.query
    this.wanted = followed.wanted
    this.feedWindows = followed.feedWindows
    this.schema = followed.schema
    this.#windows = followed.windows
    this.#watermark = this.folded?.watermark ?? 0
  }

  /** Undefined before the first page is committed, and after the last. */
  get folded(): FoldedChain | undefined {
    return this.#state.chains.get(this.chain)
  }

  get windows(): WindowRun {
    return this.folded?.windows ?? this.#windows
  }

  /** How many of its windows can get no more rows. */
  get watermark(): number {
    return this.folded?.watermark ?? this.#watermark
  }

  /** How many windows are behind it, by the time of its last row; the current one counts as a fraction. */
  get advanced(): number {
    const at = isInOrder(this.folded) ? this.folded?.position?.at : undefined
    const window = this.watermark < this.windows.count ? this.windows.at(this.watermark) : null
    if (at === undefined || window === null) return this.watermark
    const share = (Number(int64FromJson(at)) - window.from) / (window.until - window.from)
    const part = this.windows.order === 'asc' ? share : 1 - share
    return this.watermark + Math.min(1, Math.max(0, part))
  }

  get currentIndex(): number {
    return Math.min(this.watermark, this.windows.count - 1)
  }

  get current(): Partition {
    return this.partitionAt(this.currentIndex)
  }

  partitionAt(index: number): Partition {
    return partition(this.query, (this.feedWindows ?? this.windows).at(index))
  }

  /** The partition in progress, or all of a feed, with what is committed. */
  *open(): Generator<readonly [Partition, FoldedPartition | undefined]> {
    if (this.feedWindows === null) yield [this.current, this.foldedAt(this.currentIndex)]
    else for (const key of this.#keys) yield [{ ...this.current, key }, presentOf(this.#state, key)]
  }

  foldedAt(index: number): FoldedPartition | undefined {
    return presentOf(this.#state, this.partitionAt(index).key)
  }

  /** Whether rows of a window are left out: it was pruned, and the feed is read again from its beginning. */
  isLeftOut(index: number): boolean {
    if (this.feedWindows === null || this.foldedAt(index)?.state !== 'pruned') return false
    const isReadAgain = this.#state.redo.partitions.has(this.partitionAt(0).key)
    return isReadAgain && passOf(this.folded?.feed ?? NEW_FEED) === 'whole'
  }

  get isPruned(): boolean {
    return this.#keys.some((key) => presentOf(this.#state, key)?.state === 'pruned')
  }

  get #keys(): readonly string[] {
    const { name } = this.query
    return [...(this.#state.partitions.branches.get(name)?.keys() ?? [])].map((window) => `${name}/${window}`)
  }

  /** Whether rows or rejected items of its windows are committed, from an index on. */
  hasItems(from = 0): boolean {
    for (let index = from; index < this.windows.count; index++) {
      const folded = this.foldedAt(index)
      if (folded !== undefined && folded.rows + folded.quarantined > 0) return true
    }
    return false
  }

  get requested(): Window | null {
    return this.folded === undefined ? this.#windows.range : this.folded.requested
  }

  /** Whether other chains export the last part of the requested range. */
  get isShortened(): boolean {
    const { requested } = this
    const { range, order } = this.windows
    if (requested === null || range === null) return false
    return order === 'asc' ? range.until < requested.until : range.from > requested.from
  }

  /** Whether this run has all that it needs of the chain. */
  get isOver(): boolean {
    const feed = this.folded?.feed ?? null
    if (feed !== null) return feed.pass === null
    return this.#hasEnded || (this.wanted < this.windows.count && this.watermark >= this.wanted)
  }

  committed(watermark: number): void {
    this.#watermark = watermark
    this.#hasEnded = this.folded === undefined
  }
}
