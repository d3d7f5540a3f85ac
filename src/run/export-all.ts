import {
  type ErrorKind,
  ExportError,
  isExportError,
  type Partition,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import { type Ahead, openService, placesAhead, type Service } from '../extract/index.ts'
import { folderOf, ownsFolder } from '../load/index.ts'
import type { Plan } from '../plan/index.ts'
import type { RunStatus } from '../state/index.ts'
import { maskedQueryValue } from '../transform/index.ts'
import { exportPartition } from './export-partition.ts'
import { Halt } from './halt.ts'
import type { Progress } from './observer.ts'
import type { RunOptions } from './options.ts'
import type { QuerySecrets } from './query-secrets.ts'
import { lackOfRoom } from './room.ts'
import type { Session } from './session.ts'
import type { Survey } from './survey.ts'
import type { Tally } from './tally.ts'

export type Ending = {
  readonly status: RunStatus
  /** What stopped the run before its time; null when nothing did. */
  readonly error: ExportError | null
  readonly requests: number
  readonly retries: number
  readonly searchesRemaining: number | null
}

export type ExportContext = {
  readonly pipeline: Pipeline
  readonly store: Store
  readonly session: Session
  readonly plan: Plan
  readonly work: Survey
  readonly tally: Tally
  readonly secrets: QuerySecrets
  readonly options: RunOptions
}

// So many partitions that fail one after the other, with nothing usable in between, are one trouble, not
// many; going on would only spend requests on it.
const MAX_FAILURES_IN_ROW = 20

/**
 * Exports every partition of the plan that is not done, `concurrency` at a time, which all share one pace.
 * A partition that fails does not stop the others; what concerns all of them (credentials, quota, disk,
 * a signal) does, once the answers in hand are committed.
 */
export async function exportAll(context: ExportContext): Promise<Ending> {
  const { pipeline, plan, session, work, tally, options } = context
  const halt = new Halt(options.stop)
  const service = openService(
    pipeline.service,
    { ...pipeline.extract, connections: pipeline.extract.concurrency },
    {
      clock: options.clock,
      readSecret: options.readSecret,
      stop: halt.signal,
      abort: options.abort,
      buffers: session.buffers,
      log: options.observer.log,
    },
  )
  const report = (): void => options.observer.progress(progressOf(context, service))
  const pending = unfinished(plan, session)
  const { concurrency } = pipeline.extract
  let lanes = concurrency
  // As long as there is a partition for every lane, no chain reads ahead.
  const ahead = placesAhead(() => concurrency - lanes)
  const doubt = new Doubt()
  const lane = async (): Promise<void> => {
    for (const partition of pending) {
      if (halt.halted) break
      try {
        await exportOne(partition, context, { service, ahead, halt, doubt, report })
      } catch (error) {
        halt.abort()
        throw error
      }
      report()
    }
    lanes--
  }
  try {
    report()
    // A crash may have come between the last page of a folder and the sealing of its shard.
    await sealShared(context, (folder) => !work.unfinished.has(folder))
    await allSettled(Array.from({ length: concurrency }, () => lane))
    await doubt.settle()
    // What the other partitions gave is to be read, whatever became of the failed ones.
    if (halt.error === null && tally.failed > 0) await sealShared(context, () => true)
  } catch (error) {
    if (!isExportError(error)) throw error
    halt.because(error)
  } finally {
    await service.close()
  }
  const { requests, retries, searchesRemaining } = service.counters
  const error = halt.error ?? interruption(options.stop, tally, work)
  return { status: statusOf(error, tally), error, requests, retries, searchesRemaining }
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

function* unfinished(plan: Plan, { checkpoint }: Session): Generator<Partition> {
  for (const partition of plan.partitions()) {
    if (checkpoint.state.partitions.get(partition.key)?.state !== 'done') yield partition
  }
}

type Surroundings = {
  readonly service: Service
  readonly ahead: Ahead
  readonly halt: Halt
  readonly doubt: Doubt
  readonly report: () => void
}

async function exportOne(
  partition: Partition,
  context: ExportContext,
  { service, ahead, halt, doubt, report }: Surroundings,
): Promise<void> {
  const { pipeline, store, session, tally, options } = context
  // Requests sent for pages that are not committed yet.
  let requests = 0
  // A page that was asked for ahead still comes in: there is room for as many as may be in flight.
  const haltWithoutRoom = async (): Promise<void> => {
    const lack = await lackOfRoom(pipeline, store)
    if (lack !== null) halt.because(lack)
  }
  await haltWithoutRoom()
  if (halt.halted) return
  try {
    const secret = secretOf(partition, context)
    await exportPartition(partition, queryValueOf(partition, secret, context), {
      pipeline,
      secret,
      service,
      store,
      shards: session.shards,
      checkpoint: session.checkpoint,
      decode: session.cpu.decode,
      release: session.cpu.release,
      onRequest: () => {
        requests++
        report()
      },
      ahead,
      onPage: (page, itsRequests) => {
        requests -= itsRequests
        if (page.repeated > 0 && tally.repeated === 0) {
          const message = 'the service repeats rows from page to page; each is exported once'
          options.observer.log('warn', message, { partition: partition.key, repeated: page.repeated })
        }
        tally.page(page)
        for (const field of tally.newFields(page)) {
          options.observer.log('warn', 'the service sends a field that is not known and not exported', {
            field,
          })
        }
        report()
      },
      beforeNext: haltWithoutRoom,
      warn: (message, fields) => options.observer.log('warn', message, fields),
    })
    tally.done++
    await doubt.settle()
    await leaveFolder(partition, context)
  } catch (error) {
    if (!isExportError(error)) throw error
    if (!OWN_TROUBLE.has(error.kind)) return halt.because(error)
    const { extract, load } = pipeline
    if (ownsFolder(extract.resource, load.partitionBy)) {
      await session.shards.release(folderOf(extract.resource, partition, load.partitionBy))
    }
    const isFailed = async (): Promise<void> => {
      tally.partitionFailed(partition.key, error.message)
      options.observer.log('error', error.message, { partition: partition.key })
      await session.checkpoint.append([
        {
          kind: 'failed',
          partition: partition.key,
          requests,
          error: { kind: error.kind, message: error.message },
        },
      ])
    }
    if (error.kind === 'refused' && service.counters.notFound > 1) {
      doubt.drop()
      return halt.because(wrongAddress(service))
    }
    // One may be the fault of its query; of two, and nothing found, it is the address.
    if (error.kind === 'refused' && service.counters.notFound === 1) doubt.keep(isFailed)
    else await isFailed()
    if (options.failFast) halt.because(error)
    else if (tally.failuresInRow >= MAX_FAILURES_IN_ROW) halt.because(tooManyFailures(pipeline, error))
  }
}

/** Errors that concern one partition only. */
const OWN_TROUBLE: ReadonlySet<ErrorKind> = new Set(['transient', 'refused', 'cursor', 'data'])

function secretOf({ query }: Partition, { secrets }: ExportContext): string | null {
  return query.type === 'secret' ? (secrets.get(query.secretEnv) ?? null) : null
}

function queryValueOf(
  { query }: Partition,
  secret: string | null,
  { pipeline, options }: ExportContext,
): string {
  return maskedQueryValue(query, secret, { ...pipeline.transform, maskKey: options.maskKey })
}

/** Seals a shared folder's shard once nothing more is to come into it. */
async function leaveFolder(partition: Partition, { pipeline, session, work }: ExportContext): Promise<void> {
  const { extract, load } = pipeline
  const folder = folderOf(extract.resource, partition, load.partitionBy)
  const left = work.unfinished.get(folder)
  if (left === undefined) return
  if (left > 1) work.unfinished.set(folder, left - 1)
  else {
    work.unfinished.delete(folder)
    await session.shards.seal(folder)
  }
}

async function sealShared(
  { pipeline, session }: ExportContext,
  which: (folder: string) => boolean,
): Promise<void> {
  if (ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) return
  for (const folder of session.shards.openFolders) if (which(folder)) await session.shards.seal(folder)
}

/** Waits for all, also when one fails: they hold the same files. */
async function allSettled(work: readonly (() => Promise<void>)[]): Promise<void> {
  const results = await Promise.allSettled(work.map((each) => each()))
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** A failure that is not told yet, because what comes next may show that it is not that partition's own. */
class Doubt {
  #tell: (() => Promise<void>) | null = null

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

function wrongAddress({ endpoints: { search } }: Service): ExportError {
  return new ExportError(
    'config',
    'The service answers 404 to every search: nothing is at this address',
    `${search.origin}${search.pathname}`,
    'Correct service.base_url or service.search_path.',
  )
}

function tooManyFailures(pipeline: Pipeline, last: ExportError): ExportError {
  return new ExportError(
    last.kind,
    `${MAX_FAILURES_IN_ROW} partitions failed one after the other; the last: ${last.what}`,
    pipeline.service.baseUrl,
    'Run again when the service is well; what is committed stays.',
    { cause: last },
  )
}

function progressOf({ tally, work }: ExportContext, { counters }: Service): Progress {
  return {
    partitionsTotal: work.total,
    partitionsDone: tally.done,
    partitionsFailed: tally.failed,
    rows: tally.rows,
    requests: counters.requests,
    retries: counters.retries,
    quarantined: tally.quarantined,
    searchesRemaining: counters.searchesRemaining,
    pausedUntilMs: counters.pausedUntilMs,
  }
}
