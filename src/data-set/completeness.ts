import {
  type NamedPipeline,
  nullIf,
  numberOf,
  type PartitionCounts,
  type Pipeline,
  partitionCounts,
  type Store,
  unlessSecret,
} from '../core/index.ts'
import {
  type CheckpointState,
  type FoldedRun,
  type Manifest,
  readCheckpoint,
  readManifest,
  SUCCESS_PATH,
  sumOfPartitions,
} from '../state/index.ts'
import { namingLocations, openDataSet } from './open-data-set.ts'
import { countPartitions, planAsOfLastRun } from './plan-state.ts'
import { allowedOf, limitFrom } from './quarantine-limit.ts'
import { namePipeline } from './queries.ts'

/** Whether a data set holds everything that its pipeline file plans. The files alone cannot show this. */
export type Completeness = {
  readonly complete: boolean
  /** Of the file's plan as of the last run; null: the data set was moved without its state, or its names need a key. */
  readonly partitions: PartitionCounts | null
  /** Partitions that are to be exported again; until then their former rows stay. */
  readonly redo: number
  readonly left_out: LeftOut
}

/** What a data set lacks by intent, however complete it is. */
export type LeftOut = {
  /** Items in quarantine. */
  readonly quarantined: number
  /** Partitions that have such items. */
  readonly quarantined_partitions: number
  /** Those of them that have more than `transform.max_quarantined` permits now. */
  readonly beyond_limit: number
  readonly max_quarantined: string
  /** Why, as far as runs recorded it: fields and rules, no values. */
  readonly reasons: readonly string[]
  /** Partitions that `prune` removed, and the time before which the last of them ended. */
  readonly pruned: { readonly partitions: number; readonly before: string } | null
  /** Items of forgotten people. */
  readonly forgotten: number
}

const MAX_REASONS = 3

/** What is left out, for everybody who calls a data set complete: a clause for each kind; none: nothing is. */
export function leftOutClauses(leftOut: LeftOut): readonly string[] {
  const { quarantined, quarantined_partitions, beyond_limit, max_quarantined, reasons } = leftOut
  const { pruned, forgotten } = leftOut
  const clauses: string[] = []
  if (quarantined > 0) {
    const first = reasons.slice(0, MAX_REASONS).join('; ')
    const why = first === '' ? '' : `: ${first}${reasons.length > MAX_REASONS ? '; …' : ''}`
    const limit =
      beyond_limit === 0
        ? ''
        : `; ${numberOf(beyond_limit, 'partition')} beyond max_quarantined: ${max_quarantined}`
    const where = `${numberOf(quarantined_partitions, 'partition')}, see _quarantine`
    clauses.push(`${wereLeftOut(quarantined)} (quarantine, in ${where}${why}${limit})`)
  }
  if (pruned !== null) {
    const { partitions, before } = pruned
    const were = partitions === 1 ? 'was' : 'were'
    clauses.push(
      `${numberOf(partitions, 'partition')} that ended by ${before.slice(0, 10)} ${were} removed (prune)`,
    )
  }
  if (forgotten > 0) clauses.push(`${wereLeftOut(forgotten, ' of forgotten people')} (forget)`)
  return clauses
}

function wereLeftOut(items: number, of = ''): string {
  return `${numberOf(items, 'item')}${of} ${items === 1 ? 'was' : 'were'} left out`
}

/** `, but …`, or empty. */
export function leftOutText(clauses: readonly string[]): string {
  return clauses.length === 0 ? '' : `, but ${clauses.join(', and ')}`
}

/** @param state of the data set */
export function leftOutOf({ transform }: Pipeline, state: CheckpointState): LeftOut {
  const { forgotten } = sumOfPartitions(state)
  return { ...leftOut(transform, state.prunes, state.runs, partitionsIn(state)), forgotten }
}

function* partitionsIn({ partitions }: CheckpointState): Generator<Counted> {
  for (const windows of partitions.branches.values()) yield* windows.values()
}

