import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import {
  type ExportError,
  isExportError,
  type Log,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
  rulesOf,
} from '../core/index.ts'
import {
  bringVerdict,
  clearDataSet,
  countPartitions,
  holdDataSet,
  isPlanDone,
  manySmallShards,
  namePipeline,
  namingLocations,
  openStore,
  planFor,
  planRedo,
  type QuerySecrets,
  readQuerySecrets,
  recordFailedStart,
  refuseLinks,
  removeFailedStart,
  requireFolder,
  requireOwnTables,
  requirePolicies,
  requireSendableToken,
  scopeOf,
  settle,
  standingOf,
  unmark,
  verdictOf,
  withCatalog,
  withLocation,
  withRest,
} from '../data-set/index.ts'
import type { Service } from '../extract/index.ts'
import { requireEngine } from '../load/index.ts'
import type { Plan } from '../pipeline/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  type Entry,
  endEntry,
  type FoldedRun,
  MANIFEST_PATH,
  NEW_RUN,
  partitionCounts,
} from '../state/index.ts'
import { exportChains, statusFor } from './follow/export-chains.ts'
import { Halt, shortageOfDiskSpace } from './follow/halt.ts'
import type { RunContext } from './follow/run-context.ts'
import { Tally } from './follow/tally.ts'
import type { RunOptions } from './options.ts'
import { askFirst, dependsOnNow, runService } from './run-service.ts'
import { openSession, type Session } from './session.ts'
import { endFigures, logSummary, type RunSummary, reasonOf, summarize } from './summary.ts'

/**
 * Exports what the pipeline requests and earlier runs have not. A run that stops early says why in its summary.
 * @throws ExportError when the run could not begin; nothing is changed then
 */
export async function runPipeline(given: Pipeline, options: RunOptions): Promise<RunSummary> {
  try {
    return await begin(given, options)
  } catch (error) {
    if (isExportError(error)) await recordFailedStart(given, error, options.clock.now())
    throw error
  }
}

async function begin(given: Pipeline, options: RunOptions): Promise<RunSummary> {
  requirePolicies(given, options)
  requireEngine(given.load.format)
  const pipeline = namePipeline(given, options.maskKey)
  const secrets = await readQuerySecrets(pipeline, options)
  await requireSendableToken(pipeline, options)
  return namingLocations(pipeline, () => runOnDataSet(pipeline, secrets, options))
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
  const holding = {
    clock,
    stop,
    fresh,
    hold: options.hold,
    warn: (message: string) => onLog('warn', message),
    onWait(message: string, waitMs: number) {
      onLog('warn', message, { event: 'wait', for: 'lock', wait_ms: waitMs })
      onOpening?.({ kind: 'lock', untilMs: clock.now() + waitMs })
    },
  }
  return holdDataSet(pipeline, holding, async ({ store, lost }) => {
    onOpening?.({ kind: 'checkpoint' })
    // A run that has lost the lock cannot commit any more, so it does not wait.
    const signals = { stop: AbortSignal.any([stop, lost]), abort: AbortSignal.any([abort, lost]) }
    await refuseLinks(store)
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
  })
}

/** What is exported stays in its windows, so that a new length matters only where something is left to export. */
function warnOfIdleWindows(pipeline: NamedPipeline, former: CheckpointState, plan: Plan, log: Log): void {
  const [before, now] = [former.scope?.windows, scopeOf(pipeline).windows]
  if (before == null || now === null || before.every === now.every) return
  if (isEmpty(former.partitions) || !isEmpty(plan.chains())) return
  const [was, is] = [before.every, now.every].map((every) => every ?? 'one window')
  log('warn', `extract.windows.every (${is}) has no effect: all is exported, and its windows (${was}) stay`)
}

function isEmpty(items: Iterable<unknown>): boolean {
  for (const _ of items) return false
  return true
}

type Work = { readonly session: Session; readonly secrets: QuerySecrets }

async function carryOut(
  pipeline: NamedPipeline,
  store: OwnedStore,
  work: Work,
  given: RunOptions,
): Promise<RunSummary> {
  const { version } = given
  const { journal } = work.session
  const id = { run: given.runId ?? randomUUID(), started_at: isoTime(given.clock.now()), version }
  const last = journal.state.runs.at(-1)
  // A copy, because the folded run grows with the run.
  const earlier = last?.run === id.run ? { ...last } : { ...NEW_RUN, ...id, months: [] }
  const halt = new Halt(given.stop, () => shortageOfDiskSpace(pipeline, store))
  const service = runService({ pipeline, session: work.session, options: given, earlier }, halt)
  try {
    const nowMs = given.clock.now()
    const isDone = isEmpty(planFor(pipeline, nowMs, journal.state).chains())
    const asked = isDone ? null : await askFirst(service, pipeline, given.clock)
    const clock = asked !== null && dependsOnNow(pipeline, nowMs) ? asked.clock : given.clock
    const by = { ...(asked?.by ?? earlier.by), host: hostname() }
    const begun = { ...work, begin: { ...id, by }, earlier, halt, service }
    return await exportAndSettle(pipeline, store, begun, { ...given, clock })
  } finally {
    await service.close()
  }
}

