import {
  figuresOf,
  formatInstant,
  NOT_MEASURED,
  type Partition,
  type PartitionState,
  type PartitionStates,
  type Pipeline,
  partitionKey,
  type ServiceFigures,
  windowRange,
} from '../core/index.ts'
import type { Plan } from '../plan/index.ts'
import {
  type CheckpointState,
  type PartitionRecord,
  type PartitionSums,
  type RetiredQuery,
  sumOfPartitions,
} from '../state/index.ts'
import { countPartitions, planFor, retiredQueries } from './data-set/completeness.ts'
import { readNamed } from './data-set/open-data-set.ts'

export type StatusReport = {
  /** In the order of work; made on demand. */
  partitions(): Iterable<PartitionStatus>
  /** The same added up, query by query; of the wanted partitions, if not of all. */
  queries(isWanted?: Wanted): readonly QueryStatus[]
  /** Queries that the pipeline file no longer has; what is exported of them stays. */
  readonly retired: readonly RetiredQuery[]
  readonly totals: PartitionStates &
    PartitionSums & {
      /** But for those that were pruned. */
      readonly partitions: number
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
  if (state === null) return { ...NO_SUMS, searchesSpent: null }
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

const NO_SUMS = { ...sumOfPartitions({ partitions: [] }), shards: 0, bytes: 0, openShards: 0 }

/** Where the partitions of one query stand. */
export type QueryStatus = PartitionStates & {
  /** `domain.acme.com`, as in folder names. */
  readonly query: string
  readonly partitions: number
  /** Committed rows, those in open shards too. */
  readonly rows: number
  readonly requests: number
  /** Of the last partition that failed: its window and why. */
  readonly error: { readonly window: string; readonly message: string } | null
}

/** Whether a partition is to be counted. @param query its name */
export type Wanted = (query: string, state: PartitionStatus['state']) => boolean

/** Adds up the wanted partitions of a plan, query by query, in the order of work. */
export function statusByQuery(
  plan: Plan,
  state: CheckpointState | null,
  isWanted: Wanted,
): readonly QueryStatus[] {
  const found = new Map<string, Mutable<QueryStatus>>()
  // Mostly all partitions of a query come one after the other.
  let last: Mutable<QueryStatus> | undefined
  for (const { key, query, window } of plan.partitions()) {
    const record = state?.partitions.get(key)
    const where = record?.state ?? 'pending'
    if (!isWanted(query.name, where)) continue
    let sum: Mutable<QueryStatus> | undefined = last?.query === query.name ? last : found.get(query.name)
    if (sum === undefined) {
      sum = { ...NOTHING, query: query.name }
      found.set(query.name, sum)
    }
    last = sum
    sum.partitions++
    sum[where]++
    if (record === undefined) continue
    sum.rows += record.rows
    sum.requests += record.requests
    const { error } = record
    if (error !== null) sum.error = { window: windowRange(window), message: error.message }
  }
  return [...found.values()]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const NOTHING = {
  partitions: 0,
  done: 0,
  partial: 0,
  failed: 0,
  pending: 0,
  pruned: 0,
  rows: 0,
  requests: 0,
  error: null,
}

/** Where one partition stands; the names are those of `status --json`. */
export type PartitionStatus = {
  readonly key: string
  /** `domain.acme.com`, as in folder names. */
  readonly query: string
  readonly window: { readonly from: string; readonly until: string } | null
  readonly state: PartitionState
  /** Committed rows, those in open shards too. */
  readonly rows: number
  /** Of pages that began in it. */
  readonly requests: number
  /** Items that the service sent again within the chain. */
  readonly repeated: number
  /** Of the chain that stands in it. */
  readonly next: string | null
  readonly error: string | null
}
