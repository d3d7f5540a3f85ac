import { hostname } from 'node:os'
import {
  type Clock,
  hidesQueries,
  isExportError,
  isOfFeeds,
  type Log,
  type NamedPipeline,
  type OwnedStore,
} from '../core/index.ts'
import {
  bringVerdict,
  countPartitions,
  isDone,
  planFor,
  planOfFile,
  readVerdict,
  removeFailedStart,
  scopeOf,
  unmark,
} from '../data-set/index.ts'
import { Service } from '../extract/index.ts'
import type { Plan } from '../pipeline/index.ts'
import { type CheckpointState, type Entry, type RunBy, searchesByMonth } from '../state/index.ts'
import type { Halt } from './follow/halt.ts'
import type { RunContext } from './follow/run-context.ts'
import { Tally } from './follow/tally.ts'
import { type TokenTest, tokenTest } from './test-service.ts'

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

/** Plans the run by the time of the service, and puts it on record. */
export async function beginRun(
  store: OwnedStore,
  parts: Omit<RunContext, 'plan' | 'counts' | 'tally'>,
  id: Omit<Entry<'run'>, 'kind' | 'by'>,
  service: Service,
): Promise<RunContext> {
  const { pipeline, session, earlier } = parts
  const { journal } = session
  const { onLog: log, clock: own } = parts.options
  const isIdle = isEmpty(planFor(pipeline, own.now(), journal.state).chains())
  const asked = isIdle ? null : await askFirst(service, pipeline, own)
  const clock = asked !== null && dependsOnNow(pipeline, own.now()) ? asked.clock : own
  const by = { ...(asked?.by ?? earlier.by), host: hostname() }
  const plan = planFor(pipeline, clock.now(), journal.state)
  warnOfIdleWindows(pipeline, journal.state, plan, log)
  const found = countPartitions(pipeline, plan, journal.state)
  const scope = { kind: 'scope', ...scopeOf(pipeline) } as const
  const isSame = JSON.stringify(scope) === JSON.stringify({ kind: 'scope', ...journal.state.scope })
  // It goes before the first entry of a plan that holds more.
  const isWhole = isDone(planOfFile(pipeline, journal.state, clock.now()), journal.state)
  if (!isWhole) await unmark(store)
  await journal.append([...(isSame ? [] : [scope]), { kind: 'run', ...id, by }])
  await removeFailedStart(store)
  // A killed run cannot say so later.
  if (!isWhole) {
    const verdict = await readVerdict(store, pipeline, journal.state, { atWork: 'perhaps' })
    await bringVerdict(pipeline, store, journal.state, verdict)
  }
  // A feed is read in every run; further windows show with its rows.
  const counts = isOfFeeds(pipeline) ? { ...found, done: found.total - [...plan.chains()].length } : found
  log('info', 'run started', {
    event: 'run.start',
    pipeline: pipeline.name,
    version: id.version,
    partitions_total: counts.total,
    partitions_done: counts.done,
  })
  const tally = new Tally(counts.done, journal.state.unknownFields.keys(), log)
  return { ...parts, options: { ...parts.options, clock }, plan, counts, tally }
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

/** A Date header has whole seconds, and takes its time. */
const SAME_MS = 2000

/** What a free test of the token tells before anything is paid: whose it is, and the service's time. */
async function askFirst(
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

function dependsOnNow(pipeline: NamedPipeline, nowMs: number): boolean {
  const { windows } = pipeline.extract
  if (windows === null || isOfFeeds(pipeline)) return false
  return windows.until === 'now' || windows.until > (nowMs - windows.lagMs - MAX_AHEAD_MS) * 1000
}

/** This machine's clock may be ahead, but hardly by more than a month. */
const MAX_AHEAD_MS = 31 * 86_400_000
