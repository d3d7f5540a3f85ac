import * as z from 'zod'
import type { OwnedStore, Store } from '../../core/index.ts'
import { type ColumnSpec, type ColumnType, elementFieldId, fieldId } from '../../rows/index.ts'
import {
  committedByOthers,
  damagedTable,
  foreignTable,
  ICEBERG_FOLDER,
  METADATA_FOLDER,
  type TableOwner,
} from '../table.ts'

const HINT = 'version-hint.text'
const HINT_PATH = `${METADATA_FOLDER}/${HINT}`
const VERSION = /^v(\d+)(\.gz)?\.metadata\.json$/
/** Begins the names of manifests and of lists of them; then comes the id of the data set. */
const AVRO_START = 'spillway-'

function avroStart(dataSetId: string): string {
  return `${AVRO_START}${dataSetId}-`
}

/** Properties of the table. A commit of another program copies them, so that the version is no longer its own. */
const DATA_SET_ID = 'spillway.data_set_id'
const OWN_VERSION = 'spillway.version'

/** A schema in Iceberg's JSON. Source: https://iceberg.apache.org/spec/#appendix-c-json-serialization */
export type IcebergSchema = {
  readonly type: 'struct'
  readonly 'schema-id': number
  readonly fields: readonly IcebergField[]
}

type IcebergField = {
  readonly id: number
  readonly name: string
  readonly required: boolean
  readonly type:
    | string
    | { readonly type: 'list'; readonly 'element-id': number; readonly [key: string]: unknown }
  readonly doc?: string | undefined
}

const number = z.number().int()

const snapshotSchema = z.object({
  'snapshot-id': number,
  'parent-snapshot-id': number.optional(),
  'sequence-number': number,
  'timestamp-ms': number,
  summary: z.record(z.string(), z.string()),
  'manifest-list': z.string(),
  'schema-id': number,
})

const metadataSchema = z.object({
  'format-version': z.literal(2),
  'table-uuid': z.string(),
  location: z.string(),
  'last-sequence-number': number,
  'last-updated-ms': number,
  'last-column-id': number,
  'current-schema-id': number,
  schemas: z.array(z.custom<IcebergSchema>((value) => typeof value === 'object' && value !== null)),
  'default-spec-id': number,
  'partition-specs': z.array(z.unknown()),
  'last-partition-id': number,
  'default-sort-order-id': number,
  'sort-orders': z.array(z.unknown()),
  properties: z.record(z.string(), z.string()),
  'current-snapshot-id': number,
  refs: z.record(z.string(), z.unknown()),
  snapshots: z.array(snapshotSchema),
  'snapshot-log': z.array(z.object({ 'snapshot-id': number, 'timestamp-ms': number })),
  'metadata-log': z.array(z.object({ 'metadata-file': z.string(), 'timestamp-ms': number })),
})

export type Snapshot = z.output<typeof snapshotSchema>

/** The metadata of a table in Iceberg's JSON. Source: https://iceberg.apache.org/spec/#table-metadata-fields */
export type IcebergMetadata = z.output<typeof metadataSchema>

export type VersionedMetadata = { readonly version: number; readonly metadata: IcebergMetadata }

/** The path of the highest version, which counts whatever the hint says; null: there is none. */
async function find(store: Store): Promise<{ readonly version: number; readonly path: string } | null> {
  const names = (await store.list(METADATA_FOLDER)).filter((name) => VERSION.test(name))
  const [last] = names.sort((a, b) => versionOf(b) - versionOf(a))
  return last === undefined ? null : { version: versionOf(last), path: `${METADATA_FOLDER}/${last}` }
}

/** Whether the folder has manifests of the data set: from the first commit on, every table has; null: it is empty. */
export async function isOwnFolder(store: Store, { dataSetId }: TableOwner): Promise<boolean | null> {
  const outer = await store.list(ICEBERG_FOLDER)
  const names = await store.list(METADATA_FOLDER)
  if (names.length === 0 && outer.every((name) => name === 'metadata')) return null
  return names.some((name) => name.startsWith(dataSetId === null ? AVRO_START : avroStart(dataSetId)))
}

function versionOf(name: string): number {
  return Number(VERSION.exec(name)?.[1] ?? 0)
}

/**
 * Reads the current metadata; null: there is no table, at most the rest of a first commit.
 * @throws ExportError `config`: not the data set's own; `storage`: another program made it; `damaged`: unreadable
 */
export async function readMetadata(store: Store, owner: TableOwner): Promise<VersionedMetadata | null> {
  if ((await isOwnFolder(store, owner)) === false) throw foreignTable(ICEBERG_FOLDER)
  const found = await find(store)
  if (found === null) return null
  const { version, path } = found
  if (path.endsWith('.gz.metadata.json')) throw committedByOthers(path)
  const bytes = await store.read(path)
  // A newer commit has expired it meanwhile.
  if (bytes === null) return readMetadata(store, owner)
  const properties = propertiesOf(bytes)
  if (properties === null) throw damagedTable(path, null)
  if (properties[OWN_VERSION] !== String(version)) throw committedByOthers(path)
  const parsed = metadataSchema.safeParse(JSON.parse(Buffer.from(bytes).toString()))
  if (!parsed.success) throw damagedTable(path, parsed.error)
  return { version, metadata: parsed.data }
}

