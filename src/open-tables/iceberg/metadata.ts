import * as z from 'zod'
import type { OwnedStore, Store } from '../../core/index.ts'
import { committedByOthers, damagedTable, foreignTable } from '../table.ts'
import type { IcebergSchema } from './schema.ts'

export const ICEBERG_FOLDER = '_iceberg'
export const METADATA_FOLDER = `${ICEBERG_FOLDER}/metadata`
export const HINT_PATH = `${METADATA_FOLDER}/version-hint.text`
const VERSION = /^v(\d+)(\.gz)?\.metadata\.json$/
/** Begins the names of manifests and of lists of them. */
const AVRO_START = 'spillway-'

/** Properties of the table. A commit of another program copies them, so that the version is no longer its own. */
const DATA_SET_ID = 'spillway.data_set_id'
const OWN_VERSION = 'spillway.version'

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

/** The names in the folder of the metadata, and the highest version; 0: there is none. */
type Found = { readonly names: readonly string[]; readonly version: number; readonly path: string }

/**
 * Finds the highest version, which counts whatever the hint says.
 * @returns null: there is no table, at most the rest of a first commit
 * @throws ExportError `config` when the folder is another program's
 */
async function find(store: Store): Promise<Found | null> {
  const outer = await store.list(ICEBERG_FOLDER)
  const names = outer.length === 0 ? [] : await store.list(METADATA_FOLDER)
  const versions = names.filter((name) => VERSION.test(name))
  const [last] = versions.sort((a, b) => versionOf(b) - versionOf(a))
  if (last !== undefined) return { names, version: versionOf(last), path: `${METADATA_FOLDER}/${last}` }
  const isOurs =
    names.every((name) => name.startsWith(AVRO_START)) && outer.every((name) => name === 'metadata')
  if (!isOurs) throw foreignTable(ICEBERG_FOLDER)
  return null
}

function versionOf(name: string): number {
  return Number(VERSION.exec(name)?.[1] ?? 0)
}

/**
 * Reads the current metadata; null: there is no table.
 * @throws ExportError `config` when it is another program's table, `storage` when another program made the current
 *   version, `damaged` when it cannot be read
 */
export async function readMetadata(store: Store): Promise<VersionedMetadata | null> {
  const found = await find(store)
  if (found === null) return null
  const { version, path } = found
  if (path.endsWith('.gz.metadata.json')) throw committedByOthers(path)
  const bytes = await store.read(path)
  // A newer commit has expired it meanwhile.
  if (bytes === null) return readMetadata(store)
  const properties = propertiesOf(bytes)
  if (properties === null) throw isMarked(found) ? damagedTable(path, null) : foreignTable(path)
  if (properties[DATA_SET_ID] === undefined) throw foreignTable(path)
  if (properties[OWN_VERSION] !== String(version)) throw committedByOthers(path)
  const parsed = metadataSchema.safeParse(JSON.parse(Buffer.from(bytes).toString()))
  if (!parsed.success) throw damagedTable(path, parsed.error)
  return { version, metadata: parsed.data }
}

/** Whether Spillway has made files in the folder. */
function isMarked({ names }: Found): boolean {
  return names.some((name) => name.startsWith(AVRO_START))
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

/**
 * Makes the next version current.
 * @returns false: another commit has the version
 */
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

export function avroPath(name: string): string {
  return `${METADATA_FOLDER}/${AVRO_START}${name}.avro`
}

/** Removes all files of Spillway in the folder but these. Older versions first: until the last goes, the table is whole. */
export async function removeOthers(store: OwnedStore, kept: ReadonlySet<string>): Promise<void> {
  const names = await store.list(METADATA_FOLDER)
  const paths = names
    .filter(
      (name) =>
        name.startsWith(AVRO_START) || VERSION.test(name) || `${METADATA_FOLDER}/${name}` === HINT_PATH,
    )
    .sort((a, b) => versionOf(b) - versionOf(a))
    .map((name) => `${METADATA_FOLDER}/${name}`)
    .filter((path) => !kept.has(path))
  // Manifests have version 0 here and go after the metadata that names them.
  const versions = paths.filter((path) => path.endsWith('.metadata.json')).reverse()
  for (const path of versions) await store.remove(path)
  for (const path of paths) if (!path.endsWith('.metadata.json')) await store.remove(path)
}
