import {
  ExportError,
  isExportError,
  isFeed,
  isOfFeeds,
  rulesOf,
  searchesOf,
  settleAll,
  type WindowRun,
} from '../../core/index.ts'
import type { PlanCounts } from '../../data-set/index.ts'
import { PageSizes, requestsLeft, type Service } from '../../extract/index.ts'
import { ownsFolder } from '../../load/index.ts'
import type { PlannedChain } from '../../pipeline/index.ts'
import { hasEnded, partitionEntry, presentOf, type RunCounts, type RunStatus } from '../../state/index.ts'
import type { AllowedRequests, Progress } from '../options.ts'
import type { Chain } from './chain.ts'
import { ChainQueue } from './chain-queue.ts'
import { ChainRun } from './chain-run.ts'
import { Feed } from './feed.ts'
import type { Halt } from './halt.ts'
import { Measurements } from './measurements.ts'
import { excessOf } from './pages/quarantine.ts'
import type { RunContext } from './run-context.ts'
import { Search } from './search.ts'
import type { Tally } from './tally.ts'

export type Ending = Omit<RunCounts, 'rows' | 'quarantined'> & {
  readonly status: RunStatus
  /** What stopped the run early; null: nothing. */
  readonly error: ExportError | null
}

/** Faster changes cannot be read. */
const PROGRESS_MS = 250

/** Follows the chains, `concurrency` at a time. An error that concerns all ends the run, once pages are committed. */
export async function exportChains(run: RunContext, service: Service, halt: Halt): Promise<Ending> {
  const { pipeline, plan, session, counts, tally, options } = run
  const reportProgress = (): void => options.onProgress(progressOf(run, service))
  const { concurrency } = pipeline.extract
  const sizes = new PageSizes(pipeline.extract.pageSize, session.journal.state.service)
  const measurements = new Measurements(service, sizes, run.earlier)
  const queue = new ChainQueue(plan.chains(), concurrency)
  const shared = { ...run, service, sizes, measurements, halt, queue }
  const work = async (): Promise<void> => {
    try {
      for (;;) {
        const next = halt.halted ? null : queue.next()
        if (next === null || halt.halted) break
        const chain = await beginOrResumeChain(next, run)
        if (chain === null) continue
        await new ChainRun(chain, shared).follow()
        queue.begin()
      }
    } catch (error) {
      halt.abort()
      throw error
    } finally {
      queue.leave()
    }
  }
  reportProgress()
  const reporting = setInterval(reportProgress, PROGRESS_MS).unref()
  try {
    await settleEnded(run)
    // A crash may have occurred between the last page of a folder and the seal of its shard.
    await sealFinished(run)
    if (service.counters.hasSucceeded) queue.begin()
    const others = Array.from({ length: concurrency - 1 }, () => queue.begun.then(work))
    await settleAll([work(), ...others])
    // More rows of feeds are for the next run, in shards of their own, also after the end of a budget.
    const isWell = halt.error === null || halt.error.kind === 'quota'
    if (isWell && isOfFeeds(pipeline)) await session.shards.seal(session.shards.openFolders)
    // Shards that a failed partition shares with others are sealed, so that the others' rows can be read.
    if (halt.error === null && tally.failed > 0) await sealShared(run, () => true)
    await measurements.enterMonth(session.journal)
    await session.journal.append(measurements.entries(null))
    await session.shards.settled()
  } catch (error) {
    if (!isExportError(error)) throw error
    halt.stopFor(error)
  } finally {
    clearInterval(reporting)
    reportProgress()
  }
  const { requests, retries, searchesSpent, searchesRemaining } = service.counters
  const error = halt.error ?? interruption(options.stop, tally, counts)
  return { status: statusOf(error, tally), error, requests, retries, searchesSpent, searchesRemaining }
}

