import type { Measures } from '../../core/index.ts'
import type { Schema } from '../../rows/index.ts'
import type {
  Entry,
  Erasure,
  HeaderEntry,
  JournalEntry,
  PartitionEntry,
  Prune,
  Scope,
} from '../journal-entry.ts'
import { type BlobRef, blobTuple, type LogEnd } from '../log/commit.ts'
import { schemaKey, schemaToJson } from '../schemas.ts'
import { chainSnapshot, type FoldedChain } from './folded-chain.ts'
import { type FoldedPartition, type FoldedPartitions, hasBegun } from './folded-partition.ts'
import { type FoldedRun, runEntries } from './folded-run.ts'
import type { FoldedShard } from './folded-shards.ts'
import type { ReadonlyPathMap, ShardList } from './packed-collections.ts'

/** The fewest entries that result in this state. */
export function* snapshot(state: CheckpointState): Generator<JournalEntry> {
  yield state.header
  for (const [schema, each] of state.schemas.entries())
    if (schema > 0) yield { kind: 'schema', schema, ...schemaToJson(each) }
  if (state.scope !== null) yield { kind: 'scope', ...state.scope }
  for (const [name, value] of state.queries) yield { kind: 'query', name, value }
  for (const run of state.runs) yield* runEntries(run)
  for (const prune of state.prunes) yield { kind: 'prune', ...prune }
  for (const erasure of state.erasures) yield { kind: 'forget', ...erasure }
  if (state.suppression !== null) yield state.suppression
  for (const [format, marks] of state.tables) yield { kind: 'table', format, marks }
  for (const [partition, folded] of state.partitions) yield partitionEntry(partition, folded)
  for (const shard of state.shards) yield { kind: 'seal', ...shard }
  // Paths are not used again, so the numbers of parts that are gone are kept.
  for (const [folder, gone] of state.goneFrom)
    yield { kind: 'parts', folder, begun: state.partsOf.get(folder) ?? 0, gone }
  // Before what waits with it, which it would take away.
  if (state.redo.partitions.size > 0) yield* redoEntries(state)
  for (const [partition, blobs] of state.rejected)
    yield { kind: 'rejected', partition, blobs: blobs.map(blobTuple) }
  for (const shard of state.openShards.values()) yield openEntry(shard)
  for (const chain of state.chains.values()) yield chainSnapshot(chain)
  yield* serviceEntries(state)
  if (state.unknownFields.size > 0) yield { kind: 'unknown', fields: Object.fromEntries(state.unknownFields) }
  if (!state.isSettled) yield { kind: 'invalidated', shards: [...state.invalidated] }
  yield { kind: 'end_of_log', ...state.logEnd }
}

function* redoEntries({ redo }: CheckpointState): Generator<JournalEntry> {
  const { partitions, rejected } = redo
  yield { kind: 'redo', partitions: [...partitions.keys()], chains: [] }
  for (const [key, folded] of partitions) if (folded !== null) yield partitionEntry(key, folded)
  for (const [partition, blobs] of rejected)
    yield { kind: 'rejected', partition, blobs: blobs.map(blobTuple), redo: true }
}

function* serviceEntries({ service, searchesRemaining }: CheckpointState): Generator<JournalEntry> {
  const { pageSize, limit, bindsSizes, times, reportsSearchesLeft } = service
  const known = {
    ...(reportsSearchesLeft === null ? {} : { tells_searches: reportsSearchesLeft }),
    ...(searchesRemaining === null ? {} : { left: searchesRemaining }),
    ...(pageSize === null ? {} : { page_size: pageSize }),
    ...(bindsSizes ? { binds_sizes: true as const } : {}),
  }
  if (limit !== null) yield { kind: 'limit', size: limit }
  if (times.length > 0 || Object.keys(known).length > 0)
    yield { kind: 'measured', times, ...known, replaces: true }
}

export function partitionEntry(partition: string, folded: FoldedPartition): PartitionEntry {
  const { state, rows, pages, requests, quarantined, repeated, forgotten, quarantineEnd, error } = folded
  return {
    kind: 'partition',
    partition,
    ...(state === 'done' ? {} : { state }),
    rows,
    pages,
    requests,
    quarantined,
    ...(repeated === 0 ? {} : { repeated }),
    ...(forgotten === 0 ? {} : { forgotten }),
    ...(quarantineEnd === 0 ? {} : { quarantine_end: quarantineEnd }),
    ...(error === null ? {} : { error }),
  }
}

function openEntry({
  shard,
  folder,
  part,
  schema,
  partitions,
  importedAt,
  batches,
}: FoldedShard): JournalEntry {
  const contents = {
    partitions: [...partitions],
    imported_at: importedAt,
    batches: batches.map(({ rows, at }) => [rows, ...blobTuple(at)] as const),
  }
  return { kind: 'open', shard, folder, part, ...schemaKey(schema), contents }
}

/** The content of the journal as one state, which each commit changes. */
export type CheckpointState = FoldedPartitions & {
  readonly header: HeaderEntry
  /** By number, the newest last. */
  readonly schemas: readonly Schema[]
  /** What the pipeline file requested when the last run began; null: none has. */
  readonly scope: Scope | null
  readonly chains: ReadonlyMap<number, FoldedChain>
  readonly nextChain: number
  /** Sealed shards with their final names, or about to get them. */
  readonly shards: ShardList
  readonly openShards: ReadonlyMap<number, FoldedShard>
  readonly redo: {
    /** Rejected items of what is exported again. */
    readonly rejected: ReadonlyMap<string, readonly BlobRef[]>
  }
  /** Number of shards begun so far in each folder. */
  readonly partsOf: ReadonlyPathMap<number>
  /** Number of those that are neither sealed nor open any more, by folder. */
  readonly goneFrom: ReadonlyMap<string, number>
  readonly nextShard: number
  /** Whether manifest, tables and files follow every prune, redo and erasure. */
  readonly isSettled: boolean
  /** The file of the last commit that made bytes of earlier ones unwanted; 0: none since the checkpoint. */
  readonly erasedIn: number
  /** The people who are kept out; null: nobody was forgotten. */
  readonly suppression: Entry<'suppression'> | null
  /** What may be the current metadata of each table. */
  readonly tables: ReadonlyMap<Entry<'table'>['format'], Entry<'table'>['marks']>
  /** Paths of invalidated shards whose files may still exist. */
  readonly invalidated: ReadonlySet<string>
  readonly unknownFields: ReadonlyMap<string, number>
  readonly runs: readonly FoldedRun[]
  readonly prunes: readonly Prune[]
  readonly erasures: readonly Erasure[]
  /** Searches left, as the service last reported; null: never reported. */
  readonly searchesRemaining: number | null
  readonly service: Measures
  readonly queries: ReadonlyMap<string, string>
  /** Rejected items that are in the log, but not in the quarantine file of their partition yet, by its key. */
  readonly rejected: ReadonlyMap<string, readonly BlobRef[]>
  readonly logEnd: LogEnd
}

/** Bytes of the log that are still needed: rows of open shards, ids of chains, and rejected items. */
export function* blobsNeeded({ openShards, chains, rejected, redo }: CheckpointState): Generator<BlobRef> {
  for (const { batches } of openShards.values()) for (const { at } of batches) yield at
  for (const { ids } of chains.values()) yield* ids
  for (const each of [rejected, redo.rejected]) for (const blobs of each.values()) yield* blobs
}

/** Whether at least part of a query is exported. @param query name of the query */
export function isKnown({ partitions }: CheckpointState, query: string): boolean {
  for (const folded of partitions.branches.get(query)?.values() ?? []) if (hasBegun(folded)) return true
  return false
}
