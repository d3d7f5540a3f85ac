import { pipeline as streamPipeline } from 'node:stream/promises'
import {
  type DecodedPage,
  type DecodePage,
  ExportError,
  int64FromJson,
  isExportError,
  type JournalEntry,
  type PageEntry,
  type Pipeline,
  type Restart,
  type RowBatch,
  SeenCursors,
  type Store,
} from '../../core/index.ts'
import {
  type Ahead,
  type Chain,
  ChainSize,
  type ExtractedPage,
  extractPages,
  type PageSizes,
  PageTooLarge,
  type Service,
  type Sizing,
} from '../../extract/index.ts'
import { folderOf, ownsFolder, type Places, type ShardSet } from '../../load/index.ts'
import {
  type ChainRecord,
  type Checkpoint,
  chainLine,
  type IdLog,
  newIdLog,
  openIdLog,
  splitPath,
} from '../../state/index.ts'
import type { ChainWork } from './chain-work.ts'
import type { MeasureNotes } from './measure-notes.ts'
import type { Quarantine } from './quarantine.ts'
import { excessOf, type PartitionFault } from './quarantine-limit.ts'
import { type SplitPage, splitByWindow } from './split-by-window.ts'
import { withoutSecrets } from './without-secrets.ts'

export type ChainDeps = {
  readonly pipeline: Pipeline
  /** The `query_value` column. */
  readonly queryValue: string
  /** What a secret query asks for; null for other queries. */
  readonly secret: string | null
  readonly service: Service
  readonly decode: DecodePage
  /** Called with each page whose rows are not needed any more. */
  readonly release: (page: DecodedPage) => void
  readonly store: Store
  readonly shards: ShardSet<JournalEntry>
  readonly checkpoint: Checkpoint
  readonly quarantine: Quarantine
  /** Called before each commit; what it returns, after it, also when it failed. */
  readonly onCommit: () => () => void
  /** A copy of a page's rows for whoever looks on; null: nobody does. */
  readonly copyRows: (page: DecodedPage) => RowBatch | null
  /** Called after each commit. */
  readonly onPage: (committed: CommittedPage) => Promise<void>
  /** Awaited after each commit, before another page is asked for. */
  readonly beforeNext: () => Promise<void>
  /** Called before each request. */
  readonly onRequest: () => void
  /** For pages that are asked for before the one before them is committed. */
  readonly ahead: Ahead
  readonly sizes: PageSizes
  readonly notes: MeasureNotes
  readonly warn: (message: string, fields: Readonly<Record<string, string | number>>) => void
}

/** What a page has brought, once it is on record. */
export type CommittedPage = {
  readonly page: DecodedPage
  /** Its rows, where somebody looks on: those of the page itself may be gone. */
  readonly batch: RowBatch | null
  /** Sent for it, retries included. */
  readonly requests: number
  /** Places of the windows that are done now and were not before. */
  readonly finished: readonly number[]
  /** Places of windows that were done, and are open again for rows that came late. */
  readonly reopened: readonly number[]
}

/** How a chain is followed; it may take several sequences of cursors. */
type Way = {
  readonly size: ChainSize
  /** Requests sent and not counted with a page yet. */
  requests: number
  /** Pages that were committed. */
  pages: number
  /** Whether its present sequence of cursors is left for one of another size. */
  isLeft: boolean
  /** Whether the page that is asked for has to be of the size that its cursor was given for. */
  isBound: boolean
  /** Whether that was said. */
  isBoundTold: boolean
}

/**
 * Follows one chain from wherever the checkpoint says it stands. When the service refuses the saved cursor, or the ids of
 * the last pages are lost, by which a row that comes again is known, the chain starts again after the last committed
 * row, where that can be done without repeating any, and without mixing the rows of two secrets. The same way leads to
 * pages of another size: everything but the cursor has to stay the same along a sequence of cursors.
 * @throws ExportError of the kinds that end a chain or the run; a {@link PartitionFault} for one of its partitions
 */
