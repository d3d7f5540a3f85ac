import {
  batchFromFrame,
  columnsOf,
  type DecodedPage,
  decodeFrame,
  type ErrorKind,
  ExportError,
  isExportError,
  type NamedPipeline,
  type NamedQuery,
  type RowBatch,
  type Store,
} from '../../core/index.ts'
import {
  type Ahead,
  AnswerError,
  type PageSizes,
  type Service,
  UnreachableError,
} from '../../extract/index.ts'
import { folderOf, ownsFolder } from '../../load/index.ts'
import type { Plan, PlannedChain } from '../../plan/index.ts'
import { maskedQueryValue } from '../../transform/index.ts'
import type { Survey } from '../data-set/index.ts'
import type { Session } from '../session/index.ts'
import type { QuerySecrets, RunObserver, RunOptions } from '../setting/index.ts'
import type { ChainQueue } from './chain-queue.ts'
import { ChainWork } from './chain-work.ts'
import { type CommittedPage, exportChain } from './export-chain.ts'
import type { Halt } from './halt.ts'
import type { MeasureNotes } from './measure-notes.ts'
import type { MonthNotes } from './month-notes.ts'
import { PartitionEvents } from './partition-events.ts'
import type { Quarantine } from './quarantine.ts'
import { PartitionFault } from './quarantine-limit.ts'
import { lackOfRoom } from './room.ts'
import type { Tally } from './tally.ts'

export type ExportContext = {
  readonly pipeline: NamedPipeline
  readonly store: Store
  readonly session: Session
  readonly plan: Plan
  readonly work: Survey
  readonly tally: Tally
  readonly secrets: QuerySecrets
  readonly options: RunOptions
  readonly months: MonthNotes
  /** Requests of the run before a break, which count against its budget. */
  readonly sentBefore: number
  /** The same of searches spent. */
  readonly spentBefore: number
}

// So many chains that fail one after the other, with nothing usable in between, are one trouble, not
// many; going on would only spend requests on it.
const MAX_FAILURES_IN_ROW = 20

export type LaneWork = {
  /** Pages of the chain that are committed. */
  pages: number
}

export type Surroundings = {
  readonly work: LaneWork
  readonly service: Service
  readonly ahead: Ahead
  readonly sizes: PageSizes
  readonly notes: MeasureNotes
  readonly halt: Halt
  readonly doubt: Doubt
  readonly report: () => void
  readonly queue: ChainQueue
  readonly quarantine: Quarantine
}

/** A chain as this run is to follow it; null: not at all. */
export async function takeUp(planned: PlannedChain, { session }: ExportContext): Promise<ChainWork | null> {
  const { checkpoint } = session
  const { state } = checkpoint
  if (planned.kind === 'new') {
    const { query, windows } = planned
    return new ChainWork(state, { chain: session.nextChain(), query, windows, wanted: windows.count })
  }
  const { chain, query, wanted, keep } = planned
  if (keep !== null) await checkpoint.append([{ kind: 'shorten', chain, windows: keep }])
  const record = state.chains.get(chain)
  if (record === undefined || wanted === 0) return null
  return new ChainWork(state, { chain, query, windows: record.windows, wanted })
}

