import * as z from 'zod'
import {
  type ColumnSpec,
  type ColumnType,
  elementFieldId,
  fieldId,
  type OwnedStore,
  type Store,
} from '../../core/index.ts'
import { committedByOthers, damagedTable, foreignTable, ICEBERG_FOLDER, METADATA_FOLDER } from '../table.ts'

const HINT = 'version-hint.text'
export const HINT_PATH = `${METADATA_FOLDER}/${HINT}`
const VERSION = /^v(\d+)(\.gz)?\.metadata\.json$/
/** Begins the names of manifests and of lists of them. */
const AVRO_START = 'spillway-'

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
  if (properties === null) {
    const isMarked = found.names.some((name) => name.startsWith(AVRO_START))
    throw isMarked ? damagedTable(path, null) : foreignTable(path)
  }
  if (properties[DATA_SET_ID] === undefined) throw foreignTable(path)
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
  const versions = names.filter((name) => VERSION.test(name)).sort((a, b) => versionOf(a) - versionOf(b))
  // Manifests go after the metadata that names them.
  const others = names.filter((name) => name.startsWith(AVRO_START) || name === HINT)
  const paths = [...versions, ...others].map((name) => `${METADATA_FOLDER}/${name}`)
  for (const path of paths) if (!kept.has(path)) await store.remove(path)
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

/** The schemas of a table, and the id of the one that has these columns; it is added if there is none. */
export function withSchema(
  schemas: readonly IcebergSchema[],
  columns: readonly ColumnSpec[],
): { schemas: readonly IcebergSchema[]; schema: IcebergSchema; lastColumnId: number } {
  const fields = columns.map(fieldOf)
  const same = schemas.find((schema) => JSON.stringify(schema.fields) === JSON.stringify(fields))
  const next = Math.max(-1, ...schemas.map((schema) => schema['schema-id'])) + 1
  const schema = same ?? { type: 'struct', 'schema-id': next, fields }
  const all = same === undefined ? [...schemas, schema] : schemas
  const ids = all.flatMap((schema) =>
    schema.fields.flatMap(({ id, type }) => (typeof type === 'string' ? id : [id, type['element-id']])),
  )
  return { schemas: all, schema, lastColumnId: Math.max(...ids) }
}
