import {
  type ErrorKind,
  type ExportError,
  type FeedQuery,
  isExportError,
  isFeed,
  ROWS_PER_SEARCH,
  rulesOf,
} from '../../core/index.ts'
import { type Chain, extractPages, PageTooLarge, type Sizing } from '../../extract/index.ts'
import { SeenCursors, withPage } from '../../rows/index.ts'
import { decodeIds, NEW_FEED, passOf } from '../../state/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'
import { failPartition } from './chain-failure.ts'
import type { ChainProgress } from './chain-progress.ts'
import { isFrontDue, lostPlace, mayBeginAgain, orderOf } from './feed.ts'
import { shortageOfDiskSpace } from './halt.ts'
import { PageCommits } from './page-commits.ts'
import { excessOf, type PartitionFault } from './quarantine.ts'
import { type RestartPoint, requiredRestart, restartPoint } from './restart.ts'
import type { ChainsContext } from './run-context.ts'
import type { SplitPage } from './split-by-window.ts'
import { PartitionEvents } from './tally.ts'

const REFUSED_CURSOR = 'The service refuses the saved cursor'
const LOST_IDS = 'The ids of the last pages are damaged or missing'

/** Errors that concern one partition only. */
const OWN_ERRORS: ReadonlySet<ErrorKind> = new Set(['transient', 'refused', 'cursor', 'data'])

/** Follows one chain from its resume position: decides from where, and in which size, its pages are requested. */
export class ChainRun {
  readonly #run: ChainsContext
  readonly #chain: ChainProgress
  readonly #events: PartitionEvents
  readonly #commits: PageCommits
  /** Rows that the pages of the present sequence of cursors are requested with. */
  #size: number
  /** The value of a secret query; null for other queries. */
  readonly #secret: string | null
  /** Whether pages are small because few searches were left. */
  #isShort = false

  constructor(chain: ChainProgress, run: ChainsContext) {
    const { query } = chain
    this.#run = run
    this.#chain = chain
    this.#events = new PartitionEvents(chain, run.options.onLog)
    this.#commits = new PageCommits(chain, run, this.#events)
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
      await failPartition(
        this.#chain,
        error,
        { requests: this.#commits.requests, events: this.#events },
        this.#run,
      )
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
    this.#commits.mayNeedFront = isFromEnd || (before !== null && before.pass !== null)
    await this.#followToEnd()
    if (this.#commits.mayNeedFront && isDue()) {
      this.#commits.mayNeedFront = false
      await this.#beginAtFront()
      await this.#followToEnd()
    }
    this.#run.tally.done++
    this.#events.committed({ watermark: 0, isLast: true, finished: [0], reopened: [] })
  }

  async #beginAtFront(): Promise<void> {
    const { chain } = this.#chain
    await this.#run.session.journal.append([{ kind: 'restart', chain, since: null, pass: 'front' }])
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
      const bytes = await this.#run.session.journal.read(ref)
      if (bytes === null) {
        this.#commits.recent = []
        return false
      }
      const ids = decodeIds(bytes)
      this.#commits.recent =
        this.#chain.feedWindows === null
          ? withPage(this.#commits.recent, ids)
          : [...this.#commits.recent, ids]
    }
    return true
  }

  /** @returns whether the chain is over; else it has dropped its cursors for pages of another size */
  async #followCursors(): Promise<boolean> {
    const { service, session } = this.#run
    const pages = extractPages(service, this.#sequence(), session.decode, session.cpu.release)
    for await (const page of pages) {
      const split = this.#commits.split(page)
      await this.#commits.commit(split)
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
    await session.journal.append([{ kind: 'shorten', chain, windows: keep }])
    queue.add({ kind: 'new', query, windows: windows.part(keep, windows.count) })
  }

  /** The settings of every request in a sequence of cursors. */
  #sequence(): Chain {
    const chain = this.#chain
    const { pipeline, options, queue } = this.#run
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
      requestsBefore: this.#commits.requests,
      cursor: folded?.next ?? null,
      since: folded?.since ?? null,
      ...(feed === null
        ? { recent: this.#commits.recent }
        : {
            recent: [],
            feed: { earlier: this.#commits.recent, front: feed.pass === 'front' ? feed.front : 0 },
          }),
      page: folded?.pages ?? 0,
      seen: new SeenCursors(folded?.seen),
      onRequest: () => {
        this.#commits.requests++
      },
      mayPrefetch: () => queue.mayPrefetch,
    }
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
      await session.journal.append([...measurements.entries(null), restart])
    }
    this.#size = size
    return true
  }

  /** Where pages of another size begin; null: the cursor is kept. */
  #restartPoint(): RestartPoint | null {
    if (this.#chain.feedWindows !== null) return null
    const point = restartPoint(this.#chain, this.#commits.pages, this.#run.pipeline)
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
    await session.journal.append([{ kind: 'restart', chain: this.#chain.chain, since }])
  }
}
