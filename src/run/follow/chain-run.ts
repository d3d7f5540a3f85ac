import {
  type ErrorKind,
  ExportError,
  type FeedQuery,
  formatInstant,
  int64FromJson,
  isExportError,
  isFeed,
  rulesOf,
} from '../../core/index.ts'
import { type Chain, extractPages, NotServed } from '../../extract/index.ts'
import { type PageIds, SeenCursors, withPage } from '../../rows/index.ts'
import { decodeIds, type FoldedChain, type LoggedIds, NEW_FEED } from '../../state/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'
import { concernsAll, failPartition } from './chain-failure.ts'
import type { ChainProgress } from './chain-progress.ts'
import { shortageOfDiskSpace } from './halt.ts'
import { nextPass, type Pass } from './pages/next-pass.ts'
import { PageCommits } from './pages/page-commits.ts'
import { excessOf } from './pages/quarantine.ts'
import { otherSecret, restartInstant } from './pages/restart.ts'
import type { ChainsContext } from './run-context.ts'
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
  /** As of `Chain`, for the sequence of cursors in the checkpoint. */
  #known: readonly PageIds[] = []
  readonly #secret: string | null

  constructor(chain: ChainProgress, run: ChainsContext) {
    const { query } = chain
    this.#run = run
    this.#chain = chain
    this.#events = new PartitionEvents(chain, run.options.onLog)
    this.#commits = new PageCommits(chain, run, this.#events)
    this.#secret = query.type === 'secret' ? (run.secrets.get(query.secretEnv) ?? null) : null
  }

  async follow(): Promise<void> {
    const { halt } = this.#run
    await this.#haltWithoutSpace()
    if (halt.halted) return
    this.#events.begin()
    try {
      await this.#export()
    } catch (error) {
      if (!isExportError(error)) throw error
      const ofAll = OWN_ERRORS.has(error.kind) ? concernsAll(error, this.#run) : error
      if (ofAll !== null) return halt.stopFor(ofAll)
      const { requests } = this.#commits
      await failPartition(this.#chain, error, { requests, events: this.#events }, this.#run)
    }
  }

  async #export(): Promise<void> {
    const chain = this.#chain
    const { pipeline } = this.#run
    for (const [partition, folded] of chain.open()) {
      const excess = excessOf(partition, chain.watermark, pipeline.transform, folded)
      if (excess !== null) throw excess
    }
    await this.#readIds()
    if (isFeed(chain.query)) await this.#exportFeed(chain.query)
    else await this.#followToEnd()
  }

  /** Completes the pass that was begun, and reads both ends of the feed as they are in this run. */
  async #exportFeed(query: FeedQuery): Promise<void> {
    const commits = this.#commits
    commits.read = { front: !hasFront(query), end: false }
    for (let pass = this.#nextPass(); pass !== null; pass = this.#nextPass()) {
      if (pass === 'front' && this.#chain.folded?.feed?.pass === null) await this.#beginAtFront()
      await this.#followToEnd()
    }
    this.#run.tally.done++
    this.#events.committed({ watermark: 0, isLast: true, finished: [0], reopened: [] })
  }

  #nextPass(): Pass | null {
    return nextPass(this.#chain.folded?.feed ?? NEW_FEED, this.#commits.read)
  }

  async #beginAtFront(): Promise<void> {
    const { chain } = this.#chain
    await this.#run.session.journal.append([{ kind: 'restart', chain, since: null, pass: 'front' }])
  }

  /** Only where the cursor is refused, or served in no size, the chain begins again without it, once. */
  async #followToEnd(): Promise<void> {
    for (let start = this.#resume(), hasRestarted = false; ; hasRestarted = true) {
      try {
        return await this.#followCursors(start)
      } catch (error) {
        const isOfCursor = isExportError(error, 'cursor') || error instanceof NotServed
        const hasCursor = this.#chain.folded?.next != null && this.#commits.restart === null
        if (!isOfCursor || !hasCursor || hasRestarted) throw error
        start = await this.#withoutCursor(error)
      }
    }
  }

  async #readIds(): Promise<void> {
    const known = await this.#idsInLog()
    const isOfFeed = this.#chain.feedWindows !== null
    const ids = known.map(({ ids }) => ids)
    if (this.#chain.folded?.since != null) this.#known = ids
    this.#commits.recent = isOfFeed ? ids : ids.reduce(withPage, [])
    this.#commits.untils = known.map(({ until }) => until)
  }

  /** @throws ExportError when they are lost */
  async #idsInLog(): Promise<readonly LoggedIds[]> {
    const known: LoggedIds[] = []
    for (const ref of this.#chain.folded?.ids ?? []) {
      const bytes = await this.#run.session.journal.read(ref)
      if (bytes === null) throw await this.#lost(LOST_IDS)
      known.push(decodeIds(bytes))
    }
    return known
  }

  async #followCursors(start: Start): Promise<void> {
    const { service, session } = this.#run
    if (start.cursor === null) this.#commits.read.front = true
    const pages = extractPages(service, this.#sequence(start), session.decoderOf(this.#chain.schema))
    for await (const page of pages) {
      this.#run.onPage()
      const split = this.#commits.split(page)
      await this.#commits.commit(split)
      if (split.page.next === null || this.#chain.isOver) return
      await this.#haltWithoutSpace()
    }
  }

  #sequence({ cursor, since, known, size, isTrial }: Start): Chain {
    const chain = this.#chain
    const { pipeline, session, options, queue, sizes } = this.#run
    const { extract, transform } = pipeline
    const { folded, query } = chain
    const feed = chain.feedWindows === null ? null : (folded?.feed ?? NEW_FEED)
    return {
      resource: extract.resource,
      query,
      requested: this.#commits.restart === null ? chain.requested : chain.windows.range,
      own: () => chain.windows.range,
      partition: () => chain.current.key,
      isOver: () => chain.isOver,
      queryValue: maskedQueryValue(query, this.#secret, { ...transform, maskKey: options.maskKey }),
      secret: this.#secret,
      include: session.schemas[chain.schema]!.include,
      order: extract.order,
      cursor,
      cursorSize: folded?.size ?? null,
      pageSize: size,
      sizes: rulesOf(extract.resource).reading === 'list' ? null : sizes,
      mayRestart: feed === null,
      isTrial,
      requestsBefore: this.#commits.requests,
      since,
      known,
      ...(feed === null
        ? { recent: this.#commits.recent }
        : {
            recent: [],
            feed: { earlier: this.#commits.recent, front: feed.pass === 'front' ? feed.front : 0 },
          }),
      page: folded?.pages ?? 0,
      seen: new SeenCursors(cursor === null ? null : folded?.seen),
      onRequest: () => {
        this.#commits.requests++
      },
      // What a page of a feed meets decides whether there is another.
      mayPrefetch: () => queue.mayPrefetch && feed === null,
    }
  }

  async #haltWithoutSpace(): Promise<void> {
    const shortage = await shortageOfDiskSpace(this.#run.pipeline, this.#run.store)
    if (shortage !== null) this.#run.halt.stopFor(shortage)
  }

  #resume(): Start {
    const { next: cursor = null, since = null } = this.#chain.folded ?? {}
    return { cursor, since, known: this.#known, size: this.#run.sizes.first, isTrial: false }
  }

  /** @throws ExportError when the chain cannot go on without its cursor */
  async #withoutCursor(error: ExportError): Promise<Start> {
    const { session, options, sizes } = this.#run
    const { chain, feedWindows, current, query } = this.#chain
    const folded = this.#chain.folded!
    if (feedWindows !== null) {
      if (error.kind !== 'cursor') throw error
      if (!mayBeginAgain(folded)) throw lostPlace(this.#chain, REFUSED_CURSOR, error)
      await session.journal.append([{ kind: 'restart', chain, since: null }])
      return this.#resume()
    }
    // Until this secret had a page in this run, the variable may have changed.
    if (query.type === 'secret' && this.#commits.pages === 0)
      throw error.kind === 'cursor' ? otherSecret(query, current.key, error) : error
    const known = (await this.#idsInLog()).map(({ ids }) => ids)
    const instant = restartInstant(folded, this.#commits.untils)
    if (instant === null) throw await this.#lost(REFUSED_CURSOR, error)
    const { since } = instant
    const why =
      error.kind === 'cursor'
        ? 'the service refuses the saved cursor'
        : 'the saved cursor is served in no size'
    const from = since === null ? 'its beginning' : formatInstant(int64FromJson(since))
    options.onLog('warn', `${why}; restarting from ${from}`, { partition: current.key })
    this.#commits.restart = { kind: 'restart', chain, since }
    // The size was the cursor's, or the service serves nothing.
    const isOfSize = error.kind !== 'cursor' && sizes.bindsSizes
    const size = isOfSize ? sizes.after(folded.size ?? sizes.first) : sizes.first
    return { cursor: null, since, known, size, isTrial: error.kind !== 'cursor' && !isOfSize }
  }

  /** The next run exports the partitions of the chain anew. @returns the error of this one */
  async #lost(why: string, cause?: ExportError): Promise<ExportError> {
    if (this.#chain.feedWindows !== null) return lostPlace(this.#chain, why, cause)
    const { chain, current } = this.#chain
    await this.#run.session.journal.append([{ kind: 'restart', chain, since: null, lost: true }])
    return new ExportError({
      kind: 'refused',
      what: `${why}, and there is no instant from which all rows are known`,
      where: current.key,
      next: 'Run again: the partitions of this query that are not done are exported anew, and what is exported stays until then.',
      ...(cause === undefined ? {} : { cause }),
    })
  }
}

type Start = Pick<Chain, 'cursor' | 'since' | 'known' | 'isTrial'> & { readonly size: number }

/** New rows may come at an identifier's front, too: it has no order. The tenant's is requested oldest first. */
export function hasFront({ type }: FeedQuery): boolean {
  return type === 'identifier'
}

/** A feed can only begin again where all rows of its pass are known by their ids: at the front. */
export function mayBeginAgain({ feed }: FoldedChain): boolean {
  return feed !== null && !feed.forgot && (feed.pass === 'whole' || feed.pass === 'front')
}

export function lostPlace(chain: ChainProgress, why: string, cause?: ExportError): ExportError {
  const { query, current } = chain
  // A glob would name the pruned windows, too, and bring them back.
  const redo = chain.isPruned ? current.key : `${query.name}/*`
  return new ExportError({
    kind: 'refused',
    what: `${why}, and a feed can be read on from nowhere else without losing or doubling rows`,
    where: current.key,
    next: `Run with --redo '${redo}': it reads the feed again from its beginning, and what is exported stays until that is complete. Nothing was skipped.`,
    ...(cause === undefined ? {} : { cause }),
  })
}
