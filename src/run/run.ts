import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type ExportError, isExportError, type Pipeline, type Store } from '../core/index.ts'
import { folderOf } from '../load/index.ts'
import type { Plan } from '../plan/index.ts'
import { MANIFEST_PATH, type RunStatus, SUCCESS_PATH, takeLock, writeManifest } from '../state/index.ts'
import { requireConsent } from './consent.ts'
import { clearDataSet, openDataSet, planFor, sweepTemporaryFiles } from './data-set.ts'
import { type Ending, exportAll, statusFor } from './export-all.ts'
import { redoPartitions } from './open-checkpoint.ts'
import type { RunOptions } from './options.ts'
import { namingPlaces, withPlace } from './places.ts'
import { type QuerySecrets, readQuerySecrets, requireSendableToken } from './query-secrets.ts'
import { openSession, type Session } from './session.ts'
import { survey } from './survey.ts'
import { Tally } from './tally.ts'
import { isWholeExported, retiredQueries } from './whole.ts'

export type RunSummary = {
  readonly pipeline: string
  readonly status: RunStatus
  readonly partitions: {
    readonly total: number
    readonly done: number
    readonly failed: number
    readonly pending: number
  }
  /** Of this run, as are the figures that follow. */
  readonly rows: number
  readonly shards: number
  readonly bytes: number
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
  /** NUL characters that became U+FFFD, in CSV. */
  readonly replacedNuls: number
  /** What the service said last; null when it said nothing. */
  readonly searchesRemaining: number | null
  readonly durationMs: number
  /** Absolute path of the manifest; null when it could not be written. */
  readonly manifest: string | null
  /** What stopped the run before its time; null when nothing did. */
  readonly error: ExportError | null
  /** Partitions that failed in this run, the first hundred, with why. */
  readonly failures: readonly { readonly partition: string; readonly message: string }[]
}

/**
 * Exports everything that the pipeline asks for and that earlier runs have not: from the lock to the
 * manifest. What stops a run half-way (budget, signal, refused credentials, full disk) is told in the
 * summary; what is committed stays, and the next run goes on from there.
 * @throws ExportError when the run could not begin; nothing is changed then
 */
export async function runPipeline(pipeline: Pipeline, options: RunOptions): Promise<RunSummary> {
  requireConsent(pipeline, options)
  const secrets = await readQuerySecrets(pipeline, options)
  await requireSendableToken(pipeline, options)
  return namingPlaces(pipeline, () => runOnDataSet(pipeline, secrets, options))
}

async function runOnDataSet(
  pipeline: Pipeline,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<RunSummary> {
  const store = openDataSet(pipeline)
  const lock = await takeLock(store, options)
  try {
    if (options.fresh) await clearDataSet(store)
    await sweepTemporaryFiles(store)
    if (options.redo.length > 0) await redoPartitions(pipeline, store, secrets, options)
    const session = await openSession(pipeline, store, secrets, options)
    try {
      const plan = planFor(pipeline, options.clock.now(), session.checkpoint.state)
      return await carryOut(pipeline, store, { session, plan, secrets }, options)
    } finally {
      await session.close()
    }
  } finally {
    await lock.release()
  }
}

async function carryOut(
  pipeline: Pipeline,
  store: Store,
  { session, plan, secrets }: { session: Session; plan: Plan; secrets: QuerySecrets },
  options: RunOptions,
): Promise<RunSummary> {
  const { clock } = options
  const { checkpoint } = session
  const run = randomUUID()
  const startedMs = clock.monotonicMs()
  const work = survey(pipeline, plan, checkpoint.state)
  const tally = new Tally(work)
  session.onRecorded = (lines) => tally.recorded(lines)
  const isWhole = (): boolean => isWholeExported(pipeline, plan, clock.now(), checkpoint.state)
  if (work.done < work.total) session.cpu.start()
  if (work.done < work.total || !isWhole()) await store.remove(SUCCESS_PATH)
  await checkpoint.append([{ kind: 'run', run, started_at: isoTime(clock.now()), version: options.version }])

  const ending = await exportAll({ pipeline, store, session, plan, work, tally, secrets, options })
  let manifest: string | null = null
  if (tally.replacedNuls > 0) {
    options.observer.log('warn', 'NUL characters, which readers of CSV refuse, were replaced by U+FFFD', {
      characters: tally.replacedNuls,
    })
  }
  const error = await settleAccounts(ending, async () => {
    const whole = isWhole()
    if (whole) await fillEmptyDataSet(pipeline, session, plan)
    const { requests, retries } = ending
    const finished_at = isoTime(clock.now())
    await checkpoint.append([{ kind: 'end', run, finished_at, status: ending.status, requests, retries }])
    await writeManifest(store, pipeline, checkpoint.state, retiredQueries(pipeline, checkpoint.state))
    manifest = join(pipeline.load.path, MANIFEST_PATH)
    if (whole) await store.writeWhole(SUCCESS_PATH, [])
  })
  return {
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
    searchesRemaining: ending.searchesRemaining,
    durationMs: Math.round(clock.monotonicMs() - startedMs),
    manifest,
    error: error === null ? null : withPlace(pipeline, error),
    failures: tally.failures,
  }
}

/**
 * Gives a data set without rows one shard without rows, in the folder of its first partition: whoever reads it on
 * schedule needs something to read, with all columns, those of the folders' names too.
 */
async function fillEmptyDataSet(
  { extract, load }: Pipeline,
  { checkpoint, shards }: Session,
  plan: Plan,
): Promise<void> {
  if (checkpoint.state.shards.length > 0) return
  for (const partition of plan.partitions()) {
    await shards.sealEmpty(folderOf(extract.resource, partition, load.partitionBy), partition.key)
    return
  }
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