export async function exportChain(chain: ChainWork, deps: ChainDeps): Promise<void> {
  const { store, pipeline } = deps
  const { standing } = chain
  const before = deps.checkpoint.state.partitions.get(standing.key)
  const excess = excessOf(standing, chain.passed, pipeline.transform, before)
  if (excess !== null) throw excess
  let ids = await openIdLog(store, chain.chain, chain.record?.ids ?? null)
  if (ids === null) {
    await restart(chain, LOST_IDS, deps)
    ids = newIdLog(store, chain.chain)
  }
  try {
    const way: Way = {
      size: new ChainSize(deps.sizes, chain.query.name, deps.sizes.startOf(chain.query.name)),
      requests: 0,
      pages: 0,
      isLeft: false,
      isBound: false,
      isBoundTold: false,
    }
    await takeUpSize(chain, way, deps)
    for (let isRefused = false, isOver = false; !isOver; ) {
      try {
        isOver = await followChain(chain, ids, way, deps)
      } catch (error) {
        if (error instanceof PageTooLarge) await askForLess(chain, error, way, deps)
        else if (isRefused || !isExportError(error, 'cursor')) throw error
        else {
          isRefused = true
          await restart(chain, REFUSED_CURSOR, deps, error)
        }
      }
    }
    if (chain.record === undefined) await ids.remove()
  } finally {
    await ids.close()
  }
}

const REFUSED_CURSOR = 'The service refuses the saved cursor'
const LOST_IDS = 'The ids of the last pages are damaged or gone'

/** Where a cursor was given for another size than the one to go on with, it is left, if that can be done. */
async function takeUpSize(chain: ChainWork, way: Way, deps: ChainDeps): Promise<void> {
  const { record, query } = chain
  if (record?.next == null || record.size === null) return
  const { most } = deps.sizes
  const start = deps.sizes.startOf(query.name)
  const hasOther = record.size > start || (record.size < start && start === most)
  const since = hasOther ? restartPoint(chain, way, deps) : null
  if (hasOther && since !== null) {
    await leaveCursors(chain, since, deps)
    return
  }
  way.size.keep(record.size)
  if (record.size > most) tellBound(chain, way, deps)
}

/** The service could not serve a page: half as many rows are asked for from then on, where the cursor can be left. */
async function askForLess(chain: ChainWork, error: PageTooLarge, way: Way, deps: ChainDeps): Promise<void> {
  const hasCursor = chain.record?.next != null
  const since = hasCursor ? restartPoint(chain, way, deps) : null
  if (hasCursor && since === null) {
    way.isBound = true
    tellBound(chain, way, deps)
    return
  }
  way.size.shrink(error.ms, error.what)
  if (since !== null) await leaveCursors(chain, since, deps)
  else await deps.checkpoint.append(deps.notes.facts(null))
}

function tellBound(chain: ChainWork, way: Way, { warn }: ChainDeps): void {
  if (way.isBoundTold) return
  way.isBoundTold = true
  const message =
    'the size of pages can not be changed here: there is no safe place to go on but the cursor, which was given for this size'
  warn(message, { partition: chain.standing.key, page_size: way.size.size })
}

/** A place after the last committed row; `null` inside: the chain's beginning. */
type RestartPoint = { readonly since: { at: Restart['at']; ids: Restart['ids'][number][] } | null }

/** @returns null where rows might come twice or be lost, or be those of another secret */
function restartPoint(chain: ChainWork, way: Way, { pipeline }: ChainDeps): RestartPoint | null {
  const { record, query } = chain
  if (record === undefined) return null
  if (!chain.hasItems()) return { since: null }
  // The service refuses the cursor of another secret. Until it has taken this one, the variable may have changed.
  if (query.type === 'secret' && pipeline.transform.secret !== 'hmac' && way.pages === 0) return null
  const { position } = record
  if (position === null || position.ids === null) return null
  return { since: { at: position.at, ids: [...position.ids] } }
}

