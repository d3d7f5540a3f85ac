import { randomInt } from 'node:crypto'
import {
  getOrInsert,
  isExportError,
  nullIf,
  type OwnedStore,
  type Store,
  sideBySide,
} from '../../core/index.ts'
import {
  committedByOthers,
  type Digests,
  damagedTable,
  ICEBERG_FOLDER,
  isCompaction,
  markOf,
  movedTable,
  type OpenTable,
  requireMarked,
  requireNotLater,
  sha256Of,
  sum,
  type TableContent,
  type TableMark,
  type TableSettings,
  type TableShard,
  type TableState,
  type TableUpdate,
  type UpdatedTable,
} from '../table.ts'
import { type CurrentManifest, type ManifestChanges, manifestChanges } from './changes.ts'
import {
  decodeManifest,
  decodeManifestList,
  ENTRY,
  encodeManifestList,
  type ManifestFile,
  type TrackedShard,
} from './manifest.ts'
import {
  avroPath,
  type IcebergMetadata,
  isOwnFolder,
  lastColumnId,
  latestVersion,
  metadataPath,
  removeOthers,
  requireHint,
  type Snapshot,
  schemaOf,
  writeHint,
} from './metadata.ts'

/** A data set as an Iceberg table of format version 2, committed as in a file system: without a catalog. */
export const icebergTable: OpenTable = {
  async read(store, settings, marks) {
    const table = await IcebergTable.read(store, settings, marks)
    if (table === null) return null
    await requireHint(store, table.version)
    return table.state
  },
  async update(store, settings, content, update) {
    const { marks } = update
    const before =
      marks === null ? null : await IcebergTable.read(store, settings, marks).catch(nullIf('damaged'))
    const table = before ?? IcebergTable.empty(settings, (await latestVersion(store))?.version ?? 0)
    return table.commit(store, settings.dataSetId, content, update)
  },
  isOwn: isOwnFolder,
  remove: (store) => removeOthers(store, new Map()),
}

type Snapshots = ReadonlyMap<number, readonly CurrentManifest[]>

/** The current metadata of a table, as far as there is some. */
class IcebergTable {
  private constructor(
    readonly version: number,
    readonly metadata: IcebergMetadata | null,
    readonly snapshots: Snapshots,
    readonly files: Digests,
    readonly settings: TableSettings,
  ) {}

  static empty(settings: TableSettings, version: number): IcebergTable {
    return new IcebergTable(version, null, new Map(), new Map(), settings)
  }

  /** @throws ExportError `config`: other addresses; `storage`: others committed; `damaged`: not as it was written */
  static async read(
    store: Store,
    settings: TableSettings,
    marks: readonly TableMark[] | null,
  ): Promise<IcebergTable | null> {
    const latest = await latestVersion(store)
    if (latest === null) return null
    const { version, path } = latest
    requireNotLater(path, version, marks)
    const { metadata, snapshots, files } = await readFiles(store, version, marks !== null).catch(
      (error: unknown) => {
        throw isExportError(error) ? error : damagedTable(path, error)
      },
    )
    const table = new IcebergTable(version, metadata, snapshots, files, settings)
    if (marks !== null) requireMarked(path, table.mark, marks)
    if (metadata.location !== tableLocation(settings)) throw movedTable(path, rootOf(metadata), settings.root)
    return table
  }

  /** Digests of the files that belong to the metadata, by their paths. */
  get named(): Digests {
    const { version, metadata, snapshots, files } = this
    if (metadata === null) return new Map()
    const addresses = [
      ...metadata['metadata-log'].map((each) => each['metadata-file']),
      ...metadata.snapshots.map((each) => each['manifest-list']),
      ...[...snapshots.values()].flat().map(({ file }) => file.manifest_path),
    ]
    const at = { root: rootOf(metadata) }
    const paths = [metadataPath(version), ...addresses.map((address) => relative(at, address))]
    return new Map(paths.map((path) => [path, files.get(path) ?? '']))
  }

  get mark(): TableMark {
    return markOf(this.version, this.named)
  }

