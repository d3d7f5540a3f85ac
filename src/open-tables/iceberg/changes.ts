import { randomUUID } from 'node:crypto'
import { inGroups, sideBySide } from '../../core/index.ts'
import type { ReadStatistics, TableShard } from '../table.ts'
import {
  dataFile,
  ENTRY,
  encodeManifest,
  type ManifestFile,
  NO_BOUNDS,
  type TrackedShard,
} from './manifest.ts'
import { avroPath, type IcebergSchema } from './metadata.ts'

/** Larger manifests would be slow to write anew, smaller ones would be many requests to read. */
const MAX_FILES = 1000

/** A manifest of the current snapshot, with its entries. */
export type CurrentManifest = { readonly file: ManifestFile; readonly tracked: readonly TrackedShard[] }

type ChangeContext = {
  /** Address of the data set. */
  readonly root: string
  readonly dataSetId: string
  readonly schema: IcebergSchema
  /** The one that makes the changes. */
  readonly snapshot: { readonly id: number; readonly sequence: number }
  readonly statisticsOf: ReadStatistics
  readonly write: (path: string, bytes: Uint8Array) => Promise<void>
}

export type ManifestChanges = Awaited<ReturnType<typeof manifestChanges>>

/** A manifest without changes is used again. The last one is filled up, so that short runs leave no small ones. */
export async function manifestChanges(
  current: readonly CurrentManifest[],
  shards: readonly TableShard[],
  context: ChangeContext,
) {
  const { root, snapshot } = context
  const missing = new Map(shards.map((shard) => [`${root}/${shard.path}`, shard]))
  const manifests: CurrentManifest[] = []
  const rewritten: TrackedShard[] = []
  const removed: TrackedShard[] = []
  for (const manifest of current) {
    const live = manifest.tracked.filter(({ entry }) => entry.status !== ENTRY.deleted)
    const staying: TrackedShard[] = []
    for (const each of live) {
      const { file_path } = each.entry.data_file
      if (missing.get(file_path)?.sha256 === each.sha256) {
        missing.delete(file_path)
        staying.push(each)
      } else removed.push(withoutBounds(withStatus(each, ENTRY.deleted, snapshot.id)))
    }
    if (staying.length === live.length && live.length > 0) manifests.push(manifest)
    else rewritten.push(...staying)
  }
  const added = [...missing.values()]
  if (added.length === 0 && removed.length === 0) return { manifests: current, added, removed }
  // Filled up, with the rest of those that lost shards.
  const last = manifests.at(-1)
  if (last !== undefined && last.tracked.length < MAX_FILES && added.length + rewritten.length > 0) {
    manifests.pop()
    rewritten.unshift(...last.tracked.filter(({ entry }) => entry.status !== ENTRY.deleted))
  }
  const existing = rewritten.map((each) => withStatus(each, ENTRY.existing))
  const entries = [...existing, ...(await trackedShards(added, context))]
  for (const tracked of [...inGroups(entries, MAX_FILES), ...inGroups(removed, MAX_FILES)])
    manifests.push(await writeManifest(tracked, context))
  return { manifests, added, removed }
}

function withStatus(tracked: TrackedShard, status: number, snapshotId?: number): TrackedShard {
  const { entry } = tracked
  return { ...tracked, entry: { ...entry, status, snapshot_id: snapshotId ?? entry.snapshot_id } }
}

/** Bounds of a shard of one row are values of a person, and what is deleted may stay until the next change. */
function withoutBounds({ entry, sha256 }: TrackedShard): TrackedShard {
  return { sha256, entry: { ...entry, data_file: { ...entry.data_file, ...NO_BOUNDS } } }
}

async function trackedShards(
  shards: readonly TableShard[],
  { root, snapshot, statisticsOf }: ChangeContext,
): Promise<readonly TrackedShard[]> {
  const tracked: TrackedShard[] = []
  await sideBySide(shards.entries(), async ([i, shard]) => {
    tracked[i] = {
      sha256: shard.sha256,
      entry: {
        status: ENTRY.added,
        snapshot_id: snapshot.id,
        sequence_number: snapshot.sequence,
        file_sequence_number: snapshot.sequence,
        data_file: dataFile(root, shard, await statisticsOf(shard)),
      },
    }
  })
  return tracked
}

async function writeManifest(
  tracked: readonly TrackedShard[],
  { root, dataSetId, schema, snapshot, write }: ChangeContext,
): Promise<CurrentManifest> {
  const path = avroPath(dataSetId, randomUUID())
  const bytes = await encodeManifest(schema, tracked)
  await write(path, bytes)
  const of = (status: number): readonly TrackedShard[] =>
    tracked.filter(({ entry }) => entry.status === status)
  const rows = (status: number): number =>
    of(status).reduce((sum, { entry }) => sum + entry.data_file.record_count, 0)
  return {
    tracked,
    file: {
      manifest_path: `${root}/${path}`,
      manifest_length: bytes.byteLength,
      partition_spec_id: 0,
      content: 0,
      sequence_number: snapshot.sequence,
      min_sequence_number: Math.min(...tracked.map(({ entry }) => entry.sequence_number)),
      added_snapshot_id: snapshot.id,
      added_files_count: of(ENTRY.added).length,
      existing_files_count: of(ENTRY.existing).length,
      deleted_files_count: of(ENTRY.deleted).length,
      added_rows_count: rows(ENTRY.added),
      existing_rows_count: rows(ENTRY.existing),
      deleted_rows_count: rows(ENTRY.deleted),
    },
  }
}
