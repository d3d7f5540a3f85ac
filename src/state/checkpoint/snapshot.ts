import type { JournalEntry, PartitionEntry } from '../journal-entry.ts'
import { blobTuple } from '../log/commit.ts'
import { schemaToJson } from '../schemas.ts'
import type { CheckpointState } from './fold-journal.ts'
import { chainSnapshot } from './folded-chain.ts'
import type { FoldedPartition } from './folded-partition.ts'
import { runEntries } from './folded-run.ts'
import type { FoldedShard } from './folded-shards.ts'

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
  if (limit !== null) yield { kind: 'limit', size: limit }
  yield {
    kind: 'measured',
    times,
    tells_searches: reportsSearchesLeft ?? undefined,
    left: searchesRemaining ?? undefined,
    page_size: pageSize ?? undefined,
    binds_sizes: bindsSizes || undefined,
    replaces: true,
  }
}

export function partitionEntry(partition: string, folded: FoldedPartition): PartitionEntry {
  const { state, repeated, forgotten, quarantineEnd, error, ...figures } = folded
  return {
    kind: 'partition',
    partition,
    state: state === 'done' ? undefined : state,
    ...figures,
    repeated: repeated || undefined,
    forgotten: forgotten || undefined,
    quarantine_end: quarantineEnd || undefined,
    error: error ?? undefined,
  }
}

function openEntry({ schema, partitions, importedAt, batches, ...identity }: FoldedShard): JournalEntry {
  const contents = {
    partitions: [...partitions],
    imported_at: importedAt,
    batches: batches.map(({ rows, at }) => [rows, ...blobTuple(at)] as const),
  }
  return { kind: 'open', ...identity, schema: schema || undefined, contents }
}
