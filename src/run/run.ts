import { randomUUID } from 'node:crypto'
import {
  ExportError,
  figuresOf,
  isBlank,
  isExportError,
  type JournalEntry,
  type NamedPipeline,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import type { Plan } from '../plan/index.ts'
import { type CheckpointState, MANIFEST_PATH, SUCCESS_PATH, takeLock } from '../state/index.ts'
import { redoPartitions, requirePolicies, warnOfOpenDoors } from './admission/index.ts'
import { type Ending, exportChains, MonthNotes, statusFor, Tally } from './chains/index.ts'
import {
  clearDataSet,
  countPartitions,
  growingFiles,
  isWholeExported,
  openDataSet,
  planFor,
  refuseLinks,
  requireFolder,
} from './data-set/index.ts'
import { finalizeDataSet } from './finalize.ts'
import { openSession, type Session } from './session/index.ts'
import type { RunObserver, RunOptions } from './setting/index.ts'
import {
  namePipeline,
  namingLocations,
  pathIn,
  type QuerySecrets,
  readQuerySecrets,
  requireSendableToken,
  withLocation,
} from './setting/index.ts'
import { lastCompleteMs, type RunSummary } from './summary.ts'

/**
 * Exports everything that the pipeline requests and that earlier runs have not: from the lock to the
 * manifest. What stops a run half-way (budget, signal, refused credentials, full disk) is told in the
 * summary; what is committed stays, and the next run goes on from there.
 * @throws ExportError when the run could not begin; nothing is changed then
 */
export async function runPipeline(given: Pipeline, options: RunOptions): Promise<RunSummary> {
  const copy = ownCopy(given)
  requirePolicies(copy, options)
  const pipeline = namePipeline(copy, options.maskKey)
  warnOfBlanks(options)
  const secrets = await readQuerySecrets(pipeline, options)
  await requireSendableToken(pipeline, options)
  return namingLocations(pipeline, () => runOnDataSet(pipeline, secrets, options))
}

async function runOnDataSet(
  pipeline: NamedPipeline,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<RunSummary> {
  const { clock, stop, abort, fresh, observer } = options
  const warn = (message: string): void => observer.log('warn', message)
  await requireFolder(pipeline.load.place)
  const lock = await takeLock(openDataSet(pipeline), {
    clock,
    stop,
    fresh,
    hold: options.hold,
    growing: growingFiles,
    warn(message, waitMs) {
      observer.log('warn', message, { event: 'wait', for: 'lock', wait_ms: waitMs })
      observer.opening?.({ kind: 'lock', untilMs: clock.now() + waitMs })
    },
  })
  observer.opening?.({ kind: 'checkpoint' })
  const { store, lost } = lock
  // A run that has lost the data set can't commit any more, so there is nothing to wait for.
  const held = {
    ...options,
    stop: AbortSignal.any([stop, lost]),
    abort: AbortSignal.any([abort, lost]),
  }
  try {
    await warnOfOpenDoors(pipeline, options.observer)
    await refuseLinks(store)
    if (fresh) await clearDataSet(store, warn)
    if (options.redo.length > 0) await redoPartitions(pipeline, store, secrets, options)
    const session = await openSession(pipeline, store, secrets, held)
    try {
      const plan = planFor(pipeline, clock.now(), session.checkpoint.state)
      const summary = await carryOut(pipeline, store, { session, plan, secrets }, held)
      return lost.aborted ? { ...summary, status: 'failed', error: lost.reason } : summary
    } finally {
      await session.close()
    }
  } finally {
    // The export is on disk and its result is still reported. A lock file that stays gets no more heartbeats.
    await lock.release().catch((error: unknown) => {
      if (!isExportError(error)) throw error
      warn(
        `the lock could not be given back; the next run waits until it is known to be dead: ${error.message}`,
      )
    })
  }
}

/** As it stands now: what a program changes in its pipeline while the run goes on is not this run's business. */
export function ownCopy(pipeline: Pipeline): Pipeline {
  try {
    return structuredClone(pipeline)
  } catch (cause) {
    const next = 'Give it strings, numbers, booleans, lists and objects alone.'
    throw new ExportError('config', 'The pipeline holds something that is no data', '', next, { cause })
  }
}

/** Line breaks are taken off; a blank may be meant, but rarely is. */
function warnOfBlanks({ maskKey, observer }: RunOptions): void {
  if (maskKey === null || !(isBlank(maskKey[0]!) || isBlank(maskKey.at(-1)!))) return
  observer.log('warn', 'the mask key begins or ends with a blank, which is a part of it')
}

async function carryOut(
  pipeline: NamedPipeline,
  store: Store,
  { session, plan, secrets }: { session: Session; plan: Plan; secrets: QuerySecrets },
  options: RunOptions,
): Promise<RunSummary> {
  const { clock } = options
  const { extract } = pipeline
  const { checkpoint } = session
  const run = options.runId ?? randomUUID()
  const last = checkpoint.state.runs.at(-1)
  const earlier = last?.run === run ? { ...last } : null
  const { log } = options.observer
  const startedAt = clock.now()
  const startedMs = clock.monotonicMs()
  const work = countPartitions(pipeline, plan, checkpoint.state)
  const tally = new Tally(work)
  const isWhole = (): boolean => isWholeExported(pipeline, plan, clock.now(), checkpoint.state)
  if (work.done < work.total || !isWhole()) await store.remove(SUCCESS_PATH)
  await checkpoint.append([{ kind: 'run', run, started_at: isoTime(startedAt), version: options.version }])
  log('info', 'run started', {
    event: 'run.start',
    pipeline: pipeline.name,
    version: options.version,
    partitions_total: work.total,
    partitions_done: work.done,
  })

  const months = new MonthNotes(run, earlier, checkpoint, clock)
  const sentBefore = earlier?.requests ?? 0
  const spentBefore = earlier?.searches ?? null
  const before = { sentBefore, spentBefore: spentBefore ?? 0 }
  const { sealed } = session
  const context = { pipeline, store, session, plan, survey: work, tally, secrets, options, months, ...before }
  const ending = await exportChains(context)
  const requests = sentBefore + ending.requests
  const retries = (earlier?.retries ?? 0) + ending.retries
  const searchesSpent =
    ending.searchesSpent === null ? spentBefore : ending.searchesSpent + (spentBefore ?? 0)
  let manifest: string | null = null
  if (sealed.replacedNuls > 0) {
    options.observer.log('warn', 'NUL characters, which readers of CSV refuse, were replaced by U+FFFD', {
      characters: sealed.replacedNuls,
    })
  }
  const error = await settleAccounts(ending, async () => {
    const whole = isWhole()
    const { status, searchesRemaining } = ending
    const finished_at = isoTime(clock.now())
    const spent = searchesSpent === null ? {} : { searches: searchesSpent }
    const left = searchesRemaining === null ? {} : { searches_remaining: searchesRemaining }
    const least =
      extract.resource === 'credentials'
        ? { least: (earlier?.least ?? 0) + tally.least(extract.pageSize) }
        : {}
    const counted = addedUp(earlier?.reasons ?? {}, tally.reasons ?? {})
    const reasons = Object.keys(counted).length === 0 ? {} : { reasons: counted }
    const end: JournalEntry = {
      kind: 'end',
      run,
      finished_at,
      status,
      requests,
      retries,
      ...spent,
      ...left,
      ...least,
      ...reasons,
    }
    await finalizeDataSet(pipeline, store, { session, plan, whole, end }, options)
    manifest = pathIn(pipeline, MANIFEST_PATH)
  })
  const summary: RunSummary = {
    pipeline: pipeline.name,
    status: error === null ? ending.status : statusFor(error),
    partitions: {
      total: work.total,
      done: tally.done,
      failed: tally.failed,
      pending: work.total - tally.done - tally.failed,
    },
    rows: (earlier?.rows ?? 0) + tally.rows,
    dataSet: { rows: rowsIn(checkpoint.state) },
    shards: sealed.shards,
    bytes: sealed.bytes,
    requests,
    retries,
    quarantined: (earlier?.quarantined ?? 0) + tally.quarantined,
    replacedNuls: sealed.replacedNuls,
    repeated: (earlier?.repeated ?? 0) + tally.repeated,
    searchesSpent,
    searchesRemaining: ending.searchesRemaining,
    service: figuresOf(checkpoint.state.service),
    durationMs: Math.round(clock.monotonicMs() - startedMs),
    lastCompleteMs: lastCompleteMs(checkpoint.state),
    manifest,
    error: error === null ? null : withLocation(pipeline, error),
    failures: tally.failures,
    causes: tally.causes,
  }
  tellEnd(summary, log)
  return summary
}

function addedUp(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const sums = new Map(Object.entries(a))
  for (const [key, count] of Object.entries(b)) sums.set(key, (sums.get(key) ?? 0) + count)
  return Object.fromEntries(sums)
}

/** Committed rows of all runs, those of open shards among them. */
function rowsIn({ partitions }: CheckpointState): number {
  let sum = 0
  for (const [, { rows }] of partitions) sum += rows
  return sum
}

function tellEnd(summary: RunSummary, log: RunObserver['log']): void {
  const { pipeline, status, partitions, rows, shards, bytes, requests, retries, quarantined, repeated } =
    summary
  log('info', 'run finished', {
    event: 'run.finish',
    pipeline,
    status,
    partitions_total: partitions.total,
    partitions_done: partitions.done,
    partitions_failed: partitions.failed,
    partitions_pending: partitions.pending,
    rows,
    shards,
    bytes,
    requests,
    retries,
    quarantined,
    repeated,
    searches_spent: summary.searchesSpent,
    searches_remaining: summary.searchesRemaining,
    searches_per_request: summary.service.searchesPerRequest,
    searches_per_1000_rows: summary.service.searchesPer1000Rows,
    page_size: summary.service.pageSize,
    duration_ms: summary.durationMs,
    error_kind: summary.error?.kind ?? null,
  })
}

/** A disk that is full does not take a manifest either; what stopped the run first is what counts. */
async function settleAccounts(ending: Ending, write: () => Promise<void>): Promise<ExportError | null> {
  try {
    await write()
    return ending.error
  } catch (error) {
    if (!isExportError(error)) throw error
    return ending.error ?? error
  }
}

function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
