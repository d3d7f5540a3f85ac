import * as z from 'zod'
import {
  counted,
  countText,
  getOrInsert,
  type Pipeline,
  type PlainError,
  type Store,
} from '../../core/index.ts'
import { waitingWindows } from '../../pipeline/index.ts'
import {
  type CheckpointState,
  coverage,
  hasBegun,
  NO_PARTITIONS,
  type PartitionCounts,
  type PartitionState,
  partitionCounts,
  publishedStates,
  rangeOf,
  runError,
  type TimeRange,
  type Verdict,
} from '../../state/index.ts'
import { withNames } from '../queries.ts'
import { isMarked } from '../settle/publish.ts'
import { leftOutClauses, leftOutOf } from './left-out.ts'
import { lastBegun, planOfFile } from './plan-state.ts'
import { scopeOf } from './scope.ts'

/** Whether the last run is still at work, if it has no end. */
type AtWork = boolean | 'perhaps'

/**
 * The verdict on a data set for what the given file plans, as of the last run. @param state null: nothing is exported
 * @param fault what a start would meet now; default: why the last one could not begin, if none has begun since
 */
export async function readVerdict(
  store: Store,
  given: Pipeline,
  state: CheckpointState | null,
  { fault = null, atWork = false }: { readonly fault?: PlainError | null; readonly atWork?: AtWork } = {},
): Promise<Verdict> {
  if (state === null) return NOTHING
  const { partitions, outside, failure, covers } = countsOf(given, state)
  const isDone = partitions === null || partitions.done === partitions.total
  const complete = isDone && (await isMarked(store))
  const ending = fault ?? (await readFailedStart(store, state)) ?? endOf(state, atWork)
  const told = {
    covers,
    waiting: waitingIn(given, lastBegun(state)),
    partitions,
    complete,
    leftOut: leftOutClauses(leftOutOf(given.transform, state)),
    outside,
  }
  const extent = extentOf(partitions, complete)
  // A run goes on after the failure of a partition.
  if (ending !== null && (complete || state.partitions.get(ending.where)?.state !== 'failed')) {
    const { kind, what, where, next } = ending
    if (kind === 'damaged')
      return { state: 'damaged', headline: `DAMAGED: ${what}`, why: where, next, ...told }
    const headline = `STOPPED: ${extent.replace(/^.*?: /, '')}${complete ? ' exported' : ''}`
    return { state: 'stopped', headline, why: where === '' ? what : `${what} (${where})`, next, ...told }
  }
  if (complete) return { state: 'complete', headline: extent, why: '', next: '', ...told }
  const { why, next } = whyIncomplete(state, atWork)
  return {
    state: 'incomplete',
    headline: extent,
    why: failure?.cause ?? why,
    next: failure?.next ?? next,
    ...told,
  }
}

function whyIncomplete({ runs }: CheckpointState, atWork: AtWork): Pick<Verdict, 'why' | 'next'> {
  const last = runs.at(-1)
  if (atWork === false || last?.finished_at !== null)
    return { why: '', next: 'Run it again: the next run exports the rest.' }
  const began = `A run began at ${last.started_at}`
  if (atWork === true) return { why: `${began} and is at work`, next: '' }
  return { why: `${began}: it is at work, or was killed`, next: '`status` tells which.' }
}

const NOTHING: Verdict = {
  state: 'incomplete',
  headline: 'INCOMPLETE: nothing is exported yet',
  why: '',
  next: 'Run it.',
  covers: null,
  waiting: [],
  partitions: null,
  complete: false,
  leftOut: [],
  outside: { partitions: 0, rows: 0 },
}

/** How the last run ended, if not as it should; null: well, or not yet. */
function endOf({ runs }: CheckpointState, atWork: AtWork): PlainError | null {
  const last = runs.at(-1)
  if (last === undefined || last.status === 'complete') return null
  if (last.finished_at === null) return atWork ? null : withoutEnd(last.started_at)
  return last.error ?? withoutEnd(last.started_at)
}