async function leaveCursors(
  { chain }: ChainWork,
  { since }: RestartPoint,
  { checkpoint, notes }: ChainDeps,
): Promise<void> {
  await checkpoint.append([...notes.facts(null), { kind: 'restart', chain, since }])
}

/**
 * The way of a page: asked for and decoded, its rows given to their windows, all of it made durable.
 * @returns whether the chain is over; else it goes on with pages of another size
 */
async function followChain(work: ChainWork, ids: IdLog, way: Way, deps: ChainDeps): Promise<boolean> {
  const { extract, load } = deps.pipeline
  const { record } = work
  const chain: Chain = {
    query: work.query,
    asked: work.asked,
    own: () => work.windows.range,
    partition: () => work.standing.key,
    isOver: () => work.isOver,
    queryValue: deps.queryValue,
    secret: deps.secret,
    include: extract.include,
    order: extract.order,
    pageSize: way.size.size,
    sizing: extract.resource === 'reports' ? null : sizingOf(work, way, deps),
    requestsBefore: way.requests,
    cursor: record?.next ?? null,
    since: record?.since ?? null,
    recent: ids.recent,
    page: record?.pages ?? 0,
    seen: new SeenCursors(record?.seen),
    onRequest: () => {
      way.requests++
      deps.onRequest()
    },
    ahead: deps.ahead,
  }
  way.isLeft = false
  const decode = withoutSecrets(deps.decode, deps.release)
  const folder = (place: number): string =>
    folderOf(extract.resource, work.partitionAt(place), load.partitionBy)
  await streamPipeline(
    counting(extractPages(deps.service, chain, decode, deps.release), way),
    splitByWindow(work, folder),
    commitPages(work, ids, deps),
  )
  if (!way.isLeft) return true
  const since = restartPoint(work, way, deps)
  if (since === null) throw new Error('a chain left its cursors without a place to go on')
  await leaveCursors(work, since, deps)
  return false
}

function sizingOf(work: ChainWork, way: Way, deps: ChainDeps): Sizing {
  const { size } = way
  return {
    get canShrink() {
      return size.canShrink && !way.isBound
    },
    get mayGrowNext() {
      return size.mayGrowNext
    },
    served: (page) => size.served(page),
    leaveCursors() {
      if (restartPoint(work, way, deps) === null) return false
      size.grow()
      way.isLeft = true
      return true
    },
  }
}

/** Counts pages that were taken, and what was sent for them. */
async function* counting(pages: AsyncIterable<ExtractedPage>, way: Way): AsyncGenerator<ExtractedPage> {
  for await (const page of pages) {
    way.requests -= page.requests
    yield page
    way.pages++
    way.isBound = false
  }
}

/** Has the chain start again after its last row. @throws ExportError `refused` when there is no such place */
async function restart(chain: ChainWork, why: string, deps: ChainDeps, cause?: ExportError): Promise<void> {
  const { record } = chain
  if (record === undefined) throw cause ?? new Error('a chain without a page has nothing to lose')
  // With neither rows nor refused items on record it can start from its beginning.
  const isEmpty = !chain.hasItems()
  if (cause !== undefined && !isEmpty) requireSameSecret(chain, deps.pipeline, cause)
  const position = isEmpty ? null : restartPosition(chain, record, why, cause)
  const since = position === null ? null : { at: position.at, ids: [...position.ids] }
  deps.warn(`${why.charAt(0).toLowerCase()}${why.slice(1)}; going on after the last committed row`, {
    partition: chain.standing.key,
  })
  await deps.checkpoint.append([{ kind: 'restart', chain: chain.chain, since }])
}

/** Makes one page durable after the other: refused items and ids, then rows, then the one line that counts. */
function commitPages(
  chain: ChainWork,
  ids: IdLog,
  deps: ChainDeps,
): (pages: AsyncIterable<SplitPage>) => Promise<void> {
  return async (pages) => {
    for await (const split of pages) {
      const isOver = deps.onCommit()
      try {
        await commitPage(split, chain, ids, deps)
      } finally {
        isOver()
        deps.release(split.page)
      }
      if (split.page.next !== null && !chain.isOver) await deps.beforeNext()
    }
  }
}