type BegunWork = Work & {
  readonly begin: Omit<Entry<'run'>, 'kind'>
  readonly earlier: RunContext['earlier']
  readonly halt: Halt
  readonly service: Service
}

const AT_WORK = { isMarked: false, obstacle: null, isHeld: true }

async function exportAndSettle(
  pipeline: NamedPipeline,
  store: OwnedStore,
  { session, secrets, begin, earlier, halt, service }: BegunWork,
  options: RunOptions,
): Promise<RunSummary> {
  const { clock, version } = options
  const log = options.onLog
  const { journal, sealed } = session
  const startedMs = clock.monotonicMs()
  const { run } = begin
  const plan = planFor(pipeline, clock.now(), journal.state)
  warnOfIdleWindows(pipeline, journal.state, plan, log)
  const isOfFeeds = rulesOf(pipeline.extract.resource).reading === 'feed'
  const found = countPartitions(pipeline, plan, journal.state)
  const scope = { kind: 'scope', ...scopeOf(pipeline) } as const
  const isSame = JSON.stringify(scope) === JSON.stringify({ kind: 'scope', ...journal.state.scope })
  // It goes before the first entry of a plan that holds more.
  const isDone = isPlanDone(pipeline, journal.state, clock.now())
  if (!isDone) await unmark(store)
  await journal.append([...(isSame ? [] : [scope]), { kind: 'run', ...begin }])
  await removeFailedStart(store)
  // A killed run cannot say so later.
  if (!isDone) await bringVerdict(pipeline, store, journal.state, verdictOf(pipeline, journal.state, AT_WORK))
  // A feed is read in every run; further windows show with its rows.
  const counts = isOfFeeds ? { ...found, done: found.total - [...plan.chains()].length } : found
  const tally = new Tally(counts, journal.state.unknownFields.keys())
  log('info', 'run started', {
    event: 'run.start',
    pipeline: pipeline.name,
    version,
    partitions_total: counts.total,
    partitions_done: counts.done,
  })
  const context = { pipeline, session, plan, counts, tally, secrets, options, earlier }
  const ending = await exportChains(context, service, halt).then((found) => ({
    ...found,
    error: found.error === null ? null : withRest(found.error, pipeline, clock.now(), journal.state),
  }))
  const figures = endFigures(earlier, ending, tally)
  const told = (error: ExportError | null) => ({
    finished_at: isoTime(clock.now()),
    status: error === null ? ending.status : statusFor(error),
    error: reasonOf(error === null ? null : withLocation(pipeline, error), tally),
  })
  const end = (error: ExportError | null): Promise<void> =>
    journal.append([endEntry(run, told(error), figures)])
  const unfinished = await failureOf(async () => {
    await settle(pipeline, store, journal, {
      ...options,
      runId: run,
      onPublished: () => end(ending.error),
      onWritten: (shard) => {
        sealed.shards++
        sealed.bytes += shard.bytes
        options.onShard?.(shard)
      },
    })
    const small = manySmallShards(journal.state, pipeline)
    if (small !== null) log('info', small)
  })
  const first = ending.error ?? unfinished
  // What readers see says why the run ended, if that can still be written.
  if (unfinished !== null) await failureOf(() => end(first))
  const hasManifest = (await store.size(MANIFEST_PATH)) !== null
  const unsaved = await failureOf(() => journal.close())
  // A full disk has no space for a manifest either: the first error of the run is kept.
  const error = first ?? unsaved
  const state = withEnd(journal.state, { ...told(error), reasons: figures.reasons })
  const standing = await standingOf(store, state, { fault: null, isHeld: false })
  const verdict = verdictOf(pipeline, state, standing)
  if (unfinished !== null || unsaved !== null)
    await failureOf(() => bringVerdict(pipeline, store, state, verdict))
  const durationMs = clock.monotonicMs() - startedMs
  const { status } = ending
  const ended = isOfFeeds
    ? countPartitions(pipeline, planFor(pipeline, clock.now(), journal.state), journal.state)
    : null
  const partitions = partitionCounts(ended?.total ?? counts.total, ended ?? tally)
  const result = { figures, tally, session, partitions, verdict, error, status, hasManifest, durationMs }
  const summary = summarize(pipeline, result)
  logSummary(summary, log)
  return summary
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
