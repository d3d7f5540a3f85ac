import { windowRange } from '../../../core/index.ts'
import type { ExtractedPage } from '../../../extract/index.ts'
import { folderOf, ownsFolder } from '../../../load/index.ts'
import { countOfIds, type DecodedPage, type PageIds, type Position, withPage } from '../../../rows/index.ts'
import {
  afterFeedPage,
  chainEntry,
  encodeIds,
  type FeedProgress,
  type JournalEntry,
  NEW_FEED,
  type PageEntry,
  schemaToJson,
} from '../../../state/index.ts'
import { endedEntry, failEnded } from '../chain-failure.ts'
import type { ChainProgress } from '../chain-progress.ts'
import type { ChainsContext } from '../run-context.ts'
import type { PartitionEvents } from '../tally.ts'
import { nextPass, type ReadEnds } from './next-pass.ts'
import { type PageProgress, positionAfter, progressOf } from './page-progress.ts'
import { excessesOf, invalidItemOf, type PartitionFault, quarantineOf } from './quarantine.ts'
import { keptBefore, type Untils } from './restart.ts'
import { type SplitPage, splitByWindow } from './split-by-window.ts'

/** Commits the pages of one chain. The file reads downwards, in the order of a page's steps. */
export class PageCommits {
  readonly #run: ChainsContext
  readonly #chain: ChainProgress
  readonly #events: PartitionEvents
  /** The ids of the last pages, by which rows are recognized that the service repeats. */
  recent: readonly PageIds[] = []
  /** Of the pages whose ids are in the log. */
  untils: Untils = []
  /** Committed with the next page, the first one without the cursor: an outage leaves a cursor as it is. */
  restart: JournalEntry | null = null
  /** Requests sent for pages that are not committed yet. */
  requests = 0
  pages = 0
  /** Which ends of a feed this run has read. */
  read: ReadEnds = { front: false, end: false }

  constructor(chain: ChainProgress, run: ChainsContext, events: PartitionEvents) {
    this.#run = run
    this.#chain = chain
    this.#events = events
  }

