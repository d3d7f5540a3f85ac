import { pipeline as streamPipeline } from 'node:stream/promises'
import {
  countOfIds,
  type DecodedPage,
  type ErrorKind,
  type ExportError,
  type FeedProgress,
  type FeedQuery,
  isExportError,
  isFeed,
  type JournalEntry,
  type PageEntry,
  type PageIds,
  ROWS_PER_SEARCH,
  rulesOf,
  SeenCursors,
  windowRange,
  withPage,
} from '../../core/index.ts'
import {
  type Chain,
  type ExtractedPage,
  extractPages,
  PageTooLarge,
  type Sizing,
} from '../../extract/index.ts'
import { folderOf, ownsFolder } from '../../load/index.ts'
import { afterFeedPage, chainEntry, decodeIds, encodeIds, NEW_FEED, passOf } from '../../state/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'
import { endedEntry, failEnded, failPartition } from './chain-failure.ts'
import type { ChainProgress } from './chain-progress.ts'
import { isFrontDue, lostPlace, mayBeginAgain, orderOf, pairsOf } from './feed.ts'
import { shortageOfDiskSpace } from './halt.ts'
import { type PageProgress, positionAfter, progressOf } from './page-progress.ts'
import { excessesOf, excessOf, invalidItemOf, type PartitionFault } from './quarantine.ts'
import { type RestartPoint, requiredRestart, restartPoint } from './restart.ts'
import type { ChainsContext } from './run-context.ts'
import { type SplitPage, splitByWindow } from './split-by-window.ts'
import { PartitionEvents } from './tally.ts'

const REFUSED_CURSOR = 'The service refuses the saved cursor'
const LOST_IDS = 'The ids of the last pages are damaged or missing'

/** Errors that concern one partition only. */
const OWN_ERRORS: ReadonlySet<ErrorKind> = new Set(['transient', 'refused', 'cursor', 'data'])

/**
 * Follows one chain from its resume position. The file reads downwards, in the order of a page's steps: request and
 * decode, split by window, commit, count.
 */
export class ChainRun {
  readonly #run: ChainsContext
  readonly #chain: ChainProgress
  readonly #events: PartitionEvents
  /** Rows that the pages of the present sequence of cursors are requested with. */
  #size: number
  /** The value of a secret query; null for other queries. */
  readonly #secret: string | null
  /** The ids of the last pages, by which rows are recognized that the service repeats. */
  #recent: readonly PageIds[] = []
  /** Requests sent for pages that are not committed yet. */
  #requests = 0
  /** Pages committed in this run. */
  #pages = 0
  /** Whether pages are small because few searches were left. */
  #isShort = false
  /** Items of pruned windows that this run has left out. */
  #leftOut = 0
  /** Whether a feed is read from its front after this pass, unless its rows come oldest first. */
  #mayNeedFront = false

  constructor(chain: ChainProgress, run: ChainsContext) {
    const { query } = chain
    this.#run = run
    this.#chain = chain
    this.#events = new PartitionEvents(chain, run.options.onLog)
    this.#size = run.sizes.size
    this.#secret = query.type === 'secret' ? (run.secrets.get(query.secretEnv) ?? null) : null
  }