async function commitPage(split: SplitPage, chain: ChainWork, ids: IdLog, deps: ChainDeps): Promise<void> {
  const { page, requests, size, ms, pieces, rows, refused } = split
  const { quarantine } = deps
  const { record, windows } = chain
  // The page does not count then: it is asked for again, in case the service has mended it or the limit was raised.
  // Until then its items are in the quarantine file, where they can be looked at.
  const fault = faultOf(split, chain, deps.pipeline)
  const items = await quarantine.append(chain, page, refused)
  if (fault !== null) throw fault
  const position = positionAfter(record, page, windows.order)
  const { passed, isLast, finished, reopened } = progressOf(split, chain, position)
  await quarantine.tidy(chain, finished)
  // After the last page there is none that could repeat its rows.
  const mark = isLast ? null : await ids.append(page.ids)
  const facts: Omit<PageEntry, 'pieces' | 'logged'> = {
    kind: 'page',
    chain: chain.chain,
    next: page.next,
    requests,
    ...(size === record?.size ? {} : { size }),
    ...(passed === chain.passed ? {} : { passed }),
    ...position,
    ...(items.length === 0 ? {} : { quarantine: items }),
    ...(page.repeated === 0 ? {} : { repeated: page.repeated }),
    ...(mark === null ? {} : { ids: mark }),
    ...(Object.keys(page.unknownFields).length === 0 ? {} : { unknown_fields: page.unknownFields }),
  }
  const begin: JournalEntry[] =
    record === undefined ? [chainLine(chain.chain, chain.query.name, windows)] : []
  const batch = deps.copyRows(page)
  await deps.shards.commit({
    pieces,
    close: foldersToClose(chain, finished, rows, deps),
    lines: (places) => [...begin, { ...facts, ...placesOf(places) }, ...deps.notes.facts([size, ms])],
  })
  chain.committed(passed)
  await deps.onPage({ page, batch, requests, finished, reopened })
}

/** What a page means for the windows of its chain; all by their places. */
type WindowProgress = Pick<CommittedPage, 'finished' | 'reopened'> & {
  /** How many nothing more can come for. */
  readonly passed: number
  readonly isLast: boolean
}

function progressOf(
  { page, rows, refused }: SplitPage,
  chain: ChainWork,
  position: Pick<PageEntry, 'position'>,
): WindowProgress {
  const { count } = chain.windows
  const passed = passedAfter(chain, page, position)
  const isLast = page.next === null || passed >= count
  const isDone = (place: number): boolean => chain.recordAt(place)?.state === 'done'
  const touched = new Set([...rows.keys(), ...refused.keys()])
  const reopened = new Set([...touched].filter((place) => place < chain.passed && isDone(place)))
  const finished: number[] = []
  // Whatever came late was open until now.
  for (let place = isLast ? 0 : chain.passed; place < (isLast ? count : passed); place++) {
    if (!isDone(place) || reopened.has(place)) finished.push(place)
  }
  return { passed, isLast, finished, reopened: [...reopened] }
}

function placesOf({ placed, logged }: Places): Pick<PageEntry, 'pieces' | 'logged'> {
  if (placed.length === 0) return {}
  const pieces = placed.map(({ partition, shard, rows, importedAt }) => ({
    window: splitPath(partition)[1],
    shard,
    rows,
    imported_at: importedAt,
  }))
  return { pieces, ...(logged.length === 0 ? {} : { logged: [...logged] }) }
}

/** Folders that nothing more can come into, as far as they can have an open shard. */
function foldersToClose(
  chain: ChainWork,
  finished: readonly number[],
  rows: ReadonlyMap<number, number>,
  { pipeline: { extract, load } }: ChainDeps,
): readonly string[] {
  if (!ownsFolder(extract.resource, load.partitionBy)) return []
  const hasRows = (place: number): boolean => rows.has(place) || (chain.recordAt(place)?.rows ?? 0) > 0
  return finished
    .filter(hasRows)
    .map((place) => folderOf(extract.resource, chain.partitionAt(place), load.partitionBy))
}

