import { randomInt } from 'node:crypto'
import { type OwnedStore, type Store, sideBySide } from '../../core/index.ts'
import { isCompaction } from '../compaction.ts'
import {
  committedByOthers,
  damagedTable,
  ICEBERG_FOLDER,
  METADATA_FOLDER,
  movedTable,
  type OpenTable,
  type TableContent,
  type TableSettings,
  type TableShard,
  type TableState,
  type TableUpdate,
  type UpdatedTable,
  untilCommitted,
} from '../table.ts'
import { type CurrentManifest, type ManifestChanges, manifestChanges } from './changes.ts'
import {
  decodeManifest,
  decodeManifestList,
  ENTRY,
  encodeManifestList,
  type TrackedShard,
} from './manifest.ts'
import {
  avroPath,
  commitMetadata,
  highestVersion,
  type IcebergMetadata,
  isOwnFolder,
  lastColumnId,
  metadataPath,
  readMetadata,
  removeAll,
  removeOthers,
  type Snapshot,
  schemaOf,
  type VersionedMetadata,
  writeHint,
} from './metadata.ts'

/** A data set as an Iceberg table of format version 2, committed as in a file system: without a catalog. */
export const icebergTable: OpenTable = {
  async read(store, settings) {
    const table = await IcebergTable.read(store, settings)
    return table?.state ?? null
  },
  update: (store, settings, content, update) =>
    untilCommitted(METADATA_FOLDER, async () => {
      const before = update.rebuild ? null : await IcebergTable.read(store, settings)
      const version = before?.version ?? (await highestVersion(store))
      const table = before ?? IcebergTable.empty(settings, version)
      return table.commit(store, settings.dataSetId, content, update)
    }),
  isOwn: isOwnFolder,
  remove: removeAll,
}

/** @throws ExportError `config` when the table names shards elsewhere */
function requireLocation({ version, metadata }: VersionedMetadata, settings: TableSettings): void {
  if (metadata.location === tableLocation(settings)) return
  const was = metadata.location.slice(0, -`/${ICEBERG_FOLDER}`.length)
  throw movedTable(metadataPath(version), was, settings.root)
}

/** The current snapshot of a table, as far as there is one. */
class IcebergTable {
  private constructor(
    readonly version: number,
    readonly metadata: IcebergMetadata | null,
    readonly manifests: readonly CurrentManifest[],
    readonly settings: TableSettings,
  ) {}

  static empty(settings: TableSettings, version: number): IcebergTable {
    return new IcebergTable(version, null, [], settings)
  }

  static async read(store: Store, settings: TableSettings): Promise<IcebergTable | null> {
    for (;;) {
      const current = await readMetadata(store, settings)
      if (current === null) return null
      const { version, metadata } = current
      requireLocation(current, settings)
      const snapshot = metadata.snapshots.find(
        (each) => each['snapshot-id'] === metadata['current-snapshot-id'],
      )
      if (snapshot === undefined) throw damagedTable(metadataPath(version), null)
      try {
        return new IcebergTable(version, metadata, await readManifests(store, settings, snapshot), settings)
      } catch (error) {
        // A newer commit has expired it meanwhile.
        if ((await highestVersion(store)) === version) throw error
      }
    }
  }

  get state(): TableState {
    const shards = new Map<string, TableShard>()
    for (const { tracked } of this.manifests) {
      for (const { entry, sha256 } of tracked) {
        if (entry.status === ENTRY.deleted) continue
        const { file_path, record_count, file_size_in_bytes } = entry.data_file
        const path = relative(this.settings, file_path)
        shards.set(path, { path, rows: record_count, bytes: file_size_in_bytes, sha256 })
      }
    }
    return {
      format: 'iceberg',
      location: tableLocation(this.settings),
      snapshot: this.metadata?.['current-snapshot-id'] ?? 0,
      shards,
      metadataLocation: `${this.settings.root}/${metadataPath(this.version)}`,
    }
  }