  /** Follows the chain until it ends, its partition fails or the run halts. */
  async follow(): Promise<void> {
    const { halt } = this.#run
    await this.#haltWithoutSpace()
    if (halt.halted) return
    this.#events.begin()
    try {
      await this.#export()
    } catch (error) {
      if (!isExportError(error)) throw error
      if (!OWN_ERRORS.has(error.kind)) return halt.stopFor(error)
      await failPartition(this.#chain, error, { requests: this.#requests, events: this.#events }, this.#run)
    }
  }

  /**
   * Follows the chain's cursors. The chain restarts after the last committed row if the service rejects the saved
   * cursor, or if the ids of the last pages, which reveal repeated rows, are lost. It only does so if no row can be
   * exported twice and rows of two secrets cannot mix. It also restarts for pages of another size: everything but the
   * cursor has to stay the same along a sequence of cursors.
   * @throws ExportError of the kinds that end a chain or the run; a {@link PartitionFault} for one of its partitions
   */
  async #export(): Promise<void> {
    const chain = this.#chain
    const { pipeline } = this.#run
    for (const [partition, folded] of chain.open()) {
      const excess = excessOf(partition, chain.watermark, pipeline.transform, folded)
      if (excess !== null) throw excess
    }
    if (!(await this.#readIds())) await this.#restart(LOST_IDS)
    if (isFeed(chain.query)) await this.#exportFeed(chain.query)
    else await this.#followToEnd()
  }

  /**
   * Reads a feed to its end. Where new rows come at its front, or it is not known where, it is read from there, too, until
   * it meets what was its front. A pass that an earlier run began is completed first: rows have come to the front since.
   */
  async #exportFeed(query: FeedQuery): Promise<void> {
    const chain = this.#chain
    const isDue = (): boolean => chain.folded?.feed == null || isFrontDue(chain.folded.feed, query)
    const before = chain.folded?.feed ?? null
    if (before?.pass === null && orderOf(before, query) === 'newest first') await this.#beginAtFront()
    const isFromEnd = chain.folded?.feed != null && passOf(chain.folded.feed) === 'tail'
    this.#mayNeedFront = isFromEnd || (before !== null && before.pass !== null)
    await this.#followToEnd()
    if (this.#mayNeedFront && isDue()) {
      this.#mayNeedFront = false
      await this.#beginAtFront()
      await this.#followToEnd()
    }
    this.#run.tally.done++
    if (this.#leftOut > 0) {
      const fields = { partition: chain.current.key, items: this.#leftOut }
      this.#run.options.onLog('info', 'items of pruned windows were left out', fields)
    }
    this.#events.committed({ watermark: 0, isLast: true, finished: [0], reopened: [] })
  }

  async #beginAtFront(): Promise<void> {
    const { chain } = this.#chain
    await this.#run.session.checkpoint.append([{ kind: 'restart', chain, since: null, pass: 'front' }])
  }

  async #followToEnd(): Promise<void> {
    await this.#chooseSize()
    for (let isRefused = false, isOver = false; !isOver; ) {
      try {
        isOver = await this.#followCursors()
      } catch (error) {
        if (error instanceof PageTooLarge) await this.#resize(this.#run.sizes.size)
        else if (isRefused || !isExportError(error, 'cursor')) throw error
        else {
          isRefused = true
          await this.#restart(REFUSED_CURSOR, error)
        }
      }
    }
  }

