import { ExportError, type Int64, type Window, type WindowLength } from '../../core/index.ts'
import { windowAt } from '../../pipeline/index.ts'
import { countOfIds, type PageIds } from '../../rows/index.ts'
import { afterFeedPage, type FeedProgress, NEW_FEED, passOf } from '../../state/index.ts'
import { Chain, type ChainParts, type PageChange, type Rest, type SplitPage, type Start } from './chain.ts'

type Pass = NonNullable<FeedProgress['pass']>

/** Which ends of a feed a run has read. */
type ReadEnds = { readonly front: boolean; readonly end: boolean }

/** The pass of a feed that a run goes on with; null: it has read both ends. A pass that was cut is completed first. */
export function nextPass({ pass, end, owed }: FeedProgress, read: ReadEnds): Pass | null {
  if (pass !== null) return pass
  if (owed && !read.front) return 'front'
  if (!read.end) return end === null ? 'whole' : 'tail'
  return read.front ? null : 'front'
}

type FeedChange = PageChange & { readonly known: readonly PageIds[]; readonly read: ReadEnds }

/** A feed, which never ends: each run reads what has come at both ends. */
export class Feed extends Chain {
  readonly doneAtEnd = [0]
  /** What a page meets decides whether there is another. */
  readonly mayPrefetch = false
  readonly mayRestart = false
  readonly watermark = 0
  readonly advanced = 0
  readonly #every: WindowLength
  /** A window exists once a row belongs to it. The index 0 is the feed itself, which has no rows. */
  readonly #windows: (Window | null)[] = [null]
  readonly #indexes = new Map<number, number>()
  /** Ids as the checkpoint has them; null: not read yet. */
  #known: readonly PageIds[] | null = null
  #read: ReadEnds

  constructor(parts: ChainParts & { readonly every: WindowLength | null }) {
    super(parts)
    this.#every = parts.every ?? { unit: 'month' }
    // New rows may come at an identifier's front, too: it has no order. The tenant's is requested oldest first.
    this.#read = { front: parts.query.type !== 'identifier', end: false }
  }

  get #progress(): FeedProgress {
    return this.folded?.feed ?? NEW_FEED
  }

  get isOver(): boolean {
    return this.folded?.feed?.pass === null
  }

  windowAt(index: number): Window | null {
    return this.#windows[index]!
  }

  /** null: the window was pruned, and the feed is read again from its beginning. */
  indexOf(at: Int64): number | null {
    const window = windowAt(at, this.#every)
    const known = this.#indexes.get(window.from)
    const index = known ?? this.#windows.push(window) - 1
    if (known === undefined) this.#indexes.set(window.from, index)
    return this.#isLeftOut(index) ? null : index
  }

  indexOfItem(at: number | null): number | null {
    return at === null ? 0 : this.indexOf(at)
  }

  #isLeftOut(index: number): boolean {
    if (this.foldedAt(index)?.state !== 'pruned') return false
    const isReadAgain = this.journal.state.redo.partitions.has(this.current.key)
    return isReadAgain && passOf(this.#progress) === 'whole'
  }

  get openPartitions(): readonly string[] {
    const { name } = this.query
    const windows = this.journal.state.partitions.branches.get(name)?.keys() ?? []
    return [...windows].map((window) => `${name}/${window}`)
  }

  async next(): Promise<Start | null> {
    this.#known ??= (await this.idsInLog()).map(({ ids }) => ids)
    const pass = nextPass(this.#progress, this.#read)
    if (pass === null) return null
    if (pass === 'front' && this.#progress.pass === null)
      await this.journal.append([{ kind: 'restart', chain: this.chain, since: null, pass }])
    return this.#resume()
  }

  #resume(): Start {
    const cursor = this.folded?.next ?? null
    if (cursor === null) this.#read = { ...this.#read, front: true }
    const { pass, front } = this.#progress
    const feed = { earlier: this.#known!, front: pass === 'front' ? front : 0 }
    return { cursor, requested: null, since: null, recent: [], known: [], feed }
  }

  /** It can only begin again where all rows of its pass are known by their ids: at the front. */
  async withoutCursor(refusal: ExportError): Promise<Start> {
    if (refusal.kind !== 'cursor') throw refusal
    const { pass, truncated } = this.#progress
    if (truncated || (pass !== 'whole' && pass !== 'front'))
      throw await this.lost('The service refuses the saved cursor', refusal)
    await this.journal.append([{ kind: 'restart', chain: this.chain, since: null }])
    return this.#resume()
  }

  after({ page, size, slices, rejected }: SplitPage): FeedChange {
    const feed = this.#progress
    const isOver = page.next === null || (feed.pass === 'front' && page.met)
    const hasIds = countOfIds(page.ids) > 0
    const cursor = this.folded?.next ?? null
    const change = { isOver, ids: hasIds ? page.ids : null, cursor, size, next: page.next }
    const after = afterFeedPage(feed, this.#known!, change, countOfIds)
    const read = { ...this.#read, end: this.#read.end || page.next === null }
    const isMore = isOver && nextPass(after.feed, read) !== null
    const hasSchema = slices.length > 0
    return {
      ...{ watermark: 0, finished: [], reopened: [], inProgress: [...rejected.keys()] },
      ids: hasIds ? { until: null, keep: 0 } : null,
      hasSchema,
      before: this.begin(NEW_FEED),
      entry: {
        feed: { over: isOver, more: isMore ? true : undefined },
        schema: hasSchema && this.folded?.schema !== this.schema ? this.schema : undefined,
      },
      known: after.ids,
      read,
    }
  }

  committed({ known, read }: FeedChange): void {
    this.#known = known
    this.#read = read
  }

  /** A feed fails as a whole: its windows have what came before. */
  indexOfFault(): number {
    return 0
  }

  rest(): Rest {
    return { chains: [], keep: null }
  }

  protected async lost(why: string, cause?: ExportError): Promise<ExportError> {
    const { current, query } = this
    // A glob would name the pruned windows, too, and bring them back.
    const isPruned = this.openPartitions.some((key) => this.foldedOf(key)?.state === 'pruned')
    return new ExportError({
      kind: 'refused',
      what: `${why}, and a feed can be read on from nowhere else without losing or doubling rows`,
      where: current.key,
      next: `Run with --redo '${isPruned ? current.key : `${query.name}/*`}': it reads the feed again from its beginning, and what is exported stays until that is complete. Nothing was skipped.`,
      ...(cause === undefined ? {} : { cause }),
    })
  }
}
