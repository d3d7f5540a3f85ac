import type { Aggregates, HeaderEntry, Measures, OpenShardRecord, Prune } from '../../core/index.ts'
import type { ChainRecord } from './chain-record.ts'
import { hasBegun, type PartitionRecord } from './partition-record.ts'
import type { ReadonlyPathMap } from './path-map.ts'
import type { RunRecord } from './run-record.ts'
import type { ShardList } from './shard-list.ts'

/** Everything that the journal says. */
export type CheckpointState = {
  readonly header: HeaderEntry
  /** Partitions that have begun, by key: query and window. */
  readonly partitions: ReadonlyPathMap<PartitionRecord>
  /** Names of queries whose first partition began in the last run; none in a first run. */
  readonly newQueries: ReadonlySet<string>
  /** Chains that have begun and have not ended, by number. */
  readonly chains: ReadonlyMap<number, ChainRecord>
  /** The number that the next chain gets. */
  readonly nextChain: number
  readonly shards: ShardList
  readonly openShards: ReadonlyMap<number, OpenShardRecord>
  /** Shards begun so far in each folder. */
  readonly partsOf: ReadonlyPathMap<number>
  /** The number that the next shard gets. */
  readonly nextShard: number
  /** Paths of invalidated shards whose files may still be there. */
  readonly invalidated: ReadonlySet<string>
  readonly unknownFields: ReadonlyMap<string, number>
  /**
   * Aggregates over the rows of finished shards. They cover fewer rows where shards were invalidated since, or written by an
   * earlier version.
   */
  readonly aggregates: () => Aggregates
  readonly runs: readonly RunRecord[]
  readonly prunes: readonly Prune[]
  /** Searches left, as the service said last; null: it never did. */
  readonly searchesRemaining: number | null
  /** Measurements of the data set's endpoint. */
  readonly service: Measures
  /** Digests that identify the secrets of secret queries, by the query's name. */
  readonly secretChecks: ReadonlyMap<string, string>
  /** What named queries ask for, by name. */
  readonly queries: ReadonlyMap<string, string>
  /** Lines read or appended, by which compaction decides. */
  readonly lines: number
}

/** Whether anything of a query is exported, in whichever window. @param query its name */
export function isKnown({ partitions }: CheckpointState, query: string): boolean {
  for (const record of partitions.branches.get(query)?.values() ?? []) if (hasBegun(record)) return true
  return false
}
