import {
  ExportError,
  figuresOf,
  isExportError,
  mayCost,
  type NamedPipeline,
  type NamedQuery,
  NOT_MEASURED,
  type RunStatus,
  serial,
  type WindowRun,
} from '../../core/index.ts'
import { openService, PageSizes, placesAhead, type Service } from '../../extract/index.ts'
import { ownsFolder } from '../../load/index.ts'
import { type CheckpointState, searchesByMonth } from '../../state/index.ts'
import type { Survey } from '../data-set/index.ts'
import { type Forecast, forecast } from '../data-set/index.ts'
import type { AllowedRequests, Progress } from '../setting/index.ts'
import { ChainQueue } from './chain-queue.ts'
import { Doubt, type ExportContext, exportOne, type LaneWork, takeUp, wrongAddress } from './export-one.ts'
import { Halt } from './halt.ts'
import { MeasureNotes } from './measure-notes.ts'
import { Quarantine } from './quarantine.ts'
import type { Tally } from './tally.ts'

export type Ending = {
  readonly status: RunStatus
  /** What stopped the run before its time; null when nothing did. */
  readonly error: ExportError | null
  readonly requests: number
  readonly retries: number
  readonly searchesSpent: number | null
  readonly searchesRemaining: number | null
}

/**
 * Follows every chain of the plan, `concurrency` at a time, which all share one pace. A partition that fails does not
 * stop the others; what concerns all of them (credentials, quota, disk, a signal) does, once the answers in hand are
 * committed.
 */
export async function exportAll(context: ExportContext): Promise<Ending> {
  const { pipeline, store, plan, session, work, tally, options } = context
  const halt = new Halt(options.stop)
  const service = openOwnService(context, halt, () => report())
  const report = (): void => options.observer.progress(progressOf(context, service))
  const { concurrency } = pipeline.extract
  const notes = new MeasureNotes(service, context.spentBefore)
  const sizes = pageSizes(context, notes)
  const seen = forecast(pipeline, session.checkpoint.state)
  const queue = new ChainQueue(plan.chains(), concurrency, (query, windows) =>
    mayNeedMore(query, windows, seen, sizes, context),
  )
  const lanes = new Lanes(concurrency)
  // As long as there is a chain for every lane, none reads ahead.
  const ahead = placesAhead(() => lanes.done)
  const doubt = new Doubt()
  // What a chain leaves to another is on record before that one begins.
  const inTurn = serial('stop')
  const lane = async (quarantine: Quarantine): Promise<void> => {
    for (;;) {
      const next = halt.halted ? null : queue.next(lanes.freeSoon)
      if (next === null) break
      const work = lanes.begin()
      try {
        const chain = await inTurn(() => takeUp(next, context))
        if (chain === null) continue
        await exportOne(chain, context, {
          service,
          ahead,
          sizes,
          notes,
          halt,
          doubt,
          report,
          queue,
          quarantine,
          work,
        })
      } catch (error) {
        halt.abort()
        throw error
      } finally {
        lanes.end(work)
      }
      report()
    }
    lanes.done++
  }
  try {
    report()
    // A crash may have come between the last page of a folder and the sealing of its shard.
    await sealShared(context, (folder) => !work.unfinished.has(folder))
    const quarantine = await Quarantine.open(store, pipeline.transform.onInvalid)
    await allSettled(Array.from({ length: concurrency }, () => () => lane(quarantine)))
    if (doubt.holds && !hasFound(session.checkpoint.state)) {
      doubt.drop()
      halt.because(wrongAddress(service))
    }
    await doubt.settle()
    // What the other partitions gave is to be read, whatever became of the failed ones.
    if (halt.error === null && tally.failed > 0) await sealShared(context, () => true)
    await context.months.settle(service)
    await session.checkpoint.append(notes.facts(null))
  } catch (error) {
    if (!isExportError(error)) throw error
    halt.because(error)
  } finally {
    await service.close()
  }
  const { requests, retries, searchesSpent, searchesRemaining } = service.counters
  const error = halt.error ?? interruption(options.stop, tally, work)
  return { status: statusOf(error, tally), error, requests, retries, searchesSpent, searchesRemaining }
}

/** The size of pages that each query goes on with, and a line in the log whenever one changes. */
function pageSizes({ pipeline, session, options }: ExportContext, notes: MeasureNotes): PageSizes {
  const { extract, service } = pipeline
  return new PageSizes(
    { most: extract.pageSize, timeoutMs: service.timeoutMs },
    session.checkpoint.state.service,
    (change, from, reason) => {
      notes.changed(change)
      const to = change.size ?? extract.pageSize
      const message =
        to < from ? 'the service could not serve a page; the next ones are smaller' : 'pages are larger now'
      options.observer.log(to < from ? 'warn' : 'info', message, {
        event: 'page_size',
        query: change.query,
        from,
        page_size: to,
        reason,
      })
    },
  )
}