  /** Assigns the rows of a page to windows: not before the page before it is committed, which may hand some of them over. */
  split(page: ExtractedPage): SplitPage {
    return splitByWindow(page, this.#chain, (index) => this.#folderOf(index))
  }

  #folderOf(index: number): string {
    const { extract, load } = this.#run.pipeline
    return folderOf(extract.resource, this.#chain.partitionAt(index), load.partitionBy)
  }

  /** @throws PartitionFault for too many rejected items, behind this page; under `on_invalid: fail` for any, before */
  async commit(split: SplitPage): Promise<void> {
    const { pipeline } = this.#run
    const invalid = invalidItemOf(split, this.#chain, pipeline.transform)
    if (invalid !== null) throw invalid
    const excess = await this.#commitRows(split)
    if (excess !== null) throw excess
  }

  /** @returns the fault of the partition in progress; null: there is none */
  async #commitRows(split: SplitPage): Promise<PartitionFault | null> {
    const chain = this.#chain
    const { session, measurements, pipeline } = this.#run
    const { page, requests, size, ms, slices, rows, rejected, forgotten } = split
    const { folded, windows } = chain
    const items = quarantineOf(split, chain)
    const excesses = (indexes: readonly number[]) => excessesOf(split, chain, pipeline.transform, indexes)
    const position = positionAfter(folded, page, windows.order)
    const progress = progressOf(split, chain, position)
    const feed = chain.feedWindows === null ? null : this.#ofFeed(split, folded?.feed ?? NEW_FEED)
    const ended = excesses(progress.finished)
    const inProgress = feed === null ? (progress.isLast ? [] : [progress.watermark]) : [...rejected.keys()]
    const [excess = null] = excesses(inProgress)
    // No page after the last one could repeat its rows.
    const recent = feed?.ids ?? (progress.isLast ? this.recent : withPage(this.recent, page.ids))
    const blobs = items.map(({ lines }) => lines)
    const keep =
      feed !== null || folded === undefined
        ? 0
        : keptBefore(folded, this.untils, page.ids, position, windows.order)
    const hasIds = recent !== this.recent && countOfIds(page.ids) > 0
    const until = position === null ? null : BigInt(position.at)
    const ids = hasIds ? { ids: { blob: blobs.push(encodeIds({ ids: page.ids, until })) - 1, keep } } : {}
    const isMade = slices.length > 0 || (feed === null && page.next !== null)
    const entry: PageEntry = {
      kind: 'page',
      chain: chain.chain,
      next: page.next,
      requests,
      ...(size === folded?.size ? {} : { size }),
      ...(progress.watermark === chain.watermark ? {} : { watermark: progress.watermark }),
      ...(position === null || isSame(position, folded?.position) ? {} : { position }),
      ...(items.length === 0
        ? {}
        : { quarantine: items.map(({ window, items }, blob) => ({ window, items, blob })) }),
      ...(forgotten.size === 0 ? {} : { forgotten: this.#byWindow(forgotten) }),
      ...(page.repeated === 0 || feed !== null ? {} : { repeated: page.repeated }),
      ...ids,
      ...(feed === null ? {} : { feed: feed.entry }),
      ...(feed === null || !isMade || folded?.schema === chain.schema ? {} : { schema: chain.schema }),
      ...(Object.keys(page.unknownFields).length === 0 ? {} : { unknown_fields: page.unknownFields }),
    }
    const begin: JournalEntry[] = this.restart === null ? [] : [this.restart]
    if (isMade) begin.push(...this.#newSchema())
    if (folded === undefined)
      begin.push(
        chainEntry(chain.chain, chain.query.name, windows, feed === null ? null : NEW_FEED, chain.schema),
      )
    const advanced = chain.advanced
    await session.shards.commit({
      slices,
      close: this.#foldersToClose(progress, rows),
      entries: (placement) => [
        ...begin,
        { ...entry, ...placement },
        ...measurements.entries([size, ms]),
        ...ended.map((fault) => endedEntry(fault, chain)),
      ],
      blobs,
    })
    this.restart = null
    this.recent = recent
    if (hasIds) this.untils = [...this.untils.slice(this.untils.length - keep), until]
    chain.committed(progress.watermark)
    this.#run.tally.advanced += chain.advanced - advanced
    const isEnded = (index: number): boolean => ended.some((fault) => fault.index === index)
    const done = { ...progress, finished: progress.finished.filter((index) => !isEnded(index)) }
    this.#count(split, done)
    this.#events.committed(done)
    for (const fault of ended) failEnded(chain, fault, this.#events, this.#run)
    await measurements.enterMonth(session.journal)
    return excess
  }

  /** A data set gains columns with the first rows that have them. */
  #newSchema(): readonly JournalEntry[] {
    const { journal, own } = this.#run.session
    if (this.#chain.schema !== own.number || own.number < journal.state.schemas.length) return []
    return [{ kind: 'schema', schema: own.number, ...schemaToJson(own.schema) }]
  }

  #byWindow(items: ReadonlyMap<number, number>): NonNullable<PageEntry['forgotten']> {
    const windows = this.#chain.feedWindows ?? this.#chain.windows
    return [...items].map(([index, items]) => ({ window: windowRange(windows.at(index)), items }))
  }

  #ofFeed({ page, size }: SplitPage, feed: FeedProgress) {
    const over = page.next === null || (feed.pass === 'front' && page.met)
    const change = {
      isOver: over,
      ids: countOfIds(page.ids) === 0 ? null : page.ids,
      cursor: this.#chain.folded?.next ?? null,
      size,
      next: page.next,
    }
    const after = afterFeedPage(feed, this.recent, change, countOfIds)
    if (page.next === null) this.read.end = true
    const isMore = over && nextPass(after.feed, this.read) !== null
    return { entry: { over, ...(isMore ? { more: true as const } : {}) }, ids: after.ids }
  }

  /** Folders that can get no more rows and may have an open shard. */
  #foldersToClose(
    { finished, reopened }: PageProgress,
    rows: ReadonlyMap<number, number>,
  ): readonly string[] {
    const { pipeline, counts } = this.#run
    if (ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) {
      const hasRows = (index: number): boolean =>
        rows.has(index) || (this.#chain.foldedAt(index)?.rows ?? 0) > 0
      return finished.filter(hasRows).map((index) => this.#folderOf(index))
    }
    const { unfinished } = counts
    const change = (index: number, by: number): readonly string[] => {
      const folder = this.#folderOf(index)
      const left = (unfinished.get(folder) ?? 0) + by
      if (left > 0) unfinished.set(folder, left)
      else unfinished.delete(folder)
      return left > 0 ? [] : [folder]
    }
    for (const index of reopened) change(index, 1)
    return finished.flatMap((index) => change(index, -1))
  }

  #count(split: SplitPage, { finished, reopened }: PageProgress): void {
    const chain = this.#chain
    // Without those of windows that another chain has.
    const rows = [...split.rows.values()].reduce((sum, each) => sum + each, 0)
    const page = { ...(chain.feedWindows === null ? split.page : countedOfFeed(split)), rows }
    const { tally, options } = this.#run
    const log = options.onLog
    this.requests -= split.requests
    this.pages++
    if (page.repeated > 0 && tally.repeated === 0) {
      const message = 'the service repeats rows on later pages; each is exported once'
      log('warn', message, { partition: chain.current.key, repeated: page.repeated })
    }
    if (reopened.length > 0 && !tally.hasReopened) {
      const message = 'late rows for finished partitions; they are written to additional shards'
      log('warn', message, { partition: chain.partitionAt(reopened[0]!).key })
    }
    tally.page(page)
    for (const index of reopened) tally.reopen(chain.partitionAt(index).key)
    for (const index of finished) tally.finish(chain.partitionAt(index).key)
    const fields = tally.newFields(page)
    if (fields.length > 0) {
      const message =
        'the service sends fields that are not exported; transform.extra_columns adds them as columns'
      log('warn', message, { fields: fields.join(', ') })
    }
  }
}

function isSame(position: Position, before: Position | null | undefined): boolean {
  return before?.at === position.at && before.late === position.late
}

/** What counts of a page of a feed: its last page, or its front, is requested again on purpose. */
function countedOfFeed({ page, rejected }: SplitPage): DecodedPage {
  const quarantined = [...rejected.values()].flat()
  return { ...page, items: page.items - page.repeated, repeated: 0, quarantined }
}
