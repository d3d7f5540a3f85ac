import type {
  Aggregates,
  HeaderEntry,
  JournalEntry,
  Measures,
  OpenShardRecord,
  PartitionEntry,
  Prune,
} from '../../core/index.ts'
import { type ChainRecord, compactedEntry } from './chain-record.ts'
import { type ReadonlyPathMap, type ShardList, splitPath } from './compact-collections.ts'
import { hasBegun, type PartitionRecord, withoutRows } from './partition-record.ts'
import { endEntry, type RunRecord } from './run-record.ts'

/** What a compaction leaves out, because it is exported again or pruned. */
export type Omission = {
  /** Keys. */
  readonly partitions: ReadonlySet<string>
  /** Numbers of open and finished shards. */
  readonly shards: ReadonlySet<number>
  /** Numbers. */
  readonly chains: ReadonlySet<number>
  /** Paths of finished shards whose files are to be removed. */
  readonly invalidated: readonly string[]
  /** Keys of pruned partitions, which are kept without their rows, and the entry about the prune; null: none. */
  readonly pruned: { readonly partitions: ReadonlySet<string>; readonly prune: Prune } | null
}

/** The fewest entries that result in this state, without the omission. Requests of omitted pages still count. */
export function* snapshot(state: CheckpointState, without: Omission | null): Generator<JournalEntry> {
  yield state.header
  for (const [query, check] of state.secretChecks) yield { kind: 'secret', query, check }
  for (const [name, value] of state.queries) yield { kind: 'query', name, value }
  yield* runEntries(state)
  for (const prune of state.prunes) yield { kind: 'prune', ...prune }
  const pruned = without?.pruned ?? null
  if (pruned !== null) yield { kind: 'prune', ...pruned.prune }
  for (const [partition, record] of state.partitions) {
    if (without?.partitions.has(partition) === true) continue
    const isPruned = pruned?.partitions.has(partition) === true
    const isNew = state.newQueries.has(splitPath(partition)[0])
    yield {
      ...partitionEntry(partition, isPruned ? withoutRows(record) : record),
      ...(isNew ? { new: true } : {}),
    }
  }
  let isShardOmitted = false
  for (const shard of state.shards) {
    if (without?.shards.has(shard.shard) === true) isShardOmitted = true
    else yield { kind: 'seal', ...shard }
  }
  // The aggregates of a single shard are unknown. Without one shard they must be computed again.
  const aggregates = state.aggregates()
  if (!isShardOmitted && aggregates.rows > 0) yield { kind: 'aggregates', ...aggregates }
  for (const shard of state.openShards.values()) {
    if (without?.shards.has(shard.shard) !== true) yield* openEntries(shard)
  }
  for (const chain of state.chains.values()) {
    if (without?.chains.has(chain.chain) !== true) yield compactedEntry(chain)
  }
  yield* serviceEntries(state)
  if (state.unknownFields.size > 0) yield { kind: 'unknown', fields: Object.fromEntries(state.unknownFields) }
  if (without === null) return
  // After a crash the files of shards that were invalidated earlier may still exist.
  const paths = new Set([...state.invalidated, ...without.invalidated])
  if (paths.size > 0) yield { kind: 'invalidated', shards: [...paths] }
}

function* runEntries({ runs }: CheckpointState): Generator<JournalEntry> {
  for (const record of runs) {
    const { run, started_at, version, finished_at, status, requests, searchesRemaining } = record
    yield { kind: 'run', run, started_at, version }
    for (const { month, before, searches } of record.months)
      yield { kind: 'month', run, month, before, searches }
    const figures = figuresOf(record)
    if (finished_at !== null && status !== null)
      yield { ...endEntry(run, { finished_at, status }, record), ...figures }
    else if (requests > 0 || searchesRemaining !== null || Object.keys(figures).length > 0) {
      const left = searchesRemaining === null ? {} : { searches_remaining: searchesRemaining }
      yield { kind: 'unfinished', run, requests, ...left, ...figures }
    }
  }
}