  /** @returns null: another commit has the next version */
  async commit(
    store: OwnedStore,
    dataSetId: string,
    content: TableContent,
    update: TableUpdate,
  ): Promise<UpdatedTable | null> {
    const { metadata, settings, version } = this
    const known = metadata?.schemas ?? []
    const schema = schemaOf(content.columns, known)
    const schemas = known.includes(schema) ? known : [...known, schema]
    const id = newSnapshotId(metadata)
    const sequence = (metadata?.['last-sequence-number'] ?? 0) + 1
    const changes = await manifestChanges(this.manifests, content.shards, {
      root: settings.root,
      dataSetId,
      schema,
      snapshot: { id, sequence },
      statisticsOf: update.statisticsOf,
      write: (path, bytes) => createOwn(store, path, bytes),
    })
    const { manifests, added, removed } = changes
    const isSame = metadata?.['current-schema-id'] === schema['schema-id']
    if (isSame && added.length + removed.length === 0) {
      await writeHint(store, version)
      return this.#updated(store, false)
    }
    const parent = metadata?.['current-snapshot-id'] ?? null
    const list = avroPath(dataSetId, `${id}-list`)
    const lines = manifests.map(({ file }) => file)
    await createOwn(store, list, encodeManifestList({ id, parent, sequence }, lines))
    // Readers refuse a table whose time goes back.
    const now = Math.max(update.nowMs, (metadata?.['last-updated-ms'] ?? 0) + 1)
    const snapshot: Snapshot = {
      'snapshot-id': id,
      ...(parent === null ? {} : { 'parent-snapshot-id': parent }),
      'sequence-number': sequence,
      'timestamp-ms': now,
      summary: summaryOf(settings, dataSetId, content, changes),
      'manifest-list': `${settings.root}/${list}`,
      'schema-id': schema['schema-id'],
    }
    const kept = [...(await this.#keptSnapshots(store, removed)), snapshot]
    const isKept = new Set(kept.map((each) => each['snapshot-id']))
    const next: IcebergMetadata = {
      'format-version': 2,
      'table-uuid': dataSetId,
      location: tableLocation(settings),
      'last-sequence-number': sequence,
      'last-updated-ms': now,
      'last-column-id': lastColumnId(schemas),
      'current-schema-id': schema['schema-id'],
      schemas,
      'default-spec-id': 0,
      'partition-specs': [{ 'spec-id': 0, fields: [] }],
      // As Iceberg counts where there are no partition fields.
      'last-partition-id': 999,
      'default-sort-order-id': 0,
      'sort-orders': [{ 'order-id': 0, fields: [] }],
      properties: {},
      'current-snapshot-id': id,
      refs: { main: { 'snapshot-id': id, type: 'branch' } },
      snapshots: kept,
      'snapshot-log': [
        ...(metadata?.['snapshot-log'] ?? []).filter((each) => isKept.has(each['snapshot-id'])),
        { 'snapshot-id': id, 'timestamp-ms': now },
      ],
      // Metadata that names deleted shards goes as well.
      'metadata-log': removed.length > 0 ? [] : this.#earlierMetadata(),
    }
    if (!(await commitMetadata(store, version + 1, next))) return null
    return new IcebergTable(version + 1, next, manifests, settings).#updated(store, true)
  }

  #updated(store: OwnedStore, isChanged: boolean): UpdatedTable {
    return { state: this.state, removeExpired: () => this.#removeExpired(store, isChanged) }
  }

  /** The snapshots that stay beside the next one: the latest, but none that names a shard that goes. */
  async #keptSnapshots(store: Store, removed: readonly TrackedShard[]): Promise<readonly Snapshot[]> {
    const latest = lastOf(this.metadata?.snapshots ?? [], this.settings.snapshots - 1)
    if (removed.length === 0) return latest
    const going = new Set(removed.map(({ entry }) => entry.data_file.file_path))
    const kept: Snapshot[] = []
    for (const snapshot of latest) {
      if (snapshot['snapshot-id'] === this.metadata?.['current-snapshot-id']) continue
      const manifests = await readManifests(store, this.settings, snapshot)
      const names = manifests.flatMap(({ tracked }) => tracked)
      const namesGoing = names.some(
        ({ entry }) => entry.status !== ENTRY.deleted && going.has(entry.data_file.file_path),
      )
      if (!namesGoing) kept.push(snapshot)
    }
    return kept
  }

  #earlierMetadata(): IcebergMetadata['metadata-log'] {
    const { metadata, settings, version } = this
    if (metadata === null) return []
    const last = {
      'metadata-file': `${settings.root}/${metadataPath(version)}`,
      'timestamp-ms': metadata['last-updated-ms'],
    }
    return [...lastOf([...metadata['metadata-log'], last], settings.snapshots - 1)]
  }

