import { formatInstant, type Partition, type Pipeline, queryName } from '../core/index.ts'
import { type CheckpointState, type PartitionRecord, readCheckpoint } from '../state/index.ts'
import { openDataSet, planFor } from './data-set.ts'
import { survey } from './survey.ts'

/** Where one partition stands; the names are those of `status --json`. */
export type PartitionStatus = {
  readonly key: string
  /** `domain.acme.com`, as in folder names. */
  readonly query: string
  readonly window: { readonly from: string; readonly until: string } | null
  readonly state: 'pending' | 'partial' | 'done' | 'failed'
  /** Committed rows, those in open shards too. */
  readonly rows: number
  readonly requests: number
  /** Items that the service sent again within the chain. */
  readonly repeated: number
  readonly next: string | null
  readonly error: string | null
}

export type StatusReport = {
  /** In the order of work; made as they are asked for. */
  partitions(): Iterable<PartitionStatus>
  readonly totals: {
    readonly partitions: number
    readonly done: number
    readonly partial: number
    readonly failed: number
    readonly pending: number
    readonly rows: number
    readonly requests: number
    readonly quarantined: number
    readonly repeated: number
    readonly shards: number
    readonly bytes: number
    readonly openShards: number
  }
}

/**
 * Reads where a pipeline stands from its checkpoint, also while a run is at work; changes nothing.
 * @throws ExportError `damaged` or `config` when the checkpoint can't be read
 */
export async function readStatus(pipeline: Pipeline, nowMs: number): Promise<StatusReport> {
  const state = await readCheckpoint(openDataSet(pipeline))
  const plan = planFor(pipeline, nowMs, state)
  const { total, done, partial, failed, pending } = survey(pipeline, plan, state)
  return {
    *partitions() {
      for (const partition of plan.partitions()) {
        yield statusOf(partition, state?.partitions.get(partition.key))
      }
    },
    totals: { partitions: total, done, partial, failed, pending, ...sums(state) },
  }
}

function statusOf({ key, query, window }: Partition, record: PartitionRecord | undefined): PartitionStatus {
  return {
    key,
    query: queryName(query),
    window: window === null ? null : { from: formatInstant(window.from), until: formatInstant(window.until) },
    state: record?.state ?? 'pending',
    rows: record?.rows ?? 0,
    requests: record?.requests ?? 0,
    repeated: record?.repeated ?? 0,
    next: record?.next ?? null,
    error: record?.error?.message ?? null,
  }
}

function sums(state: CheckpointState | null) {
  const sum = { rows: 0, requests: 0, quarantined: 0, repeated: 0, shards: 0, bytes: 0, openShards: 0 }
  if (state === null) return sum
  for (const [, record] of state.partitions) {
    sum.rows += record.rows
    sum.requests += record.requests
    sum.quarantined += record.quarantined
    sum.repeated += record.repeated
  }
  for (const shard of state.shards) sum.bytes += shard.bytes
  sum.shards = state.shards.length
  sum.openShards = state.openShards.size
  return sum
}

export type PlanReport = {
  readonly partitions: {
    readonly total: number
    readonly done: number
    /** Some pages are in. */
    readonly partial: number
    readonly pending: number
  }
  /** At least one request for each partition that is not done. */
  readonly minRequests: number
  /** What they take at the tier's rate. */
  readonly minSeconds: number
}

/** Says what a run would do; sends nothing and changes nothing. */
export async function readPlan(pipeline: Pipeline, nowMs: number): Promise<PlanReport> {
  const state = await readCheckpoint(openDataSet(pipeline))
  const plan = planFor(pipeline, nowMs, state)
  const { total, done, begun } = survey(pipeline, plan, state)
  const minRequests = total - done
  const { requestsPerSecond, basicRequestsPerSecond } = pipeline.service
  const rate = pipeline.extract.resource === 'reports' ? basicRequestsPerSecond : requestsPerSecond
  return {
    partitions: { total, done, partial: begun, pending: total - done - begun },
    minRequests,
    minSeconds: minRequests / rate,
  }
}
