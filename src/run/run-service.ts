import { type Clock, hidesQueries, isExportError, type NamedPipeline, rulesOf } from '../core/index.ts'
import { Service } from '../extract/index.ts'
import { type CheckpointState, type RunBy, searchesByMonth } from '../state/index.ts'
import type { Halt } from './follow/halt.ts'
import type { RunContext } from './follow/run-context.ts'
import { type TokenTest, tokenTest } from './service-calls.ts'

export function runService(
  { pipeline, session, options, earlier }: Pick<RunContext, 'pipeline' | 'session' | 'options' | 'earlier'>,
  halt: Halt,
): Service {
  const { maxRequests, minSearchesRemaining, monthlySearches: searches, concurrency } = pipeline.extract
  const { state } = session.journal
  const monthly = searches === null ? null : { searches, before: searchesByMonth(state.runs) }
  const limits = { maxRequests, sentBefore: earlier.requests, minSearchesRemaining, monthly }
  return new Service(
    pipeline.service,
    { ...limits, connections: concurrency },
    {
      clock: options.clock,
      readSecret: options.readSecret,
      stop: halt.signal,
      abort: options.abort,
      log: options.onLog,
      hidesTexts: hidesQueries(pipeline),
      hasSucceeded: hasFound(state),
      measures: state.service,
    },
  )
}

/** Whether any search of the data set ever succeeded: then its address is right, or was. */
function hasFound({ partitions }: CheckpointState): boolean {
  for (const [, { pages }] of partitions) if (pages > 0) return true
  return false
}

/** A Date header has whole seconds, and takes its time. */
const SAME_MS = 2000

/** What a free test of the token tells before anything is paid: whose it is, and the service's time. */
export async function askFirst(
  service: Service,
  { service: settings }: NamedPipeline,
  clock: Clock,
): Promise<{ readonly clock: Clock; readonly by: Omit<RunBy, 'host'> }> {
  let info: TokenTest['info'] = null
  try {
    info = (await tokenTest(service, settings, 0)).info
  } catch (error) {
    // The first search shows what is wrong.
    if (!isExportError(error)) throw error
  }
  const by = { organization: info?.organizationId ?? null, tenant: info?.tenantId ?? null }
  const offsetMs = service.counters.clockOffsetMs ?? 0
  if (Math.abs(offsetMs) < SAME_MS) return { clock, by }
  return {
    clock: {
      now: () => clock.now() + offsetMs,
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
    },
    by,
  }
}

export function dependsOnNow({ extract: { resource, windows } }: NamedPipeline, nowMs: number): boolean {
  if (windows === null || rulesOf(resource).reading === 'feed') return false
  return windows.until === 'now' || windows.until > (nowMs - windows.lagMs - MAX_AHEAD_MS) * 1000
}

/** This machine's clock may be ahead, but hardly by more than a month. */
const MAX_AHEAD_MS = 31 * 86_400_000