/** null: it is no metadata at all. */
function propertiesOf(bytes: Uint8Array): Readonly<Record<string, unknown>> | null {
  try {
    const parsed = JSON.parse(Buffer.from(bytes).toString()) as { properties?: unknown }
    const { properties = {} } = parsed
    return typeof properties === 'object' ? (properties as Readonly<Record<string, unknown>>) : {}
  } catch {
    return null
  }
}

/** The number of the highest version, also of one that cannot be read; 0: there is none. */
export async function highestVersion(store: Store): Promise<number> {
  return (await find(store))?.version ?? 0
}

/** Makes the next version current. @returns false: another commit has the version */
export async function commitMetadata(
  store: OwnedStore,
  version: number,
  metadata: IcebergMetadata,
): Promise<boolean> {
  const properties = {
    ...metadata.properties,
    [DATA_SET_ID]: metadata['table-uuid'],
    [OWN_VERSION]: String(version),
  }
  const text = JSON.stringify({ ...metadata, properties })
  if (!(await store.create(metadataPath(version), [text]))) return false
  await writeHint(store, version)
  return true
}

/** A crash may leave it behind the version that counts. */
export async function writeHint(store: OwnedStore, version: number): Promise<void> {
  const text = String(version)
  const found = await store.read(HINT_PATH)
  if (found === null || Buffer.from(found).toString() !== text) await store.replace(HINT_PATH, [text])
}

export function metadataPath(version: number): string {
  return `${METADATA_FOLDER}/v${version}.metadata.json`
}

export function avroPath(dataSetId: string, name: string): string {
  return `${METADATA_FOLDER}/${avroStart(dataSetId)}${name}.avro`
}

/** Removes the table. Older versions first: until the last goes, it is whole. */
export async function removeAll(store: OwnedStore): Promise<void> {
  const { versions, others, manifests } = await ownFiles(store)
  // Manifests go after the metadata that names them, and last: they show whose the folder is.
  for (const path of [...versions, ...others, ...manifests]) await store.remove(path)
}

/**
 * Removes other versions, and manifests that these do not need. Versions go last: one that is left repeats the removal.
 * @param isChanged a crash before the new version may have left manifests @param manifests finds those to keep
 */
export async function removeOthers(
  store: OwnedStore,
  versions: ReadonlySet<string>,
  isChanged: boolean,
  manifests: () => Promise<ReadonlySet<string>>,
): Promise<void> {
  const files = await ownFiles(store)
  const expired = files.versions.filter((path) => !versions.has(path))
  // In a bucket each request costs.
  if (expired.length === 0 && !isChanged) return
  const kept = await manifests()
  for (const path of files.manifests) if (!kept.has(path)) await store.remove(path)
  for (const path of expired) await store.remove(path)
}

/** Paths of the files of Spillway in the folder, older versions first. */
async function ownFiles(store: Store) {
  const names = await store.list(METADATA_FOLDER)
  const pathsOf = (isMeant: (name: string) => boolean): readonly string[] =>
    names.filter(isMeant).map((name) => `${METADATA_FOLDER}/${name}`)
  return {
    versions: pathsOf((name) => VERSION.test(name)).toSorted((a, b) => versionOfPath(a) - versionOfPath(b)),
    others: pathsOf((name) => name === HINT),
    manifests: pathsOf((name) => name.startsWith(AVRO_START)),
  }
}

function versionOfPath(path: string): number {
  return versionOf(path.slice(METADATA_FOLDER.length + 1))
}

const TYPES: Readonly<Record<Exclude<ColumnType, 'list'>, string>> = {
  int64: 'long',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'timestamptz',
}

/** The fields have the ids of the files, so that nothing depends on names or order. */
function fieldOf({ name, type, nullable, meaning }: ColumnSpec): IcebergField {
  return {
    id: fieldId(name),
    name,
    required: !nullable,
    type:
      type === 'list'
        ? {
            type: 'list',
            'element-id': elementFieldId(name),
            element: 'string',
            'element-required': false,
          }
        : TYPES[type],
    ...(meaning === '' ? {} : { doc: meaning }),
  }
}

/** The schema with these columns: a known one, or the next. */
export function schemaOf(
  columns: readonly ColumnSpec[],
  known: readonly IcebergSchema[] = [],
): IcebergSchema {
  const fields = columns.map(fieldOf)
  const text = JSON.stringify(fields)
  const found = known.find((schema) => JSON.stringify(schema.fields) === text)
  return found ?? { type: 'struct', 'schema-id': known.length, fields }
}

export function lastColumnId(schemas: readonly IcebergSchema[]): number {
  const fields = schemas.flatMap((schema) => schema.fields)
  return Math.max(
    ...fields.flatMap(({ id, type }) => (typeof type === 'string' ? id : [id, type['element-id']])),
  )
}