function* serviceEntries({ service, searchesRemaining }: CheckpointState): Generator<JournalEntry> {
  const { pageSize, limit, limits, costs, times, tellsSearches } = service
  const size = pageSize === null ? {} : { page_size: pageSize }
  const tells = tellsSearches === null ? {} : { tells_searches: tellsSearches }
  const left = searchesRemaining === null ? {} : { left: searchesRemaining }
  const isKnown = pageSize !== null || tellsSearches !== null || searchesRemaining !== null
  if (isKnown || costs.length > 0 || times.length > 0) {
    yield {
      kind: 'measured',
      costs: costs.map(([rows, searches]): [number, number] => [rows, searches]),
      times: times.map(([of, ms]): [number, number] => [of, ms]),
      ...tells,
      ...left,
      ...size,
      anew: true,
    }
  }
  for (const [query, own] of limits) yield { kind: 'limit', query, size: own }
  if (limit !== null || limits.size > 0) yield { kind: 'limit', query: null, size: limit }
}

type Figures = Pick<RunRecord, 'rows' | 'quarantined' | 'repeated' | 'failures' | 'searches'>

function figuresOf({ rows, quarantined, repeated, failures, searches }: Figures) {
  return {
    ...(rows === 0 ? {} : { rows }),
    ...(quarantined === 0 ? {} : { quarantined }),
    ...(repeated === 0 ? {} : { repeated }),
    ...(failures === 0 ? {} : { failures }),
    ...(searches === null ? {} : { searches }),
  }
}

function partitionEntry(partition: string, record: PartitionRecord): PartitionEntry {
  const { state, rows, pages, requests, quarantined, repeated, quarantineEnd, error } = record
  return {
    kind: 'partition',
    partition,
    ...(state === 'done' ? {} : { state }),
    rows,
    pages,
    requests,
    quarantined,
    ...(repeated === 0 ? {} : { repeated }),
    ...(quarantineEnd === 0 ? {} : { quarantine_end: quarantineEnd }),
    ...(error === null ? {} : { error }),
  }
}

function* openEntries({
  shard,
  folder,
  part,
  partitions,
  importedAt,
  rowGroups,
  generation,
  records,
}: OpenShardRecord): Generator<JournalEntry> {
  const contents = {
    partitions: [...partitions],
    imported_at: importedAt,
    generation,
    records: records.map(({ rows, end }): [number, number] => [rows, end]),
  }
  yield { kind: 'open', shard, folder, part, contents }
  yield* rowGroups
}

/** The content of the journal as one state. */
export type CheckpointState = {
  readonly header: HeaderEntry
  /** Partitions that have begun, by key: query and window. */
  readonly partitions: ReadonlyPathMap<PartitionRecord>
  /** Names of queries whose first partition began in the last run; empty in a first run. */
  readonly newQueries: ReadonlySet<string>
  /** Chains that have begun and not ended, by number. */
  readonly chains: ReadonlyMap<number, ChainRecord>
  /** Number of the next chain. */
  readonly nextChain: number
  readonly shards: ShardList
  readonly openShards: ReadonlyMap<number, OpenShardRecord>
  /** Number of shards begun so far in each folder. */
  readonly partsOf: ReadonlyPathMap<number>
  /** Number of the next shard. */
  readonly nextShard: number
  /** Paths of invalidated shards whose files may still exist. */
  readonly invalidated: ReadonlySet<string>
  readonly unknownFields: ReadonlyMap<string, number>
  /** Aggregates of finished shards. They cover fewer rows if shards were invalidated since. */
  readonly aggregates: () => Aggregates
  readonly runs: readonly RunRecord[]
  readonly prunes: readonly Prune[]
  /** Searches left, as the service last reported; null: never reported. */
  readonly searchesRemaining: number | null
  /** Measurements of the data set's endpoint. */
  readonly service: Measures
  /** Digests that identify the secrets of secret queries, by name of the query. */
  readonly secretChecks: ReadonlyMap<string, string>
  /** Values of queries with a user-defined name, by name. */
  readonly queries: ReadonlyMap<string, string>
  /** Number of lines read or appended; it decides about compaction. */
  readonly lines: number
}

/** Whether at least part of a query is exported. @param query name of the query */
export function isKnown({ partitions }: CheckpointState, query: string): boolean {
  for (const record of partitions.branches.get(query)?.values() ?? []) if (hasBegun(record)) return true
  return false
}