/** The same, as the manifest has it. */
export function leftOutOfManifest({ scope, partitions, prunes, runs, totals }: Manifest): LeftOut {
  const maxQuarantined = limitFrom(scope.max_quarantined)
  return { ...leftOut({ maxQuarantined }, prunes, runs, partitions), forgotten: totals.forgotten }
}

type Counted = { readonly state: string; readonly rows: number; readonly quarantined: number }

function leftOut(
  { maxQuarantined }: Pick<Pipeline['transform'], 'maxQuarantined'>,
  prunes: readonly { readonly before: string }[],
  runs: readonly Reasons[],
  folded: Iterable<Counted>,
): Omit<LeftOut, 'forgotten'> {
  const limit = allowedOf(maxQuarantined)
  const counts = { quarantined: 0, quarantined_partitions: 0, beyond_limit: 0 }
  let pruned = 0
  for (const { state, rows, quarantined } of folded) {
    if (state === 'pruned') pruned++
    if (quarantined === 0) continue
    counts.quarantined += quarantined
    counts.quarantined_partitions++
    if (limit.isExceeded(quarantined, rows + quarantined)) counts.beyond_limit++
  }
  const last = prunes.reduce((latest, { before }) => (before > latest ? before : latest), '')
  return {
    ...counts,
    max_quarantined: limit.text,
    reasons: counts.quarantined === 0 ? [] : reasonsOf(runs),
    pruned: pruned === 0 ? null : { partitions: pruned, before: last },
  }
}

/** The most frequent first. */
function reasonsOf(runs: Iterable<Reasons>): string[] {
  const sums = [...sumOfReasons(runs, unlessSecret)]
  return sums.sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).map(([reason]) => reason)
}

type Reasons = Pick<FoldedRun, 'reasons'>

/** Why items were quarantined, and how many. */
export function sumOfReasons(
  runs: Iterable<Reasons>,
  shown: (reason: string) => string = (reason) => reason,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const { reasons } of runs) {
    for (const [given, items] of Object.entries(reasons)) {
      const reason = shown(given)
      sums.set(reason, (sums.get(reason) ?? 0) + items)
    }
  }
  return sums
}

/** Reads whether a data set is complete; changes nothing and takes no lock. */
export function readCompleteness(pipeline: Pipeline): Promise<Completeness> {
  return namingLocations(pipeline, async () => {
    const store = openDataSet(pipeline)
    // If it is damaged, others report it.
    const state = await readCheckpoint(store).catch(nullIf('damaged'))
    return completenessOf(pipeline, store, state)
  })
}

/** @param state null: the data set was moved without it */
export async function completenessOf(
  pipeline: Pipeline,
  store: Store,
  state: CheckpointState | null,
): Promise<Completeness> {
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  const partitions = state === null ? null : partitionsOf(pipeline, state)
  const complete = isMarked && (partitions === null || partitions.done === partitions.total)
  if (state !== null)
    return { complete, partitions, redo: state.redo.partitions.size, left_out: leftOutOf(pipeline, state) }
  const manifest = await readManifest(store).catch(nullIf('damaged'))
  const left_out =
    manifest === null
      ? { ...leftOut(pipeline.transform, [], [], []), forgotten: 0 }
      : leftOutOfManifest(manifest)
  return { complete, partitions, redo: 0, left_out }
}

function partitionsOf(given: Pipeline, state: CheckpointState): PartitionCounts | null {
  const pipeline = withNames(given)
  const plan = pipeline === null ? null : planAsOfLastRun(pipeline, state)
  if (pipeline === null || plan === null) return null
  const { total, done, failed } = countPartitions(pipeline, plan, state, (known, key) =>
    known.partitions.get(key),
  )
  return partitionCounts(total, { done, failed })
}

/** null: the names of queries need a key. */
export function withNames(pipeline: Pipeline): NamedPipeline | null {
  try {
    return namePipeline(pipeline, null)
  } catch (error) {
    return nullIf('config')(error)
  }
}