/** The first partition on the chain's way for which this page has too many refused items. */
function faultOf(
  { rows, refused }: SplitPage,
  chain: ChainWork,
  { transform }: Pipeline,
): PartitionFault | null {
  for (const place of [...new Set([...rows.keys(), ...refused.keys()])].sort((a, b) => a - b)) {
    const added = {
      rows: rows.get(place) ?? 0,
      refused: refused.get(place) ?? [],
      page: chain.record?.pages ?? 0,
    }
    const fault = excessOf(chain.partitionAt(place), place, transform, chain.recordAt(place), added)
    if (fault !== null) return fault
  }
  return null
}

/** How many windows nothing more can come for. The last one is open until the service says that there is no more. */
function passedAfter(chain: ChainWork, page: DecodedPage, { position }: Pick<PageEntry, 'position'>): number {
  const { windows, passed, record } = chain
  if (page.next === null) return windows.count
  const isInOrder = (record?.inOrder ?? true) && position !== null
  const at = position ?? record?.position ?? null
  if (!isInOrder || at === null) return passed
  // What another chain has taken over need not be waited for.
  const most = chain.isShortened ? windows.count : windows.count - 1
  return Math.max(passed, Math.min(most, windows.passedAt(int64FromJson(at.at))))
}

// Beyond this many rows with one and the same time the place to start again is not kept.
const MAX_POSITION_IDS = 1000

/** How far the chain has come with this page: null once items were not in order of `imported_at`. */
function positionAfter(
  record: ChainRecord | undefined,
  page: DecodedPage,
  order: 'asc' | 'desc',
): Pick<PageEntry, 'position'> {
  if (page.items === page.repeated || page.next === null) return {}
  if (record?.inOrder === false) return {}
  if (page.span === null) return { position: null }
  const { first, last, lastIds } = page.span
  const before = record?.position ?? null
  const here = { position: { at: last, ids: lastIds === null ? null : [...lastIds] } }
  if (before === null) return here
  const [start, end] = [int64FromJson(first), int64FromJson(before.at)]
  if (order === 'asc' ? start < end : start > end) return { position: null }
  if (last !== before.at) return here
  if (before.ids === null || lastIds === null) return { position: { at: last, ids: null } }
  const ids = [...new Set([...before.ids, ...lastIds])]
  return { position: { at: last, ids: ids.length > MAX_POSITION_IDS ? null : ids } }
}

/**
 * A service refuses the cursor of another query; for a secret query that may be one whose variable has changed. Only
 * where secrets are masked by hmac has the checkpoint told already that it has not.
 */
function requireSameSecret(
  { query, standing }: ChainWork,
  { transform }: Pipeline,
  cause: ExportError,
): void {
  if (query.type !== 'secret' || transform.secret === 'hmac') return
  throw new ExportError(
    'refused',
    `The service refuses the saved cursor, and nothing tells whether ${query.secretEnv} still holds the secret whose rows are exported`,
    standing.key,
    `If ${query.secretEnv} was changed, restore it and run again; if it was not, the cursor has run out: export the query to another load.path, or start over with --fresh.`,
    { cause },
  )
}

/** @throws ExportError `refused` when there is no place where rows neither come twice nor are lost */
function restartPosition(
  { standing }: ChainWork,
  record: ChainRecord,
  why: string,
  cause?: ExportError,
): Restart {
  const { position } = record
  if (position !== null && position.ids !== null) return { at: position.at, ids: position.ids }
  const reason =
    position === null
      ? 'the rows did not come in order of imported_at'
      : 'the last rows have one and the same imported_at in great number'
  throw new ExportError(
    'refused',
    `${why}, and ${reason}, so there is no safe place to go on`,
    standing.key,
    'Export this query to another load.path, or start over with --fresh.',
    cause === undefined ? {} : { cause },
  )
}
