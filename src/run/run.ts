import { randomUUID } from 'node:crypto'
import {
  type ExportError,
  isBlank,
  isExportError,
  type NamedPipeline,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import type { Plan } from '../plan/index.ts'
import { type Fact, MANIFEST_PATH, SUCCESS_PATH, takeLock } from '../state/index.ts'
import { redoPartitions, requirePolicies, warnOfOpenDoors } from './admission/index.ts'
import { leaveAtRest } from './at-rest.ts'
import { type Ending, exportAll, MonthNotes, statusFor, Tally } from './chains/index.ts'
import {
  clearDataSet,
  growingFiles,
  isWholeExported,
  openDataSet,
  planFor,
  refuseLinks,
  survey,
} from './data-set/index.ts'
import { openSession, type Session } from './session/index.ts'
import type { RunObserver, RunOptions } from './setting/index.ts'
import {
  namePipeline,
  namingPlaces,
  pathIn,
  type QuerySecrets,
  readQuerySecrets,
  requireSendableToken,
  withPlace,
} from './setting/index.ts'
import { lastCompleteMs, type RunSummary } from './summary.ts'

/**
 * Exports everything that the pipeline asks for and that earlier runs have not: from the lock to the
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
  return namingPlaces(pipeline, () => runOnDataSet(pipeline, secrets, options))
}

async function runOnDataSet(
  pipeline: NamedPipeline,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<RunSummary> {
  const { clock, stop, abort, fresh, observer } = options
  const warn = (message: string): void => observer.log('warn', message)
  const lock = await takeLock(openDataSet(pipeline), {
    clock,
    stop,
    fresh,
    growing: growingFiles,
    warn(message, waitMs) {
      observer.log('warn', message, { event: 'wait', for: 'lock', wait_ms: waitMs })
      observer.opening?.({ kind: 'lock', untilMs: clock.now() + waitMs })
    },
  })
  observer.opening?.({ kind: 'checkpoint' })
  const { store, lost } = lock
  // Whoever has lost the data set can't commit anything any more, so there is nothing to wait for.
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
    // What was exported is on disk, and what came of it is to be told; a claim that stays shows no more signs of life.
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
  return { ...pipeline, extract: { ...pipeline.extract }, transform: { ...pipeline.transform } }
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
  const { log } = options.observer
  const startedAt = clock.now()
  const startedMs = clock.monotonicMs()
  const work = survey(pipeline, plan, checkpoint.state)
  const tally = new Tally(work)
  session.onRecorded = (lines) => {
    tally.recorded(lines)
    tellSealed(lines, log)
  }
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

  const months = new MonthNotes(run, startedAt, checkpoint, clock)
  const ending = await exportAll({ pipeline, store, session, plan, work, tally, secrets, options, months })
  let manifest: string | null = null
  if (tally.replacedNuls > 0) {
    options.observer.log('warn', 'NUL characters, which readers of CSV refuse, were replaced by U+FFFD', {
      characters: tally.replacedNuls,
    })
  }
  const error = await settleAccounts(ending, async () => {
    const whole = isWhole()
    const { status, requests, retries, searchesRemaining } = ending
    const finished_at = isoTime(clock.now())
    const left = searchesRemaining === null ? {} : { searches_remaining: searchesRemaining }
    const least = extract.resource === 'credentials' ? { least: tally.least(extract.pageSize) } : {}
    const reasons = tally.reasons === null ? {} : { reasons: tally.reasons }
    const end: Fact = {
      kind: 'end',
      run,
      finished_at,
      status,
      requests,
      retries,
      ...left,
      ...least,
      ...reasons,
    }
    await leaveAtRest(pipeline, store, { session, plan, whole, end }, options)
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
    rows: tally.rows,
    shards: tally.shards,
    bytes: tally.bytes,
    requests: ending.requests,
    retries: ending.retries,
    quarantined: tally.quarantined,
    replacedNuls: tally.replacedNuls,
    repeated: tally.repeated,
    searchesRemaining: ending.searchesRemaining,
    durationMs: Math.round(clock.monotonicMs() - startedMs),
    lastCompleteMs: lastCompleteMs(checkpoint.state),
    manifest,
    error: error === null ? null : withPlace(pipeline, error),
    failures: tally.failures,
  }
  tellEnd(summary, log)
  return summary
}

function tellSealed(lines: readonly Fact[], log: RunObserver['log']): void {
  for (const line of lines) {
    if (line.kind !== 'seal') continue
    const { path, rows, bytes } = line
    log('info', 'shard sealed', { event: 'shard.sealed', path, rows, bytes })
  }
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
    searches_remaining: summary.searchesRemaining,
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