  /** @returns false when they are lost */
  async #readIds(): Promise<boolean> {
    for (const ref of this.#chain.folded?.ids ?? []) {
      const bytes = await this.#run.session.checkpoint.read(ref)
      if (bytes === null) {
        this.#recent = []
        return false
      }
      this.#recent = [...this.#recent, decodeIds(bytes)]
    }
    return true
  }

  /** @returns whether the chain is over; else it continues with pages of another size */
  async #followCursors(): Promise<boolean> {
    const { service, session } = this.#run
    let isOver = true
    await streamPipeline(
      extractPages(service, this.#sequence(), session.decode, session.cpu.release),
      async (pages) => {
        isOver = await this.#commitPages(pages)
      },
    )
    return isOver
  }

  /** @returns false when the chain has dropped its cursors for pages of another size */
  async #commitPages(pages: AsyncIterable<ExtractedPage>): Promise<boolean> {
    for await (const page of pages) {
      // Not before: after the page before it, the chain may have handed windows to another one.
      const split = splitByWindow(page, this.#chain, (index) => this.#folderOf(index))
      await this.#commit(split)
      if (split.page.next === null || this.#chain.isOver) return true
      await this.#haltWithoutSpace()
      await this.#divide(split)
      const { size } = this.#run.sizes
      // More searches are left than earlier runs saw.
      if (this.#isShort && this.#run.service.pays(size) && (await this.#resize(size))) return false
    }
    return true
  }

  /**
   * Hands the later half of the windows that are left to an idle slot, if responses take longer than the rate limit makes
   * them wait. It costs one more request at most: the last page before the cut.
   */
  async #divide({ ms }: SplitPage): Promise<void> {
    const { queue, session, pipeline } = this.#run
    const { chain, query, windows, wanted, folded, currentIndex } = this.#chain
    if (queue.idle === 0 || ms <= 1000 / pipeline.service.requestsPerSecond) return
    const keep = currentIndex + Math.ceil((windows.count - currentIndex) / 2)
    if (keep === windows.count || wanted < windows.count) return
    if (folded?.inOrder !== true || this.#chain.hasItems(keep)) return
    await session.checkpoint.append([{ kind: 'shorten', chain, windows: keep }])
    queue.add({ kind: 'new', query, windows: windows.part(keep, windows.count) })
  }

  /** The settings of every request in a sequence of cursors. */
  #sequence(): Chain {
    const chain = this.#chain
    const { pipeline, options, prefetch, reportProgress } = this.#run
    const { extract, transform } = pipeline
    const { folded, query } = chain
    const feed = chain.feedWindows === null ? null : (folded?.feed ?? NEW_FEED)
    return {
      resource: extract.resource,
      query,
      requested: chain.requested,
      own: () => chain.windows.range,
      partition: () => chain.current.key,
      isOver: () => chain.isOver,
      queryValue: maskedQueryValue(query, this.#secret, { ...transform, maskKey: options.maskKey }),
      secret: this.#secret,
      include: extract.include,
      order: extract.order,
      pageSize: this.#size,
      sizing: rulesOf(extract.resource).reading === 'list' ? null : this.#sizing,
      requestsBefore: this.#requests,
      cursor: folded?.next ?? null,
      since: folded?.since ?? null,
      ...(feed === null
        ? { recent: this.#recent }
        : { recent: [], feed: { earlier: this.#recent, front: feed.pass === 'front' ? feed.front : 0 } }),
      page: folded?.pages ?? 0,
      seen: new SeenCursors(folded?.seen),
      onRequest: () => {
        this.#requests++
        reportProgress()
      },
      prefetch,
    }
  }

  #folderOf(index: number): string {
    const { extract, load } = this.#run.pipeline
    return folderOf(extract.resource, this.#chain.partitionAt(index), load.partitionBy)
  }

  /**
   * Commits one page with its rejected items and ids. Then counts it.
   * @throws PartitionFault when there are too many rejected items: then the chain waits, behind this page, for a run that
   *   permits them; or, under `on_invalid: fail`, any: then nothing is committed
   */
  async #commit(split: SplitPage): Promise<void> {
    const { session, tally, options, pipeline } = this.#run
    const isOver = tally.committing(options.clock.now())
    try {
      const invalid = invalidItemOf(split, this.#chain, pipeline.transform)
      if (invalid !== null) throw invalid
      const excess = await this.#commitRows(split)
      if (excess !== null) throw excess
    } finally {
      isOver()
      session.cpu.release(split.page)
    }
  }

  /** @returns the fault of the partition in progress; null: there is none */
  async #commitRows(split: SplitPage): Promise<PartitionFault | null> {
    const chain = this.#chain
    const { session, quarantine, measurements, pipeline } = this.#run
    const { page, requests, size, ms, slices, rows, refused, forgotten } = split
    const { folded, windows } = chain
    const items = quarantine.linesOf(chain, page, refused)
    const excesses = (indexes: readonly number[]) => excessesOf(split, chain, pipeline.transform, indexes)
    const position = positionAfter(folded, page, windows.order)
    const progress = progressOf(split, chain, position)
    const feed = chain.feedWindows === null ? null : this.#ofFeed(split, folded?.feed ?? NEW_FEED)
    const ended = excesses(progress.finished)
    const inProgress = feed === null ? (progress.isLast ? [] : [progress.watermark]) : [...refused.keys()]
    const [excess = null] = excesses(inProgress)
    quarantine.tidy(chain, feed?.entry.over === true ? chain.feedWindows!.indexes : progress.finished)
    // No page after the last one could repeat its rows.
    const recent = feed?.ids ?? (progress.isLast ? this.#recent : withPage(this.#recent, page.ids))
    const blobs = items.map(({ lines }) => lines)
    const hasIds = feed === null ? recent !== this.#recent : countOfIds(page.ids) > 0
    const ids = !hasIds
      ? {}
      : { ids: { blob: blobs.push(encodeIds(page.ids)) - 1, keep: feed === null ? recent.length - 1 : 0 } }
    const entry: PageEntry = {
      kind: 'page',
      chain: chain.chain,
      next: page.next,
      requests,
      ...(size === folded?.size ? {} : { size }),
      ...(progress.watermark === chain.watermark ? {} : { watermark: progress.watermark }),
      ...position,
      ...(items.length === 0
        ? {}
        : { quarantine: items.map(({ window, items }, blob) => ({ window, items, blob })) }),
      ...(forgotten.size === 0 ? {} : { forgotten: this.#byWindow(forgotten) }),
      ...(page.repeated === 0 || feed !== null ? {} : { repeated: page.repeated }),
      ...ids,
      ...(feed === null ? {} : { feed: feed.entry }),
      ...(Object.keys(page.unknownFields).length === 0 ? {} : { unknown_fields: page.unknownFields }),
    }
    const begin: JournalEntry[] =
      folded === undefined
        ? [chainEntry(chain.chain, chain.query.name, windows, feed === null ? null : NEW_FEED)]
        : []
    const measured = measurements.entries([size, ms])
    const advanced = chain.advanced
    await session.shards.commit({
      slices,
      close: this.#foldersToClose(progress.finished, rows),
      entries: (placement) => [
        ...begin,
        { ...entry, ...placement },
        ...measured,
        ...ended.map((fault) => endedEntry(fault, chain)),
      ],
      blobs,
    })
    this.#run.sizes.served(size)
    this.#recent = recent
    chain.committed(progress.watermark)
    this.#run.tally.advanced += chain.advanced - advanced
    this.#count(split, progress, ended)
    await this.#afterCommit(progress, ended)
    return excess
  }

  #byWindow(items: ReadonlyMap<number, number>): NonNullable<PageEntry['forgotten']> {
    const windows = this.#chain.feedWindows ?? this.#chain.windows
    return [...items].map(([index, items]) => ({ window: windowRange(windows.at(index)), items }))
  }

  /** What a page changes of a feed, and the ids that are kept. */
  #ofFeed({ page, size }: SplitPage, feed: FeedProgress) {
    const over = page.next === null || (feed.pass === 'front' && page.met)
    const pairs = pairsOf(page.times)
    const change = {
      ...pairs,
      isOver: over,
      ids: countOfIds(page.ids) === 0 ? null : page.ids,
      cursor: this.#chain.folded?.next ?? null,
      size,
      next: page.next,
    }
    const after = afterFeedPage(feed, this.#recent, change, countOfIds)
    const { query } = this.#chain
    const isMore = over && this.#mayNeedFront && isFeed(query) && isFrontDue(after.feed, query)
    return { entry: { over, ...pairs, ...(isMore ? { more: true as const } : {}) }, ids: after.ids }
  }

  /** Folders that can get no more rows and may have an open shard. */
  #foldersToClose(finished: readonly number[], rows: ReadonlyMap<number, number>): readonly string[] {
    const { extract, load } = this.#run.pipeline
    if (!ownsFolder(extract.resource, load.partitionBy)) return []
    const hasRows = (index: number): boolean =>
      rows.has(index) || (this.#chain.foldedAt(index)?.rows ?? 0) > 0
    return finished.filter(hasRows).map((index) => this.#folderOf(index))
  }

  #count(split: SplitPage, { finished, reopened }: PageProgress, ended: readonly PartitionFault[]): void {
    const chain = this.#chain
    const { requests, forgotten, leftOut } = split
    const page = chain.feedWindows === null ? split.page : countedOfFeed(split)
    this.#leftOut += leftOut
    const { tally, options } = this.#run
    const log = options.onLog
    this.#requests -= requests
    this.#pages++
    if (page.repeated > 0 && tally.repeated === 0) {
      const message = 'the service repeats rows on later pages; each is exported once'
      log('warn', message, { partition: chain.current.key, repeated: page.repeated })
    }
    if (reopened.length > 0 && tally.reopened === 0) {
      const message = 'late rows for finished partitions; they are written to additional shards'
      log('warn', message, { partition: chain.partitionAt(reopened[0]!).key })
    }
    // Without those of windows that another chain has.
    const own = [...split.rows.values()].reduce((sum, each) => sum + each, 0)
    tally.page({ ...page, rows: own }, forgotten)
    tally.reopened += reopened.length
    tally.done += finished.length - reopened.length - ended.length
    for (const field of tally.newFields(page)) {
      log('warn', 'the service sends an unknown field, which is not exported', { field })
    }
  }

  /** The steps after a commit. */
  async #afterCommit(progress: PageProgress, ended: readonly PartitionFault[]): Promise<void> {
    const { session, measurements, options, deferred, reportProgress } = this.#run
    const isEnded = (index: number): boolean => ended.some((fault) => fault.index === index)
    const finished = progress.finished.filter((index) => !isEnded(index))
    this.#events.committed({ ...progress, finished })
    for (const fault of ended) failEnded(this.#chain, fault, this.#events, this.#run)
    await measurements.enterMonth(session.checkpoint, options.clock)
    await deferred.settle()
    await this.#sealFoldersLeft(progress)
    reportProgress()
  }

  /** Seals the shards of shared folders that can get no more rows. */
  async #sealFoldersLeft({ finished, reopened }: PageProgress): Promise<void> {
    const { pipeline, session, counts } = this.#run
    if (ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) return
    const left: string[] = []
    const add = (index: number, change: number): void => {
      const folder = this.#folderOf(index)
      const unfinished = (counts.unfinished.get(folder) ?? 0) + change
      if (unfinished > 0) counts.unfinished.set(folder, unfinished)
      else {
        counts.unfinished.delete(folder)
        left.push(folder)
      }
    }
    for (const index of reopened) add(index, 1)
    for (const index of finished) add(index, -1)
    if (left.length > 0) await session.shards.seal(left)
  }

  /** Halts if the disk lacks space for all pages that may be in flight. */
  async #haltWithoutSpace(): Promise<void> {
    const shortage = await shortageOfDiskSpace(this.#run.pipeline, this.#run.store)
    if (shortage !== null) this.#run.halt.stopFor(shortage)
  }

  /** A chain begins with the size of the data set, where it can; else it keeps the size that its cursor was given for. */
  async #chooseSize(): Promise<void> {
    const { sizes, service } = this.#run
    const { folded } = this.#chain
    if (!this.#canResize) {
      this.#size = folded?.size ?? sizes.size
      return
    }
    const size = sizes.begin()
    this.#isShort = this.#chain.requested !== null && !service.pays(size)
    await this.#resize(this.#isShort ? Math.min(size, ROWS_PER_SEARCH) : size)
  }

  /** Whether pages of another size can be requested: a cursor is dropped only for its last row. */
  get #canResize(): boolean {
    return this.#chain.folded?.next == null || this.#restartPoint() !== null
  }

  /** How a page that does not come in time is requested in the size of the data set. */
  get #sizing(): Sizing {
    const { sizes } = this.#run
    return {
      isTooLarge: () => this.#size > sizes.size && this.#canResize,
      timedOut: (why) => sizes.timedOut(this.#size, why) && this.#canResize,
    }
  }

  /** Continues with pages of this size. @returns false if the cursor cannot be dropped */
  async #resize(size: number): Promise<boolean> {
    const { folded } = this.#chain
    if (folded?.next != null && folded.size !== size) {
      const point = this.#restartPoint()
      if (point === null) return false
      const { session, measurements } = this.#run
      const restart = { kind: 'restart', chain: this.#chain.chain, ...point } as const
      await session.checkpoint.append([...measurements.entries(null), restart])
    }
    this.#size = size
    return true
  }

  /** Where pages of another size begin; null: the cursor is kept. */
  #restartPoint(): RestartPoint | null {
    if (this.#chain.feedWindows !== null) return null
    const point = restartPoint(this.#chain, this.#pages, this.#run.pipeline)
    // A page of rows that are exported already would be paid for in vain.
    return (point?.since?.ids.length ?? 0) < this.#run.sizes.size ? point : null
  }

  /** Makes the chain restart after its last row. @throws ExportError `refused` when that is not possible */
  async #restart(why: string, cause?: ExportError): Promise<void> {
    const { session, pipeline, options } = this.#run
    const { folded, feedWindows } = this.#chain
    const isLost =
      feedWindows !== null && (cause === undefined || folded === undefined || !mayBeginAgain(folded))
    if (isLost) throw lostPlace(this.#chain, why, cause)
    const { since } =
      feedWindows === null ? requiredRestart(this.#chain, why, pipeline, cause) : { since: null }
    const message = `${why.charAt(0).toLowerCase()}${why.slice(1)}; restarting after the last committed row`
    options.onLog('warn', message, { partition: this.#chain.current.key })
    await session.checkpoint.append([{ kind: 'restart', chain: this.#chain.chain, since }])
  }
}

/** What counts of a page of a feed: its last page, or its front, is requested again on purpose. */
function countedOfFeed({ page, rows, refused }: SplitPage): DecodedPage {
  let kept = 0
  for (const count of rows.values()) kept += count
  const quarantined = [...refused.values()].flat()
  return { ...page, items: page.items - page.repeated, repeated: 0, rows: kept, quarantined }
}