export async function exportOne(
  chain: ChainWork,
  context: ExportContext,
  surroundings: Surroundings,
): Promise<void> {
  const { pipeline, store, session, tally, options } = context
  const { service, ahead, sizes, notes, halt, doubt, report, quarantine, work } = surroundings
  // Requests sent for pages that are not committed yet.
  let requests = 0
  // A page that was asked for ahead still comes in: there is room for as many as may be in flight.
  const haltWithoutRoom = async (): Promise<void> => {
    const lack = await lackOfRoom(pipeline, store)
    if (lack !== null) halt.because(lack)
  }
  await haltWithoutRoom()
  if (halt.halted) return
  let come = chain.come
  const events = new PartitionEvents(chain, options.observer.log)
  events.begin()
  try {
    const secret = secretOf(chain.query, context)
    await exportChain(chain, {
      pipeline,
      queryValue: queryValueOf(chain.query, secret, context),
      secret,
      service,
      store,
      shards: session.shards,
      checkpoint: session.checkpoint,
      quarantine,
      decode: session.cpu.decode,
      release: session.cpu.release,
      onRequest: () => {
        requests++
        // They get ready while the answer is on its way.
        session.cpu.start()
        report()
      },
      ahead,
      sizes,
      notes,
      onCommit: () => tally.committing(options.clock.now()),
      copyRows: (page) => copyRows(page, pipeline, options.observer),
      onPage: async (committed) => {
        requests -= committed.requests
        work.pages++
        tally.advanced += chain.come - come
        come = chain.come
        countPage(committed, chain, context)
        events.committed(committed)
        await context.months.settle(service)
        if (committed.batch !== null) await options.observer.rows?.(committed.batch)
        await doubt.settle()
        await leaveFolders(committed, chain, context)
        report()
      },
      beforeNext: haltWithoutRoom,
      warn: (message, fields) => options.observer.log('warn', message, fields),
    })
    tally.chain(work.pages)
  } catch (error) {
    if (!isExportError(error)) throw error
    if (!OWN_TROUBLE.has(error.kind)) return halt.because(error)
    await giveUp(chain, error, { requests, events }, context, surroundings)
  }
}

function copyRows(
  { frame, rows }: DecodedPage,
  pipeline: NamedPipeline,
  observer: RunObserver,
): RowBatch | null {
  if (observer.rows === undefined || frame === null || rows === 0) return null
  return batchFromFrame(decodeFrame(frame), columnsOf(pipeline))
}

function countPage(
  { page, finished, reopened }: CommittedPage,
  chain: ChainWork,
  { tally, options }: ExportContext,
): void {
  if (page.repeated > 0 && tally.repeated === 0) {
    const message = 'the service repeats rows from page to page; each is exported once'
    options.observer.log('warn', message, { partition: chain.standing.key, repeated: page.repeated })
  }
  if (reopened.length > 0 && tally.reopened === 0) {
    const message = 'rows came late, for partitions that were done; they go into shards of their own'
    options.observer.log('warn', message, { partition: chain.partitionAt(reopened[0]!).key })
  }
  tally.page(page, chain.query.name)
  tally.reopened += reopened.length
  tally.done += finished.length - reopened.length
  for (const field of tally.newFields(page)) {
    options.observer.log('warn', 'the service sends a field that is not known and not exported', { field })
  }
}

/** Seals the shards of shared folders once nothing more is to come into them. */
async function leaveFolders(
  { finished, reopened }: CommittedPage,
  chain: ChainWork,
  { pipeline, session, work }: ExportContext,
): Promise<void> {
  const { extract, load } = pipeline
  if (ownsFolder(extract.resource, load.partitionBy)) return
  const left: string[] = []
  const count = (place: number, change: number): void => {
    const folder = folderOf(extract.resource, chain.partitionAt(place), load.partitionBy)
    const unfinished = (work.unfinished.get(folder) ?? 0) + change
    if (unfinished > 0) work.unfinished.set(folder, unfinished)
    else {
      work.unfinished.delete(folder)
      left.push(folder)
    }
  }
  for (const place of reopened) count(place, 1)
  for (const place of finished) count(place, -1)
  if (left.length > 0) await session.shards.seal(left)
}

/**
 * Puts on record that a partition failed. What its chain would have brought behind it is for another chain, unless the
 * service refused the query from the beginning: then it would refuse that as well.
 */