function withoutEnd(startedAt: string): PlainError {
  return {
    kind: 'interrupted',
    what: `The run that began at ${startedAt} has left no end: it was killed, or could not write`,
    where: '',
    next: 'Run it again: it goes on from the last committed page. `check` tells whether it can write.',
  }
}

function extentOf(partitions: PartitionCounts | null, complete: boolean): string {
  if (partitions === null)
    return complete ? 'complete: all that was planned' : 'INCOMPLETE: it has no _SUCCESS'
  const { total, done, failed, pending } = partitions
  if (complete)
    return total === 1 ? 'complete: its one partition' : `complete: all ${countText(total)} partitions`
  if (done === total) return 'INCOMPLETE: it has no _SUCCESS'
  const of = ` of ${counted(total, 'partition')}`
  const parts = [
    ...(failed > 0 ? [`${countText(failed)}${of} failed`] : []),
    ...(pending > 0 ? [`${countText(pending)}${failed > 0 ? '' : of} not done`] : []),
  ]
  return `INCOMPLETE: ${parts.join(', ')}`
}

type Counts = Pick<Verdict, 'partitions' | 'outside' | 'covers'> & {
  /** The most frequent one of its partitions. */
  readonly failure: { readonly cause: string; readonly next: string } | null
}

function countsOf(given: Pipeline, state: CheckpointState): Counts {
  const pipeline = withNames(given)
  const plan = pipeline === null ? null : planOfFile(pipeline, state)
  if (pipeline === null || plan === null)
    return { partitions: null, outside: NOTHING.outside, covers: null, failure: null }
  const stateOf = publishedStates(state)
  const states = { ...NO_PARTITIONS }
  const planned = new Map<string, PartitionState>()
  for (const { key } of plan.partitions()) {
    const where = stateOf(key)
    states[where]++
    planned.set(key, where)
  }
  const causes = new Map<string, { cause: string; next: string; partitions: number }>()
  const outside = { partitions: 0, rows: 0 }
  for (const [key, folded] of state.partitions) {
    const { rows, error } = folded
    if (!planned.has(key)) {
      if (folded.state === 'pruned' || !hasBegun(folded)) continue
      outside.partitions++
      outside.rows += rows
    } else if (folded.state === 'failed' && error !== null) {
      const { cause, next } = error
      getOrInsert(causes, cause, () => ({ cause, next, partitions: 0 })).partitions++
    }
  }
  const { done, failed, partial, pending } = states
  const [failure = null] = [...causes.values()].sort((a, b) => b.partitions - a.partitions)
  return {
    partitions: partitionCounts(done + failed + partial + pending, { done, failed }),
    outside,
    failure,
    covers: coverage(
      scopeOf(pipeline),
      Array.from(planned, ([key, state]) => ({ key, state })),
    ),
  }
}

/** @param nowMs when the last run began */
export function waitingIn(given: Pipeline, nowMs: number): readonly TimeRange[] {
  const { windows, unfiltered } = given.extract
  const settings = unfiltered === null ? windows : unfiltered.windows
  if (settings === null) return []
  const found = waitingWindows(settings, nowMs * 1000)
  return found.map(({ from, until }) => rangeOf(from, until))
}

/** Why the last start could not begin. In `_state` alone, so that a signature stays valid. */
export const FAILED_START_PATH = '_state/failed-start.json'

const failedStart = z.object({
  at: z.string(),
  /** Number of runs before it: one that begins later makes it void. */
  runs: z.number(),
  error: runError,
})
export type FailedStart = z.infer<typeof failedStart>

/** null: the last start began, or has left nothing that can be read. */
async function readFailedStart(store: Store, { runs }: CheckpointState): Promise<PlainError | null> {
  try {
    const bytes = await store.read(FAILED_START_PATH)
    if (bytes === null) return null
    const { error, runs: before } = failedStart.parse(JSON.parse(Buffer.from(bytes).toString()))
    return before === runs.length ? error : null
  } catch {
    return null
  }
}
