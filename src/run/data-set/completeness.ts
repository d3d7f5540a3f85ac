import {
  isExportError,
  type NamedPipeline,
  type PartitionCounts,
  type PartitionStates,
  type Pipeline,
  partitionCounts,
  type Store,
} from '../../core/index.ts'
import { folderOf, ownsFolder } from '../../load/index.ts'
import { type Begun, type BegunChain, type Plan, planPartitions } from '../../plan/index.ts'
import {
  type CheckpointState,
  hasBegun,
  holdingsOf,
  isOver,
  type RetiredQuery,
  readCheckpoint,
  SUCCESS_PATH,
} from '../../state/index.ts'
import { namePipeline } from '../queries.ts'
import { namingLocations, openDataSet } from './open-data-set.ts'

/** What is to be exported, given what the checkpoint says has begun. */
export function planFor(pipeline: NamedPipeline, nowMs: number, state: CheckpointState | null): Plan {
  if (state === null) return planPartitions(pipeline, nowMs * 1000, () => null)
  // Those that begin from now on are of queries that the plan has done with.
  const chains = new Map<string, BegunChain[]>()
  for (const chain of state.chains.values()) {
    const others = chains.get(chain.query)
    if (others === undefined) chains.set(chain.query, [chain])
    else others.push(chain)
  }
  return planPartitions(pipeline, nowMs * 1000, (query) => begunOf(query, state, chains.get(query) ?? []))
}

/** What of a query has begun; null: nothing. @param chains those of the query that are not at their end */
function begunOf(query: string, state: CheckpointState, chains: readonly BegunChain[]): Begun | null {
  const records = state.partitions.branches.get(query)
  if (records === undefined) return null
  const windows = new Map<string, { done: boolean }>()
  for (const [name, record] of records) {
    if (hasBegun(record)) windows.set(name, { done: isOver(record) })
  }
  return { windows, chains }
}

/** The pipeline as its file has it, without the flags that have this run ask for something else. */
export function asInFile(pipeline: NamedPipeline): NamedPipeline {
  const { extract } = pipeline
  return extract.whole === null ? pipeline : { ...pipeline, extract: { ...extract, ...extract.whole } }
}

/**
 * Whether everything that the pipeline file plans is exported and can be read: what `_SUCCESS` says. Flags that narrow
 * a run don't count, and neither do queries that the file no longer has, nor what was pruned.
 * @param plan of this run, which is the file's where no flags changed it
 */
export function isWholeExported(
  pipeline: NamedPipeline,
  plan: Plan,
  nowMs: number,
  state: CheckpointState,
): boolean {
  const whole = pipeline.extract.whole === null ? plan : planOfFile(pipeline, nowMs, state)
  if (whole === null) return false
  for (const { key } of whole.partitions()) {
    const record = state.partitions.get(key)
    if (record === undefined || !isOver(record)) return false
  }
  // A crash, a budget or a signal may have left the shard of a folder open that others were still to write to.
  for (const { partitions } of state.openShards.values()) {
    for (const key of partitions) if (state.partitions.get(key)?.state === 'done') return false
  }
  return true
}

/** What the pipeline file plans. @returns null when its windows can't be planned beside those that are half exported */
function planOfFile(pipeline: NamedPipeline, nowMs: number, state: CheckpointState): Plan | null {
  try {
    return planFor(asInFile(pipeline), nowMs, state)
  } catch (error) {
    if (isExportError(error, 'config')) return null
    throw error
  }
}

/** What the pipeline file planned when the last run began: what lies behind that was not requested yet. */
export function planAsOfLastRun(pipeline: NamedPipeline, state: CheckpointState): Plan | null {
  return planOfFile(pipeline, Date.parse(state.runs.at(-1)?.started_at ?? state.header.created_at), state)
}