  /** Of the current snapshot. */
  get manifests(): readonly CurrentManifest[] {
    return this.snapshots.get(this.metadata?.['current-snapshot-id'] ?? 0) ?? []
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
    const files = new Map(this.files)
    const create = async (path: string, bytes: Uint8Array): Promise<void> => {
      // Its name is random.
      await store.create(path, [bytes])
      files.set(path, sha256Of([bytes]))
    }
    const known = metadata?.schemas ?? []
    const schema = schemaOf(content.columns, known)
    const schemas = known.includes(schema) ? known : [...known, schema]
    // Integers of this size are exact in every reader of JSON.
    const id = randomInt(1, 2 ** 48 - 1)
    const sequence = (metadata?.['last-sequence-number'] ?? 0) + 1
    const changes = await manifestChanges(this.manifests, content.shards, {
      root: settings.root,
      dataSetId,
      schema,
      snapshot: { id, sequence },
      statisticsOf: update.statisticsOf,
      write: create,
    })
    const { manifests, added, removed } = changes
    const isSame = metadata?.['current-schema-id'] === schema['schema-id']
    if (isSame && added.length + removed.length === 0) {
      await writeHint(store, version)
      return this.#updated(store)
    }
    const parent = metadata?.['current-snapshot-id'] ?? null
    const list = avroPath(dataSetId, `${id}-list`)
    const lines = manifests.map(({ file }) => file)
    await create(list, await encodeManifestList({ id, parent, sequence }, lines))
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
    const kept = [...this.#keptSnapshots(removed), snapshot]
    const isKept = new Set(kept.map((each) => each['snapshot-id']))
    const snapshots = new Map(
      [...this.snapshots, [id, manifests] as const].filter(([each]) => isKept.has(each)),
    )
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
      properties: { 'spillway.data_set_id': dataSetId },
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
    const path = metadataPath(version + 1)
    if (!Number.isSafeInteger(version + 1)) throw committedByOthers(path)
    const text = JSON.stringify(next)
    files.set(path, sha256Of([text]))
    const table = new IcebergTable(version + 1, next, snapshots, files, settings)
    await update.keepMarks(metadata === null ? [table.mark] : [this.mark, table.mark])
    if (!(await store.create(path, [text]))) return null
    await writeHint(store, version + 1)
    return table.#updated(store)
  }

  #updated(store: OwnedStore): UpdatedTable {
    const { state, named } = this
    return { state, removeExpired: () => removeOthers(store, named) }
  }

  /** The snapshots that stay beside the next one: the latest, but none that names a shard that goes. */
  #keptSnapshots(removed: readonly TrackedShard[]): readonly Snapshot[] {
    const latest = lastOf(this.metadata?.snapshots ?? [], this.settings.snapshots - 1)
    const going = new Set(removed.map(({ entry }) => entry.data_file.file_path))
    const namesGoing = ({ tracked }: CurrentManifest): boolean =>
      tracked.some(({ entry }) => entry.status !== ENTRY.deleted && going.has(entry.data_file.file_path))
    return latest.filter((each) => !this.snapshots.get(each['snapshot-id'])?.some(namesGoing))
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
}

function tableLocation({ root }: TableSettings): string {
  return `${root}/${ICEBERG_FOLDER}`
}

/** The path of an address below the data set. */
function relative({ root }: Pick<TableSettings, 'root'>, address: string): string {
  return address.startsWith(`${root}/`) ? address.slice(root.length + 1) : address
}

function lastOf<T>(items: readonly T[], count: number): readonly T[] {
  return count <= 0 ? [] : items.slice(-count)
}

function rootOf({ location }: IcebergMetadata): string {
  return location.slice(0, -`/${ICEBERG_FOLDER}`.length)
}

/** Reads a version, and the files that it names: all of them, or those of the current snapshot. */
async function readFiles(store: Store, version: number, areAll: boolean) {
  const files = new Map<string, string>()
  const read = async (path: string): Promise<Uint8Array> => {
    const bytes = await store.read(path)
    if (bytes === null) throw new Error(`${path} is missing`)
    files.set(path, sha256Of([bytes]))
    return bytes
  }
  const text = Buffer.from(await read(metadataPath(version))).toString()
  const metadata = JSON.parse(text) as IcebergMetadata
  const at = { root: rootOf(metadata) }
  const readManifest = async (file: ManifestFile): Promise<CurrentManifest> => {
    const tracked = await decodeManifest(await read(relative(at, file.manifest_path)))
    return { file, tracked }
  }
  const manifests = new Map<string, Promise<CurrentManifest>>()
  const snapshots = new Map<number, readonly CurrentManifest[]>()
  const current = metadata.snapshots.filter((each) => each['snapshot-id'] === metadata['current-snapshot-id'])
  await sideBySide(areAll ? metadata.snapshots : current, async (snapshot) => {
    const list = await decodeManifestList(await read(relative(at, snapshot['manifest-list'])))
    const found = list.map((file) => getOrInsert(manifests, file.manifest_path, () => readManifest(file)))
    snapshots.set(snapshot['snapshot-id'], await Promise.all(found))
  })
  await sideBySide(areAll ? metadata['metadata-log'] : [], async (each) => {
    await read(relative(at, each['metadata-file']))
  })
  return { metadata, snapshots, files }
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
