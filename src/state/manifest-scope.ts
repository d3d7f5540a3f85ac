import * as z from 'zod'
import type { CheckpointState } from './checkpoint/checkpoint-state.ts'
import { hasBegun } from './checkpoint/folded-partition.ts'
import { splitPath } from './checkpoint/packed-collections.ts'
import { PARTITION_STATES, type PartitionState } from './partition-states.ts'

const count = z.number().int().nonnegative()

/** What the pipeline file requests, without flags: with the states of partitions it says what an export covers. */
export type ManifestScope = {
  /** Host of the service. */
  service: string
  /** By their names in paths, sorted. */
  queries: string[]
  /** As the file has them, `until` excluded or `now`; null: one window over everything. */
  windows: { from: string; until: string; every: string | null; lag_seconds: number } | null
  on_invalid: string
  /** A count, or a share such as `1%`. */
  max_quarantined: string
  /** Rows of a full shard. */
  shard_rows: number
}

export const manifestPartitionSchema = z.object({
  key: z.string(),
  state: z.enum(PARTITION_STATES),
  rows: count,
  quarantined: count,
  repeated: count.optional(),
  forgotten: count.optional(),
  error: z.object({ cause: z.string(), next: z.string(), ended: z.literal(true).optional() }).optional(),
})

export type ManifestPartition = {
  key: string
  state: PartitionState
  rows: number
  quarantined: number
  /** Items that the service sent again; absent: none. */
  repeated?: number | undefined
  /** Items of forgotten people; absent: none. */
  forgotten?: number | undefined
  /**
   * Why it failed, as all partitions say that failed for the same reason, and what to do. `ended`: nothing of it is left
   * to request.
   */
  error?: { cause: string; next: string; ended?: true | undefined } | undefined
}

export const manifestFeedSchema = z.object({
  query: z.string(),
  cursor: z.string(),
  page_size: count.nullable(),
  rising: count,
  falling: count,
})

/** Where a feed goes on that is read to its end. */
export type ManifestFeed = {
  query: string
  /** The last one that was not null. */
  cursor: string
  /** Rows requested with each page. */
  page_size: number | null
  /** Pairs of adjacent rows of which the second was imported later, or earlier: they tell the order of the feed. */
  rising: number
  falling: number
}

/** The feeds whose rows are all in published shards. */
export function manifestFeeds({ chains, openShards }: CheckpointState): ManifestFeed[] {
  const waiting = new Set([...openShards.values()].flatMap(({ partitions }) => [...partitions].map(queryOf)))
  return [...chains.values()].flatMap(({ query, feed }) => {
    if (feed === null || feed.pass !== null || feed.end === null || waiting.has(query)) return []
    const { end: cursor, end_size: page_size, rising, falling } = feed
    return [{ query, cursor, page_size, rising, falling }]
  })
}

function queryOf(partition: string): string {
  return splitPath(partition)[0]
}

/** What a `prune` removed. */
export type ManifestPrune = {
  pruned_at: string
  before: string
  partitions: number
  rows: number
  quarantined: number
  removed: { partition: string; rows: number; quarantined: number }[]
  shards: { path: string; rows: number; sha256: string }[]
}

/**
 * Every partition that is planned, or of which the data set has something, in the order of their keys: retired ones and
 * pruned ones too. A partition that is exported again is listed as it was. One is done when all of its rows are in
 * published shards.
 */
export function* manifestPartitions(
  { partitions, openShards, redo }: Pick<CheckpointState, 'partitions' | 'openShards' | 'redo'>,
  planned: Iterable<string>,
): Generator<ManifestPartition> {
  const keys = new Set(planned)
  for (const [key, folded] of partitions) {
    if (hasBegun(folded) || folded.state === 'failed') keys.add(key)
  }
  const waiting = new Set([...openShards.values()].flatMap((shard) => [...shard.partitions]))
  for (const key of [...keys].sort()) {
    const folded = partitions.get(key)
    const state = folded?.state ?? 'pending'
    const isWaiting = state === 'done' && waiting.has(key) && !redo.partitions.has(key)
    const failure = state === 'failed' ? (folded?.error ?? null) : null
    const { cause = '', next = '', ended } = failure ?? {}
    yield {
      key,
      state: isWaiting ? 'partial' : state,
      rows: folded?.rows ?? 0,
      quarantined: folded?.quarantined ?? 0,
      ...(folded?.repeated ? { repeated: folded.repeated } : {}),
      ...(folded?.forgotten ? { forgotten: folded.forgotten } : {}),
      ...(failure === null ? {} : { error: { cause, next, ...(ended === true ? { ended } : {}) } }),
    }
  }
}