async function giveUp(
  chain: ChainWork,
  error: ExportError,
  { requests, events }: { readonly requests: number; readonly events: PartitionEvents },
  context: ExportContext,
  { service, halt, doubt, queue }: Surroundings,
): Promise<void> {
  const { pipeline, session, tally, options } = context
  const { checkpoint } = session
  const { passed, windows, query } = chain
  const place = placeOfFault(chain, error)
  const { key } = chain.partitionAt(place)
  const isFailed = async (): Promise<void> => {
    const alike = tally.partitionFailed(key, error)
    events.failed(place, error, { requests, alike })
    const { kind, message } = error
    const refused = error instanceof PartitionFault ? error.refused : []
    tally.refused(refused)
    const inQuarantine = refused.length === 0 ? {} : { refused: refused.length }
    const failure = { kind, message, ...inQuarantine }
    await checkpoint.append([{ kind: 'failed', partition: key, requests, error: failure }])
  }
  if (error.kind === 'refused' && service.counters.notFound > 1) {
    doubt.drop()
    return halt.because(wrongAddress(service))
  }
  // One may be the fault of its query; of two, and nothing found, it is the address.
  if (isNotFound(error) && service.counters.notFound === 1) doubt.keep(isFailed)
  else {
    await doubt.settle()
    await isFailed()
  }
  const isRefused = error.kind === 'refused' && chain.record === undefined
  // Where it stands before the partition that failed it can go on up to there; else it waits there for the next run.
  const keep = place > passed ? place : place + 1
  // What is exported already another chain would bring again; as long as rows come in order nothing is.
  if (!isRefused && !chain.hasItems(keep)) {
    if (place + 1 < windows.count) {
      queue.add({ kind: 'new', query, windows: windows.part(place + 1, windows.count) })
    }
    if (chain.record !== undefined && keep < windows.count) {
      await checkpoint.append([{ kind: 'shorten', chain: chain.chain, windows: keep }])
    }
    if (place > passed) {
      if (chain.record === undefined) queue.add({ kind: 'new', query, windows: windows.part(0, place) })
      else queue.add({ kind: 'begun', query, chain: chain.chain, wanted: place, keep: null })
    }
  }
  if (options.failFast || isOutOfReach(error, service)) halt.because(error)
  else if (tally.failuresInRow >= MAX_FAILURES_IN_ROW) halt.because(tooManyFailures(pipeline, error))
}

/** Nothing was ever reached: it would be the same for all others. */
function isOutOfReach({ cause }: ExportError, { counters }: Service): boolean {
  return cause instanceof UnreachableError && !counters.isReached
}

function isNotFound(error: ExportError): boolean {
  return error.kind === 'refused' && error instanceof AnswerError && error.status === 404
}

/** The partition that fails: the one at fault if its chain has not gone past it, else the one it stands in. */
function placeOfFault({ passed, windows }: ChainWork, error: ExportError): number {
  if (error instanceof PartitionFault && error.place >= passed) return error.place
  return Math.min(passed, windows.count - 1)
}

/** Errors that concern one partition only. */
const OWN_TROUBLE: ReadonlySet<ErrorKind> = new Set(['transient', 'refused', 'cursor', 'data'])

function secretOf(query: NamedQuery, { secrets }: ExportContext): string | null {
  return query.type === 'secret' ? (secrets.get(query.secretEnv) ?? null) : null
}

function queryValueOf(
  query: NamedQuery,
  secret: string | null,
  { pipeline, options }: ExportContext,
): string {
  return maskedQueryValue(query, secret, { ...pipeline.transform, maskKey: options.maskKey })
}

/** A failure that is not told yet, because what comes next may show that it is not that partition's own. */
export class Doubt {
  #tell: (() => Promise<void>) | null = null

  get holds(): boolean {
    return this.#tell !== null
  }

  keep(tell: () => Promise<void>): void {
    this.#tell = tell
  }

  drop(): void {
    this.#tell = null
  }

  async settle(): Promise<void> {
    const tell = this.#tell
    this.#tell = null
    await tell?.()
  }
}

/** No search was ever answered with anything but 404. */
export function wrongAddress({ endpoints: { search } }: Service): ExportError {
  return new ExportError(
    'config',
    'The service answers 404 to every search: nothing is at this address',
    `${search.origin}${search.pathname}`,
    'Correct service.base_url (its prefix segment is a part of it: https://api.example.com/firework) or service.search_path.',
  )
}

function tooManyFailures(pipeline: NamedPipeline, last: ExportError): ExportError {
  return new ExportError(
    last.kind,
    `${MAX_FAILURES_IN_ROW} partitions failed one after the other; the last: ${last.what}`,
    pipeline.service.baseUrl,
    'Run again when the service is well; what is committed stays.',
    { cause: last },
  )
}
