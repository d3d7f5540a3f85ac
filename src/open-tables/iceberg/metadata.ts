import type { OwnedStore, Store } from '../../core/index.ts'
import { type ColumnSpec, type ColumnType, elementFieldId, fieldId } from '../../rows/index.ts'
import { type Digests, damagedTable, ICEBERG_FOLDER, METADATA_FOLDER, type TableOwner } from '../table.ts'

const HINT = 'version-hint.text'
const HINT_PATH = `${METADATA_FOLDER}/${HINT}`
const VERSION = /^v(\d+)(\.gz)?\.metadata\.json$/
/** Begins the names of manifests and of lists of them; then comes the id of the data set. */
const AVRO_START = 'spillway-'

function avroStart(dataSetId: string): string {
  return `${AVRO_START}${dataSetId}-`
}

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

export type Snapshot = {
  readonly 'snapshot-id': number
  readonly 'parent-snapshot-id'?: number
  readonly 'sequence-number': number
  readonly 'timestamp-ms': number
  readonly summary: Readonly<Record<string, string>>
  readonly 'manifest-list': string
  readonly 'schema-id': number
}

/** What is read of a table's metadata. Source: https://iceberg.apache.org/spec/#table-metadata-fields */
export type IcebergMetadata = {
  readonly location: string
  readonly 'last-sequence-number': number
  readonly 'last-updated-ms': number
  readonly 'current-schema-id': number
  readonly schemas: readonly IcebergSchema[]
  readonly 'current-snapshot-id': number
  readonly snapshots: readonly Snapshot[]
  readonly 'snapshot-log': readonly { readonly 'snapshot-id': number; readonly 'timestamp-ms': number }[]
  readonly 'metadata-log': readonly { readonly 'metadata-file': string; readonly 'timestamp-ms': number }[]
  readonly [other: string]: unknown
}

/** The highest version, which counts whatever the hint says, also of one that cannot be read; null: there is none. */
export async function latestVersion(
  store: Store,
): Promise<{ readonly version: number; readonly path: string } | null> {
  const last = versionsIn(await store.list(METADATA_FOLDER)).at(-1)
  return last === undefined ? null : { version: versionOf(last), path: `${METADATA_FOLDER}/${last}` }
}

function versionsIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => VERSION.test(name)).sort((a, b) => versionOf(a) - versionOf(b))
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

/** A crash may leave it behind the version that counts. */
export async function writeHint(store: OwnedStore, version: number): Promise<void> {
  if (!(await isHinted(store, version))) await store.replace(HINT_PATH, [String(version)])
}

async function isHinted(store: Store, version: number): Promise<boolean> {
  const found = await store.read(HINT_PATH)
  return found !== null && Buffer.from(found).toString() === String(version)
}

/** @throws ExportError `damaged` */
export async function requireHint(store: Store, version: number): Promise<void> {
  if (!(await isHinted(store, version))) throw damagedTable(HINT_PATH, null)
}

export function metadataPath(version: number): string {
  return `${METADATA_FOLDER}/v${version}.metadata.json`
}

export function avroPath(dataSetId: string, name: string): string {
  return `${METADATA_FOLDER}/${avroStart(dataSetId)}${name}.avro`
}

/** Removes what is not named: what has expired, and what a crash left; if nothing is, the table. */
export async function removeOthers(store: OwnedStore, named: Digests): Promise<void> {
  const names = await store.list(METADATA_FOLDER)
  const hint = named.size > 0 ? [] : names.filter((name) => name === HINT)
  // Manifests go after the metadata that names them, and last: they show whose the folder is.
  const own = [...versionsIn(names), ...hint, ...names.filter((name) => name.startsWith(AVRO_START))]
  const paths = own.map((name) => `${METADATA_FOLDER}/${name}`)
  for (const path of paths) if (!named.has(path)) await store.remove(path)
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
export function schemaOf(columns: readonly ColumnSpec[], known: readonly IcebergSchema[]): IcebergSchema {
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
