import { windowRange } from '../core/index.ts'
import type { Plan } from '../plan/index.ts'
import type { CheckpointState } from '../state/index.ts'
/** Where the partitions of one query stand. */
export type QueryStatus = {
  /** `domain.acme.com`, as in folder names. */
  readonly query: string
  readonly partitions: number
  readonly done: number
  readonly partial: number
  readonly failed: number
  readonly pending: number
  readonly pruned: number
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
  readonly state: 'pending' | 'partial' | 'done' | 'failed' | 'pruned'
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