  async #removeExpired(store: OwnedStore, isChanged: boolean): Promise<void> {
    const { metadata, settings, version } = this
    if (metadata === null) return
    const logged = metadata['metadata-log'].map((each) => relative(settings, each['metadata-file']))
    await removeOthers(store, new Set([metadataPath(version), ...logged]), isChanged, async () => {
      const kept = new Set<string>()
      for (const snapshot of metadata.snapshots) {
        const list = relative(settings, snapshot['manifest-list'])
        kept.add(list)
        for (const { manifest_path } of await decode(store, list, decodeManifestList))
          kept.add(relative(settings, manifest_path))
      }
      return kept
    })
  }
}

async function createOwn(store: OwnedStore, path: string, bytes: Uint8Array): Promise<void> {
  // Its name is random.
  if (!(await store.create(path, [bytes]))) throw committedByOthers(path)
}

/** Integers of this size are exact in every reader of JSON. */
function newSnapshotId(metadata: IcebergMetadata | null): number {
  const id = randomInt(1, 2 ** 48 - 1)
  const isTaken = metadata?.snapshots.some((each) => each['snapshot-id'] === id) ?? false
  return isTaken ? newSnapshotId(metadata) : id
}

function tableLocation({ root }: TableSettings): string {
  return `${root}/${ICEBERG_FOLDER}`
}

/** The path of an address below the data set. */
function relative({ root }: TableSettings, address: string): string {
  return address.startsWith(`${root}/`) ? address.slice(root.length + 1) : address
}

function lastOf<T>(items: readonly T[], count: number): readonly T[] {
  return count <= 0 ? [] : items.slice(-count)
}

async function readManifests(
  store: Store,
  settings: TableSettings,
  snapshot: Snapshot,
): Promise<readonly CurrentManifest[]> {
  const files = await decode(store, relative(settings, snapshot['manifest-list']), decodeManifestList)
  const manifests: CurrentManifest[] = []
  await sideBySide(files.entries(), async ([i, file]) => {
    const tracked = await decode(store, relative(settings, file.manifest_path), decodeManifest)
    manifests[i] = { file, tracked }
  })
  return manifests
}

async function decode<T>(store: Store, path: string, decoded: (bytes: Uint8Array) => T): Promise<T> {
  const bytes = await store.read(path)
  try {
    if (bytes === null) throw new Error('It is missing')
    return decoded(bytes)
  } catch (error) {
    throw damagedTable(path, error)
  }
}

function summaryOf(
  settings: TableSettings,
  dataSetId: string,
  { shards, manifestSha256, runId }: TableContent,
  { added, removed }: ManifestChanges,
): Record<string, string> {
  const gone = removed.map(({ entry }) => ({
    path: relative(settings, entry.data_file.file_path),
    rows: entry.data_file.record_count,
    bytes: entry.data_file.file_size_in_bytes,
  }))
  const figures = {
    'added-data-files': added.length,
    'added-records': sum(added, 'rows'),
    'added-files-size': sum(added, 'bytes'),
    'deleted-data-files': gone.length,
    'deleted-records': sum(gone, 'rows'),
    'removed-files-size': sum(gone, 'bytes'),
    'total-data-files': shards.length,
    'total-records': sum(shards, 'rows'),
    'total-files-size': sum(shards, 'bytes'),
    'total-delete-files': 0,
    'total-position-deletes': 0,
    'total-equality-deletes': 0,
  }
  return {
    operation: operationOf(added, gone),
    ...Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, String(value)])),
    'spillway.data_set_id': dataSetId,
    'spillway.manifest_sha256': manifestSha256,
    ...(runId === null ? {} : { 'spillway.run_id': runId }),
  }
}

function operationOf(added: readonly TableShard[], gone: Parameters<typeof isCompaction>[1]): string {
  if (gone.length === 0) return 'append'
  if (added.length === 0) return 'delete'
  return isCompaction(added, gone) ? 'replace' : 'overwrite'
}

function sum<K extends string>(items: readonly Readonly<Record<K, number>>[], key: K): number {
  return items.reduce((total, item) => total + item[key], 0)
}