/** Queries that the data set holds something of and that the pipeline file no longer has, by name. */
export function retiredQueries(pipeline: NamedPipeline, state: CheckpointState): readonly RetiredQuery[] {
  const requested = new Set(asInFile(pipeline).extract.queries.map(({ name }) => name))
  const retired: RetiredQuery[] = []
  for (const query of state.partitions.branches.keys()) {
    const holdings = requested.has(query) ? null : holdingsOf(query, state)
    if (holdings !== null) retired.push(holdings)
  }
  return retired.sort((a, b) => (a.query < b.query ? -1 : 1))
}

/** How many partitions of a plan are in which state. */
export type PlanCounts = PartitionStates & {
  /** But for those that were pruned. */
  readonly total: number
  /** Of those that are not done, how many have rows, or a chain that stands in them. */
  readonly begun: number
  /** Partitions still to be done in each folder that several share; folders with none are absent. */
  readonly unfinished: Map<string, number>
}

/** Goes through a plan once and counts what is done and what is left. */
export function countPartitions(pipeline: Pipeline, plan: Plan, state: CheckpointState | null): PlanCounts {
  const { extract, load } = pipeline
  const shared = !ownsFolder(extract.resource, load.partitionBy)
  const unfinished = new Map<string, number>()
  const counts = { done: 0, partial: 0, failed: 0, pending: 0, pruned: 0, begun: 0 }
  for (const partition of plan.partitions()) {
    const record = state?.partitions.get(partition.key)
    const where = record?.state ?? 'pending'
    counts[where]++
    if (record !== undefined && isOver(record)) continue
    if (record !== undefined && (where === 'partial' || hasBegun(record))) counts.begun++
    if (!shared) continue
    const folder = folderOf(extract.resource, partition, load.partitionBy)
    unfinished.set(folder, (unfinished.get(folder) ?? 0) + 1)
  }
  return { total: plan.total - counts.pruned, ...counts, unfinished }
}

/** Whether a data set holds everything that its pipeline file plans: nothing that its files could tell. */
export type Completeness = {
  readonly complete: boolean
  /** Of the file's plan as of the last run; null: the data set was moved without its state, or its names take a key. */
  readonly partitions: PartitionCounts | null
}

/**
 * Reads whether a data set is complete; changes nothing and takes no lock.
 * @param maskKey where queries are named by digests; null: there is none, or it is not known
 */
export function readCompleteness(pipeline: Pipeline, maskKey: Uint8Array | null): Promise<Completeness> {
  return namingLocations(pipeline, async () => {
    const store = openDataSet(pipeline)
    return completenessOf(pipeline, maskKey, store, await readableCheckpoint(store))
  })
}

/** null also where it is damaged, which is for others to say. */
async function readableCheckpoint(store: Store): Promise<CheckpointState | null> {
  try {
    return await readCheckpoint(store)
  } catch (error) {
    if (isExportError(error, 'damaged')) return null
    throw error
  }
}

/** @param state null: the data set was moved without it */
export async function completenessOf(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  store: Store,
  state: CheckpointState | null,
): Promise<Completeness> {
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  const partitions = state === null ? null : partitionsOf(pipeline, maskKey, state)
  return { complete: isComplete(isMarked, partitions), partitions }
}

/** @param isMarked whether the data set has `_SUCCESS` @param partitions of the file's plan; null: not known */
export function isComplete(
  isMarked: boolean,
  partitions: Pick<PartitionCounts, 'total' | 'done'> | null,
): boolean {
  return isMarked && (partitions === null || partitions.done === partitions.total)
}

function partitionsOf(
  given: Pipeline,
  maskKey: Uint8Array | null,
  state: CheckpointState,
): PartitionCounts | null {
  const pipeline = named(given, maskKey)
  const plan = pipeline === null ? null : planAsOfLastRun(pipeline, state)
  if (pipeline === null || plan === null) return null
  const counts = countPartitions(pipeline, plan, state)
  return partitionCounts(counts.total, counts)
}

/** null: queries have no names without a key. */
function named(pipeline: Pipeline, maskKey: Uint8Array | null): NamedPipeline | null {
  try {
    return namePipeline(pipeline, maskKey)
  } catch (error) {
    if (isExportError(error, 'config')) return null
    throw error
  }
}
