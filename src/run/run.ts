import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { ExportError, isExportError, type Pipeline, type Store } from '../core/index.ts'
import type { Plan } from '../plan/index.ts'
import {
  type CheckpointState,
  MANIFEST_PATH,
  type RunStatus,
  SUCCESS_PATH,
  takeLock,
  writeManifest,
} from '../state/index.ts'
import { clearDataSet, openDataSet, planFor, sweepTemporaryFiles } from './data-set.ts'
import { type Ending, exportAll, statusFor } from './export-all.ts'
import { warnOfOpenDoors } from './open-to-all.ts'
import type { RunOptions } from './options.ts'
import { openSession, type Session } from './session.ts'
import { survey } from './survey.ts'
import { Tally } from './tally.ts'

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
  /** Items that the service sent again within a chain; each was exported once. */
  readonly repeated: number
  /** What the service said last; null when it said nothing. */
  readonly searchesRemaining: number | null
  readonly durationMs: number
  /** Absolute path of the manifest. */
  readonly manifest: string
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
  const store = openDataSet(pipeline)
  const lock = await takeLock(store, options)
  try {
    await warnOfOpenDoors(pipeline, options.observer)
    if (options.fresh) await clearDataSet(store)
    await sweepTemporaryFiles(store)
    const session = await openSession(pipeline, store, options)
    try {
      const plan = planFor(pipeline, options.clock.now(), session.checkpoint.state)
      return await carryOut(pipeline, store, session, plan, options)
    } finally {
      await session.close()
    }
  } finally {
    await lock.release()
  }
}

function requireConsent({ transform, file }: Pipeline, { allowPlaintext }: RunOptions): void {
  if (transform.secret !== 'plaintext' || allowPlaintext) return
  throw new ExportError(
    'config',
    'transform.secret is plaintext, and this run was not given leave to write secrets unmasked',
    file,
    'Choose redact, drop, partial or hmac, or add --allow-plaintext to this run.',
  )
}

async function carryOut(
  pipeline: Pipeline,
  store: Store,
  session: Session,
  plan: Plan,
  options: RunOptions,
): Promise<RunSummary> {
  const { clock } = options
  const { checkpoint } = session
  const run = randomUUID()
  const startedMs = clock.monotonicMs()
  const work = survey(pipeline, plan, checkpoint.state)
  const tally = new Tally(work)
  session.onRecorded = (lines) => tally.recorded(lines)
  if (work.done < work.total) {
    session.cpu.start()
    await store.remove(SUCCESS_PATH)
  }
  await checkpoint.append([{ kind: 'run', run, started_at: isoTime(clock.now()), version: options.version }])

  const ending = await exportAll({ pipeline, store, session, plan, work, tally, options })
  const error = await settleAccounts(ending, async () => {
    const { requests, retries } = ending
    const finished_at = isoTime(clock.now())
    await checkpoint.append([{ kind: 'end', run, finished_at, status: ending.status, requests, retries }])
    await writeManifest(store, pipeline, checkpoint.state)
    if (ending.status === 'complete' && isWhole(checkpoint.state)) await store.writeWhole(SUCCESS_PATH, [])
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
    repeated: tally.repeated,
    searchesRemaining: ending.searchesRemaining,
    durationMs: Math.round(clock.monotonicMs() - startedMs),
    manifest: join(pipeline.load.path, MANIFEST_PATH),
    error,
    failures: tally.failures,
  }
}

/** A run over a part of the plan may leave partitions half-way that it was not asked for. */
function isWhole(state: CheckpointState): boolean {
  for (const [, record] of state.partitions) if (record.state !== 'done' && record.pages > 0) return false
  return true
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