/** Partitions that failed for what came of them: they are done if this run permits it, else they fail again. */
async function settleEnded({ plan, counts, session, pipeline, tally }: RunContext): Promise<void> {
  const { journal } = session
  if (counts.failed === 0) return
  for (const partition of plan.partitions()) {
    const folded = presentOf(journal.state, partition.key)
    if (folded?.state !== 'failed' || !hasEnded(folded)) continue
    const fault = excessOf(partition, 0, pipeline.transform, folded)
    if (fault === null) {
      await journal.append([partitionEntry(partition.key, { ...folded, state: 'done', error: null })])
      tally.done++
    } else tally.partitionFailed(partition.key, fault, 0)
  }
  tally.failuresInRow = 0
}

/** null: this run does not follow it. The windows that it gives to another chain are committed before its pages. */
async function beginOrResumeChain(
  planned: PlannedChain,
  { session, pipeline }: RunContext,
): Promise<Chain | null> {
  const { journal, own } = session
  const { query } = planned
  const { every } = pipeline.extract.windows ?? { every: null }
  const follow = (chain: number, windows: WindowRun, wanted: number, schema: number): Chain =>
    isFeed(query)
      ? new Feed({ journal, chain, query, windows, schema: own.number, every })
      : new Search({ journal, chain, query, windows, schema, wanted })
  if (planned.kind === 'new') {
    const { windows } = planned
    return follow(session.nextChain(), windows, windows.count, own.number)
  }
  const { chain, wanted, keep } = planned
  if (keep !== null) await journal.append([{ kind: 'shorten', chain, windows: keep }])
  const folded = journal.state.chains.get(chain)
  if (folded === undefined || wanted === 0) return null
  return follow(chain, folded.windows, wanted, folded.schema)
}

export function statusFor(error: ExportError): RunStatus {
  if (error.kind === 'quota') return 'budget'
  return error.kind === 'interrupted' ? 'interrupted' : 'failed'
}

function statusOf(error: ExportError | null, tally: Tally): RunStatus {
  if (error !== null) return statusFor(error)
  return tally.failed > 0 ? 'failed' : 'complete'
}

/** A signal may come between two partitions, where nothing throws. */
function interruption(stop: AbortSignal, tally: Tally, { total }: PlanCounts): ExportError | null {
  if (!stop.aborted || tally.done + tally.failed === total) return null
  return new ExportError({
    kind: 'interrupted',
    what: 'The run was stopped',
    where: '',
    next: 'Run it again to resume.',
  })
}

async function sealFinished(run: RunContext): Promise<void> {
  const { pipeline, session, counts } = run
  if (!ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) {
    return sealShared(run, (folder) => !counts.unfinished.has(folder))
  }
  const { state } = session.journal
  const isFinished = (key: string): boolean => {
    const folded = presentOf(state, key)
    return folded !== undefined && hasEnded(folded)
  }
  const finished = [...state.openShards.values()].filter((shard) => [...shard.partitions].every(isFinished))
  await session.shards.seal(finished.map(({ folder }) => folder))
}

async function sealShared(
  { pipeline, session }: RunContext,
  which: (folder: string) => boolean,
): Promise<void> {
  if (ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) return
  const folders = session.shards.openFolders.filter(which)
  if (folders.length > 0) await session.shards.seal(folders)
}

function progressOf(run: RunContext, { counters }: Service): Progress {
  const { tally, counts } = run
  return {
    partitionsTotal: counts.total,
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
    requestsAllowed: allowedRequests(run, counters),
    pausedUntilMs: counters.pausedUntilMs,
    retrying: counters.retrying,
  }
}

/** The lower limit, for display; null: none. */
function allowedRequests(
  { pipeline: { extract, service }, earlier }: RunContext,
  { requests, searchesRemaining }: Service['counters'],
): AllowedRequests | null {
  const budget = requestsLeft({ ...extract, sentBefore: earlier.requests }, requests)
  // Other requests cost nothing.
  const isCounted = rulesOf(extract.resource).reading === 'search' && searchesRemaining !== null
  const quota = isCounted
    ? Math.max(0, searchesRemaining - (extract.minSearchesRemaining ?? 0)) /
      searchesOf(extract.pageSize, service.rowsPerSearch)
    : Number.POSITIVE_INFINITY
  const allowed = Math.min(budget, quota)
  if (!Number.isFinite(allowed)) return null
  return { requests: Math.floor(allowed), by: budget <= quota ? 'budget' : 'quota' }
}
