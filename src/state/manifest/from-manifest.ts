import { formatTimestamp, int64ToJson, parseTimestamp } from '../../core/index.ts'
import { type CheckpointState, JournalFold } from '../checkpoint/fold-journal.ts'
import type { FoldedPartition } from '../checkpoint/folded-partition.ts'
import { type FoldedRun, NEW_RUN, runEntries } from '../checkpoint/folded-run.ts'
import { splitPath } from '../checkpoint/packed-collections.ts'
import { partitionEntry } from '../checkpoint/snapshot.ts'
import type { HeaderEntry, JournalEntry, RunStatus, SealEntry } from '../journal-entry.ts'
import { LOG_START } from '../log/commit.ts'
import type { Manifest, ManifestPartition, ManifestShard } from './manifest.ts'

/** The state of a data set as far as its manifest tells it: what is exported, not where unfinished work goes on. */
export function stateOfManifest(manifest: Manifest): CheckpointState {
  const fold = new JournalFold(headerOfManifest(manifest))
  fold.apply(entriesOfManifest(manifest), LOG_START, [])
  return fold
}

export function headerOfManifest({
  pipeline,
  data_set_id,
  settings,
  schema_settings,
  runs,
}: Manifest): HeaderEntry {
  return {
    kind: 'header',
    version: 5,
    pipeline,
    data_set_id,
    created_at: runs[0]?.started_at ?? formatTimestamp(0),
    settings: settings as HeaderEntry['settings'],
    schema: schema_settings[0]!,
  }
}

/** The entries that result in that state, without its header. */
export function* entriesOfManifest(manifest: Manifest): Generator<JournalEntry> {
  const { scope, runs, prunes, forgotten, partitions, shards, begun_parts, unknown_fields } = manifest
  for (const [schema, each] of manifest.schema_settings.entries())
    if (schema > 0) yield { kind: 'schema', schema, ...each }
  yield { kind: 'scope', ...scope }
  for (const [i, run] of runs.entries()) yield* runEntries(runOf(`manifest-${i}`, run))
  for (const prune of prunes) yield { kind: 'prune', ...prune }
  for (const erasure of forgotten) yield { kind: 'forget', ...erasure }
  for (const each of partitions)
    if (each.state !== 'pending') yield partitionEntry(each.key, partitionOf(each))
  const present = new Map<string, number>()
  for (const [shard, each] of shards.entries()) {
    const [folder] = splitPath(each.path)
    present.set(folder, (present.get(folder) ?? 0) + 1)
    yield sealEntry(shard, each)
  }
  for (const [folder, begun] of Object.entries(begun_parts))
    yield { kind: 'parts', folder, begun, gone: begun - (present.get(folder) ?? 0) }
  if (Object.keys(unknown_fields).length > 0) yield { kind: 'unknown', fields: unknown_fields }
  const size = runs.at(-1)?.service?.page_size ?? null
  if (size !== null) yield { kind: 'measured', page_size: size, replaces: true }
}

function runOf(run: string, given: Manifest['runs'][number]): FoldedRun {
  const { status, searches_spent: searchesSpent, searches_remaining: searchesRemaining, ...figures } = given
  const searches = { searchesSpent, searchesRemaining }
  return { ...NEW_RUN, ...figures, run, months: [], status: status as RunStatus, ...searches }
}

function partitionOf({ state, error, ...figures }: ManifestPartition): FoldedPartition {
  const { rows, quarantined, repeated = 0, forgotten = 0 } = figures
  return {
    state: state as FoldedPartition['state'],
    ...{ rows, pages: 0, requests: 0, quarantined, repeated, forgotten, quarantineEnd: 0 },
    error: error === undefined ? null : { kind: 'data', message: error.cause, ...error },
  }
}

function sealEntry(shard: number, { imported_at, ...each }: ManifestShard): SealEntry {
  const at = (text: string) => int64ToJson(parseTimestamp(text)!)
  return {
    kind: 'seal',
    shard,
    ...each,
    imported_at: imported_at === null ? null : { min: at(imported_at.min), max: at(imported_at.max) },
  }
}
