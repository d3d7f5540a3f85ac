import { randomUUID } from 'node:crypto'
import {
  type ExportError,
  isExportError,
  isOfFeeds,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
} from '../core/index.ts'
import {
  bringVerdict,
  clearDataSet,
  countPartitions,
  manySmallShards,
  namingLocations,
  openStore,
  planFor,
  planRedo,
  type QuerySecrets,
  readVerdict,
  readyToRun,
  recordFailedStart,
  requireFolder,
  requireOwnTables,
  settle,
  withCatalog,
  withLocation,
  withLock,
  withRest,
} from '../data-set/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  endEntry,
  type FoldedRun,
  type Lock,
  MANIFEST_PATH,
  NEW_RUN,
  partitionCounts,
} from '../state/index.ts'
import { beginRun, runService } from './begin-run.ts'
import { type Ending, exportChains, statusFor } from './follow/export-chains.ts'
import { Halt, shortageOfDiskSpace } from './follow/halt.ts'
import type { RunContext } from './follow/run-context.ts'
import type { RunOptions } from './options.ts'
import { openSession, type Session } from './session.ts'
import { endFigures, logSummary, type RunSummary, reasonOf, type SettledRun, summarize } from './summary.ts'

/**
 * Exports what the pipeline requests and earlier runs have not. A run that stops early says why in its summary.
 * @throws ExportError when the run could not begin; nothing is changed then
 */
export async function runPipeline(given: Pipeline, options: RunOptions): Promise<RunSummary> {
  try {
    const { pipeline, secrets } = await readyToRun(given, options)
    return await namingLocations(pipeline, () => runOnDataSet(pipeline, secrets, options))
  } catch (error) {
    if (isExportError(error)) await recordFailedStart(given, error, options.clock.now())
    throw error
  }
}

async function runOnDataSet(
  pipeline: NamedPipeline,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<RunSummary> {
  const { clock, stop, abort, fresh, redo, onLog, onOpening } = options
  await requireFolder(pipeline.load.location)
  // A pattern that matches nothing is refused before the lock makes the folder.
  if (redo.length > 0 && (await openStore(pipeline).size(CHECKPOINT_PATH)) === null)
    await planRedo(pipeline, null, redo, clock.now())
  const onWait = (message: string, waitMs: number): void => {
    onLog('warn', message, { event: 'wait', for: 'lock', wait_ms: waitMs })
    onOpening?.({ kind: 'lock', untilMs: clock.now() + waitMs })
  }
  const work = async ({ store, lost }: Omit<Lock, 'release'>): Promise<RunSummary> => {
    onOpening?.({ kind: 'checkpoint' })
    // A run that has lost the lock cannot commit any more, so it does not wait.
    const signals = { stop: AbortSignal.any([stop, lost]), abort: AbortSignal.any([abort, lost]) }
    await requireOwnTables(pipeline, store, fresh)
    return withCatalog(pipeline, store, { ...options, ...signals }, fresh, async (catalog) => {
      const held = { ...options, ...signals, catalog }
      if (fresh) await clearDataSet(store, onLog)
      const session = await openSession(pipeline, store, held)
      try {
        const summary = await carryOut(pipeline, store, { session, secrets }, held)
        return lost.aborted ? { ...summary, status: 'failed' as const, error: lost.reason } : summary
      } finally {
        await session.close()
      }
    })
  }
  return withLock(pipeline, options, work, onWait)
}

async function carryOut(
  pipeline: NamedPipeline,
  store: OwnedStore,
  { session, secrets }: { readonly session: Session; readonly secrets: QuerySecrets },
  options: RunOptions,
): Promise<RunSummary> {
  const { clock, runId, version, onLog } = options
  const startedMs = clock.monotonicMs()
  const id = { run: runId ?? randomUUID(), started_at: isoTime(clock.now()), version }
  const last = session.journal.state.runs.at(-1)
  // A copy, because the folded run grows with the run.
  const earlier = last?.run === id.run ? { ...last } : { ...NEW_RUN, ...id, months: [] }
  const halt = new Halt(options.stop, () => shortageOfDiskSpace(pipeline, store))
  const service = runService({ pipeline, session, options, earlier }, halt)
  try {
    const run = await beginRun(store, { pipeline, session, secrets, options, earlier }, id, service)
    const ending = await exportChains(run, service, halt)
    const settled = await settleRun(store, run, ending)
    const summary = summarize(run, settled, clock.monotonicMs() - startedMs)
    logSummary(summary, onLog)
    return summary
  } finally {
    await service.close()
  }
}

/** Brings the data set in line with what the run has exported, and puts its end on record. */
async function settleRun(store: OwnedStore, run: RunContext, ending: Ending): Promise<SettledRun> {
  const { pipeline, session, tally, counts, earlier, options } = run
  const { clock, onLog } = options
  const { journal, sealed } = session
  const stopped = ending.error === null ? null : withRest(ending.error, pipeline, clock.now(), journal.state)
  const figures = endFigures(earlier, ending, tally)
  const statusAfter = (error: ExportError | null) => (error === null ? ending.status : statusFor(error))
  const told = (error: ExportError | null) => ({
    finished_at: isoTime(clock.now()),
    status: statusAfter(error),
    error: reasonOf(error === null ? null : withLocation(pipeline, error), tally),
  })
  const end = (error: ExportError | null): Promise<void> =>
    journal.append([endEntry(earlier.run, told(error), figures)])
  const unfinished = await failureOf(async () => {
    await settle(pipeline, store, journal, {
      ...options,
      runId: earlier.run,
      onPublished: () => end(stopped),
      onWritten: (shard) => {
        sealed.shards++
        sealed.bytes += shard.bytes
        options.onShard?.(shard)
      },
    })
    const small = manySmallShards(journal.state, pipeline)
    if (small !== null) onLog('info', small)
  })
  const first = stopped ?? unfinished
  // What readers see says why the run ended, if that can still be written.
  if (unfinished !== null) await failureOf(() => end(first))
  const hasManifest = (await store.size(MANIFEST_PATH)) !== null
  const unsaved = await failureOf(() => journal.close())
  // A full disk has no space for a manifest either: the first error of the run is kept.
  const error = first ?? unsaved
  const state = withEnd(journal.state, { ...told(error), reasons: figures.reasons })
  const verdict = await readVerdict(store, pipeline, state)
  if (unfinished !== null || unsaved !== null)
    await failureOf(() => bringVerdict(pipeline, store, state, verdict))
  const ended = isOfFeeds(pipeline)
    ? countPartitions(pipeline, planFor(pipeline, clock.now(), journal.state), journal.state)
    : null
  const partitions = partitionCounts(ended?.total ?? counts.total, ended ?? tally)
  return { figures, error, status: statusAfter(error), partitions, verdict, hasManifest }
}

/** The state as it is once the end of its last run is on record. */
function withEnd(
  state: CheckpointState,
  end: Pick<FoldedRun, 'finished_at' | 'status' | 'error' | 'reasons'>,
) {
  return { ...state, runs: [...state.runs.slice(0, -1), { ...state.runs.at(-1)!, ...end }] }
}

async function failureOf(work: () => Promise<void>): Promise<ExportError | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (isExportError(error)) return error
    throw error
  }
}

function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