function openOwnService(context: ExportContext, halt: Halt, onWait: () => void): Service {
  const { pipeline, session, options } = context
  return openService(
    pipeline.service,
    {
      ...pipeline.extract,
      sentBefore: context.sentBefore,
      monthly: monthlyLimit(context),
      connections: pipeline.extract.concurrency,
    },
    {
      clock: options.clock,
      readSecret: options.readSecret,
      stop: halt.signal,
      abort: options.abort,
      buffers: session.buffers,
      log: options.observer.log,
      measures: session.checkpoint.state.service,
      onWait,
    },
  )
}

function monthlyLimit({ pipeline, session }: ExportContext) {
  const { monthlySearches } = pipeline.extract
  if (monthlySearches === null) return null
  return { searches: monthlySearches, before: searchesByMonth(session.checkpoint.state.runs) }
}

/** Whether windows of a query are likely to need more than one request, going by what came before in time or in this run. */
function mayNeedMore(
  query: NamedQuery,
  windows: WindowRun,
  seen: Forecast,
  sizes: PageSizes,
  { tally }: ExportContext,
): boolean {
  const expected = seen.rowsOf(query.name, windows.range)
  if (expected !== null) return expected > sizes.startOf(query.name)
  return tally.pagesOfChains === null || tally.pagesOfChains >= 1.5
}

/** Whether any search of the data set was ever answered: then its address is right, or was. */
function hasFound({ partitions }: CheckpointState): boolean {
  for (const [, { pages }] of partitions) if (pages > 0) return true
  return false
}

/** How a run ends that this error stopped. */
export function statusFor(error: ExportError): RunStatus {
  if (error.kind === 'quota') return 'budget'
  return error.kind === 'interrupted' ? 'interrupted' : 'failed'
}

function statusOf(error: ExportError | null, tally: Tally): RunStatus {
  if (error !== null) return statusFor(error)
  return tally.failed > 0 ? 'failed' : 'complete'
}

/** A signal may come between two partitions, where nobody is there to throw. */
function interruption(stop: AbortSignal, tally: Tally, work: Survey): ExportError | null {
  if (!stop.aborted || tally.done + tally.failed === work.total) return null
  return new ExportError('interrupted', 'The run was told to stop', '', 'Run it again to go on.')
}

/** What the lanes of a run are at. */
class Lanes {
  /** How many have found nothing more to do. */
  done = 0
  readonly #count: number
  readonly #work = new Set<LaneWork>()

  constructor(count: number) {
    this.#count = count
  }

  /** Lanes that have nothing to do, or follow a chain that is on its way: it will end before one that begins now. */
  get freeSoon(): number {
    let busy = 0
    for (const { pages } of this.#work) if (pages === 0) busy++
    return this.#count - busy
  }

  begin(): LaneWork {
    const work = { pages: 0 }
    this.#work.add(work)
    return work
  }

  end(work: LaneWork): void {
    this.#work.delete(work)
  }
}

async function sealShared(
  { pipeline, session }: ExportContext,
  which: (folder: string) => boolean,
): Promise<void> {
  if (ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) return
  const folders = session.shards.openFolders.filter(which)
  if (folders.length > 0) await session.shards.seal(folders)
}

/** Waits for all, also when one fails: they hold the same files. */
async function allSettled(work: readonly (() => Promise<void>)[]): Promise<void> {
  const results = await Promise.allSettled(work.map((each) => each()))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

function progressOf(
  { pipeline, tally, work, sentBefore }: ExportContext,
  { counters, waits }: Service,
): Progress {
  return {
    partitionsTotal: work.total,
    partitionsDone: tally.done,
    partitionsDoneBefore: tally.doneBefore,
    partitionsAdvanced: tally.advanced,
    partitionsFailed: tally.failed,
    rows: tally.rows,
    requests: counters.requests,
    retries: counters.retries,
    quarantined: tally.quarantined,
    searchesSpent: counters.searchesSpent,
    searchesRemaining: counters.searchesRemaining,
    requestsAllowed: allowedOf(pipeline, counters, sentBefore),
    pausedUntilMs: counters.pausedUntilMs,
    waits: { ...waits, diskSinceMs: tally.committingSinceMs },
  }
}

/** The narrower of the budget of the run and what may be taken of the quota. */
function allowedOf(
  { extract: { resource, pageSize, maxRequests, minSearchesRemaining } }: NamedPipeline,
  { requests, searchesRemaining, costs }: Service['counters'],
  sentBefore: number,
): AllowedRequests | null {
  const budget = maxRequests === null ? Number.POSITIVE_INFINITY : maxRequests - sentBefore - requests
  const isFree = resource === 'reports' || searchesRemaining === null
  const quota = isFree
    ? Number.POSITIVE_INFINITY
    : Math.max(0, searchesRemaining - (minSearchesRemaining ?? 0)) /
      (figuresOf({ ...NOT_MEASURED, costs }).searchesPerRequest || mayCost(costs, pageSize))
  const allowed = Math.min(budget, quota)
  return Number.isFinite(allowed)
    ? { requests: Math.floor(allowed), by: budget <= quota ? 'budget' : 'quota' }
    : null
}
