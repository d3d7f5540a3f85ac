import { type Clock, hidesQueries, isExportError, type NamedPipeline, rulesOf } from '../core/index.ts'
import { type RunLimits, Service } from '../extract/index.ts'
import { type CheckpointState, searchesByMonth } from '../state/index.ts'
import type { Halt } from './chains/halt.ts'
import type { RunContext } from './chains/run-context.ts'
import { tokenTest } from './service-calls.ts'

/** The service of a run, with its limits and what earlier runs have measured. */
export function runService(
  context: Pick<RunContext, 'pipeline' | 'session' | 'options' | 'earlier'>,
  halt: Halt,
): Service {
  const { pipeline, session, options } = context
  return new Service(
    pipeline.service,
    { ...limitsOf(context), connections: pipeline.extract.concurrency },
    {
      clock: options.clock,
      readSecret: options.readSecret,
      stop: halt.signal,
      abort: options.abort,
      log: options.onLog,
      hidesTexts: hidesQueries(pipeline),
      hasSucceeded: hasFound(session.journal.state),
      measures: session.journal.state.service,
    },
  )
}

function limitsOf({
  pipeline,
  session,
  earlier,
}: Pick<RunContext, 'pipeline' | 'session' | 'earlier'>): RunLimits {
  const { maxRequests, minSearchesRemaining, monthlySearches } = pipeline.extract
  const monthly =
    monthlySearches === null
      ? null
      : { searches: monthlySearches, before: searchesByMonth(session.journal.state.runs) }
  return { maxRequests, sentBefore: earlier.requests, minSearchesRemaining, monthly }
}

/** Whether any search of the data set ever succeeded: then its address is right, or was. */
function hasFound({ partitions }: CheckpointState): boolean {
  for (const [, { pages }] of partitions) if (pages > 0) return true
  return false
}

/** A Date header has whole seconds, and takes its time. */
const SAME_MS = 2000

/**
 * A clock that shows the service's time, by which windows end: it receives the rows. The exchange of an API key tells
 * it, or else a test of the token; both are free. If neither does, this machine's clock counts.
 */
export async function serviceClock(
  service: Service,
  { service: settings }: NamedPipeline,
  clock: Clock,
): Promise<Clock> {
  try {
    if (settings.auth.kind === 'api-key') await service.obtainToken()
    else await tokenTest(service, settings, 0)
  } catch (error) {
    // The first search shows what is wrong.
    if (!isExportError(error)) throw error
  }
  const offsetMs = service.counters.clockOffsetMs ?? 0
  if (Math.abs(offsetMs) < SAME_MS) return clock
  return {
    now: () => clock.now() + offsetMs,
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  }
}

/** Whether windows of a pipeline end by the present time. */
export function dependsOnNow({ extract: { resource, windows } }: NamedPipeline, nowMs: number): boolean {
  if (windows === null || rulesOf(resource).reading === 'feed') return false
  return windows.until === 'now' || windows.until > (nowMs - windows.lagMs - MAX_AHEAD_MS) * 1000
}

/** This machine's clock may be ahead, but hardly by more than a month. */
const MAX_AHEAD_MS = 31 * 86_400_000
