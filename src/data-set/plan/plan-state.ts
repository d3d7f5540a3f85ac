import {
  getOrInsert,
  isOfFeeds,
  type NamedPipeline,
  type NamedQuery,
  nullIf,
  type Partition,
  type Pipeline,
  parseWindow,
  partition,
  partitionKey,
  WindowRun,
  windowRange,
} from '../../core/index.ts'
import { folderOf, ownsFolder } from '../../load/index.ts'
import { type BegunChain, type Plan, type PlannedChain, planPartitions } from '../../pipeline/index.ts'
import {
  type CheckpointState,
  hasBegun,
  hasEnded,
  holdingsOf,
  isOver,
  NO_PARTITIONS,
  type PlanStates,
  presentOf,
  type RetiredQuery,
} from '../../state/index.ts'

export function planFor(pipeline: NamedPipeline, nowMs: number, state: CheckpointState | null): Plan {
  if (isOfFeeds(pipeline)) return planOfFeeds(pipeline, state)
  if (state === null) return planPartitions(pipeline, nowMs * 1000, () => null)
  // Chains that begin from now on belong to queries that the plan has already passed.
  const chains = new Map<string, BegunChain[]>()
  for (const chain of state.chains.values()) getOrInsert(chains, chain.query, () => []).push(chain)
  return planPartitions(pipeline, nowMs * 1000, (query) => {
    const parts = state.partitions.branches.get(query)
    if (parts === undefined) return null
    const windows = new Map<string, { done: boolean }>()
    for (const [name, exported] of parts) {
      const key = `${query}/${name}`
      // What is exported again keeps its window.
      if (!hasBegun(exported) && !state.redo.partitions.has(key)) continue
      const folded = presentOf(state, key)
      windows.set(name, { done: folded !== undefined && hasEnded(folded) })
    }
    return { windows, chains: chains.get(query) ?? [] }
  })
}

/**
 * One chain for each feed, whatever is exported: more may have come. New feeds come first, then those that were read to
 * their ends longest ago, so that no budget leaves one out for ever. A run that goes on after an interruption does not
 * read those again that it has read to their ends.
 */
function planOfFeeds({ extract: { queries } }: NamedPipeline, state: CheckpointState | null): Plan {
  function* partitions(): Generator<Partition> {
    for (const query of queries) {
      const begun = state?.partitions.branches.get(query.name)?.keys() ?? []
      for (const name of [...begun].sort())
        if (name !== windowRange(null)) yield partition(query, parseWindow(name))
      yield partition(query, null)
    }
  }
  function* chains(): Generator<PlannedChain> {
    // It changes while the run reads them.
    const all = [...(state?.chains.values() ?? [])]
    const begun = new Map(all.map(({ query, chain }, turn) => [query, { chain, turn }]))
    const turnOf = ({ name }: NamedQuery): number => begun.get(name)?.turn ?? -1
    const goesOn = state?.runs.at(-1)?.finished_at === null
    for (const query of queries.toSorted((one, other) => turnOf(one) - turnOf(other))) {
      if (goesOn && presentOf(state, partitionKey(query.name, null))?.state === 'done') continue
      const chain = begun.get(query.name)?.chain
      if (chain === undefined) yield { kind: 'new', query, windows: WindowRun.of('asc', [null]) }
      else yield { kind: 'begun', query, chain, wanted: 1, keep: null }
    }
  }
  return { partitions, chains }
}

/** The pipeline of the file, without the flags that change what this run exports. */
export function asInFile(pipeline: NamedPipeline): NamedPipeline {
  const { extract } = pipeline
  return extract.unfiltered === null
    ? pipeline
    : { ...pipeline, extract: { ...extract, ...extract.unfiltered } }
}

/** Epoch ms. */
export function lastBegun(state: CheckpointState): number {
  return Date.parse(state.runs.at(-1)?.started_at ?? state.header.created_at)
}

/**
 * What the file plans, whatever the flags of a run are; null: its windows would cut partly exported ones.
 * @param asOfMs windows that end later are not planned yet; default: when the last run began
 */
export function planOfFile(
  pipeline: NamedPipeline,
  state: CheckpointState,
  asOfMs = lastBegun(state),
): Plan | null {
  try {
    return planFor(asInFile(pipeline), asOfMs, state)
  } catch (error) {
    return nullIf('config')(error)
  }
}

/** The meaning of `_SUCCESS`. Queries that the file no longer has and pruned partitions do not count. @param plan of the file */
export function isDone(plan: Plan | null, state: CheckpointState): boolean {
  if (plan === null) return false
  for (const { key } of plan.partitions()) {
    const folded = state.partitions.get(key)
    if (folded === undefined || !isOver(folded)) return false
  }
  // After a crash, a used-up budget or a signal, the shard of a shared folder may still be open.
  for (const { partitions } of state.openShards.values()) {
    for (const key of partitions) {
      if (state.partitions.get(key)?.state === 'done' && !state.redo.partitions.has(key)) return false
    }
  }
  return true
}

export function retiredQueries(pipeline: NamedPipeline, state: CheckpointState): readonly RetiredQuery[] {
  const requested = new Set(asInFile(pipeline).extract.queries.map(({ name }) => name))
  const retired: RetiredQuery[] = []
  for (const query of state.partitions.branches.keys()) {
    const holdings = requested.has(query) ? null : holdingsOf(query, state)
    if (holdings !== null) retired.push(holdings)
  }
  return retired.sort((a, b) => (a.query < b.query ? -1 : 1))
}

export type PlanCounts = PlanStates & {
  /** Unfinished partitions that have rows or are the current one of a chain. */
  readonly begun: number
  /** Unfinished partitions by shared folder; folders without any are absent. */
  readonly unfinished: Map<string, number>
}

export function countPartitions(pipeline: Pipeline, plan: Plan, state: CheckpointState | null): PlanCounts {
  const { extract, load } = pipeline
  const shared = !ownsFolder(extract.resource, load.partitionBy)
  const unfinished = new Map<string, number>()
  const counts = { ...NO_PARTITIONS, total: 0, begun: 0 }
  for (const partition of plan.partitions()) {
    const folded = state === null ? undefined : presentOf(state, partition.key)
    const where = folded?.state ?? 'pending'
    counts[where]++
    if (where !== 'pruned') counts.total++
    if (folded !== undefined && hasEnded(folded)) continue
    if (folded !== undefined && (where === 'partial' || hasBegun(folded))) counts.begun++
    if (!shared) continue
    const folder = folderOf(extract.resource, partition, load.partitionBy)
    unfinished.set(folder, (unfinished.get(folder) ?? 0) + 1)
  }
  return { ...counts, unfinished }
}
