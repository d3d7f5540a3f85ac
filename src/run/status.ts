import {
  figuresOf,
  formatInstant,
  type NamedPipeline,
  NOT_MEASURED,
  type Partition,
  type Pipeline,
  partitionKey,
  type ServiceFigures,
} from '../core/index.ts'
import type { Plan } from '../plan/index.ts'
import {
  type CheckpointState,
  checkMaskKey,
  type PartitionRecord,
  type RetiredQuery,
  readCheckpoint,
  sumOfPartitions,
} from '../state/index.ts'
import { countPartitions } from './data-set/count-partitions.ts'
import { planFor } from './data-set/data-set.ts'
import { openDataSet } from './data-set/open-data-set.ts'
import { retiredQueries } from './data-set/whole.ts'
import type { PartitionStatus } from './query-status.ts'
import { type QueryStatus, statusByQuery, type Wanted } from './query-status.ts'
import { namingLocations } from './setting/locations.ts'
import { namePipeline } from './setting/named-pipeline.ts'

export type StatusReport = {
  /** In the order of work; made on demand. */
  partitions(): Iterable<PartitionStatus>
  /** The same added up, query by query; of the wanted partitions, if not of all. */
  queries(isWanted?: Wanted): readonly QueryStatus[]
  /** Queries that the pipeline file no longer has; what is exported of them stays. */
  readonly retired: readonly RetiredQuery[]
  readonly totals: {
    /** But for those that were pruned. */
    readonly partitions: number
    readonly done: number
    readonly partial: number
    readonly failed: number
    readonly pending: number
    readonly pruned: number
    readonly rows: number
    readonly requests: number
    readonly quarantined: number
    readonly repeated: number
    readonly shards: number
    readonly bytes: number
    readonly openShards: number
    /** What of the quota runs have spent; null: the service never told. */
    readonly searchesSpent: number | null
  }
  /** As measured. */
  readonly service: ServiceFigures
  /** Searches that the service said were left, when it last said so; null: never. */
  readonly searchesRemaining: number | null
}

/**
 * Reads where a pipeline stands from its checkpoint, also while a run is at work; changes nothing.
 * @param maskKey where queries are named by digests: under another key they have other names
 * @throws ExportError `damaged` or `config` when the checkpoint can't be read, or the key is not there or another one
 */
export async function readStatus(
  given: Pipeline,
  nowMs: number,
  maskKey: Uint8Array | null = null,
): Promise<StatusReport> {
  const { pipeline, state } = await readNamed(given, maskKey)
  const plan = planFor(pipeline, nowMs, state)
  const { total, done, partial, failed, pending, pruned } = countPartitions(pipeline, plan, state)
  return {
    partitions: () => statusOfEach(plan, state),
    queries: (isWanted = () => true) => statusByQuery(plan, state, isWanted),
    retired: state === null ? [] : retiredQueries(pipeline, state),
    totals: { partitions: total, done, partial, failed, pending, pruned, ...sums(state) },
    service: figuresOf(state?.service ?? NOT_MEASURED),
    searchesRemaining: state?.searchesRemaining ?? null,
  }
}

/** The checkpoint of a data set, and the pipeline with the names that its queries have in it. */
export async function readNamed(
  given: Pipeline,
  maskKey: Uint8Array | null,
): Promise<{ pipeline: NamedPipeline; state: CheckpointState | null }> {
  const pipeline = namePipeline(given, maskKey)
  const state = await namingLocations(pipeline, () => readCheckpoint(openDataSet(pipeline)))
  if (state !== null && maskKey !== null) checkMaskKey(state.header.settings, maskKey, pipeline.file)
  return { pipeline, state }
}

/** Where each partition of a plan stands, in the order of work; made on demand. */
export function* statusOfEach(plan: Plan, state: CheckpointState | null): Generator<PartitionStatus> {
  const standing = new Map<string, string | null>()
  for (const { query, windows, watermark, next } of state?.chains.values() ?? []) {
    standing.set(partitionKey(query, windows.at(watermark)), next)
  }
  for (const partition of plan.partitions()) {
    const next = standing.get(partition.key) ?? null
    yield statusOf(partition, state?.partitions.get(partition.key), next)
  }
}

function statusOf(
  { key, query, window }: Partition,
  record: PartitionRecord | undefined,
  next: string | null,
): PartitionStatus {
  return {
    key,
    query: query.name,
    window: window === null ? null : { from: formatInstant(window.from), until: formatInstant(window.until) },
    state: record?.state ?? 'pending',
    rows: record?.rows ?? 0,
    requests: record?.requests ?? 0,
    repeated: record?.repeated ?? 0,
    next,
    error: record?.error?.message ?? null,
  }
}

function sums(state: CheckpointState | null) {
  if (state === null) return { ...NOTHING, searchesSpent: null }
  let searchesSpent: number | null = null
  for (const { searches } of state.runs) {
    if (searches !== null) searchesSpent = (searchesSpent ?? 0) + searches
  }
  let bytes = 0
  for (const shard of state.shards) bytes += shard.bytes
  const { shards, openShards } = state
  return {
    ...sumOfPartitions(state),
    shards: shards.length,
    bytes,
    openShards: openShards.size,
    searchesSpent,
  }
}

const NOTHING = { ...sumOfPartitions({ partitions: [] }), shards: 0, bytes: 0, openShards: 0 }
