import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import avro, { type Schema } from 'avsc'
import { type ColumnStatistics, fieldId } from '../../rows/index.ts'
import { type TableShard, withBounds } from '../table.ts'
import type { IcebergSchema } from './metadata.ts'

// Source of names and ids: https://iceberg.apache.org/spec/#manifests and …/#manifest-lists

export const ENTRY = { existing: 0, added: 1, deleted: 2 } as const

export const NO_BOUNDS = { lower_bounds: null, upper_bounds: null } as const

export type ManifestEntry = {
  readonly status: number
  readonly snapshot_id: number
  readonly sequence_number: number
  readonly file_sequence_number: number
  readonly data_file: DataFile | (Omit<DataFile, keyof typeof NO_BOUNDS> & typeof NO_BOUNDS)
}

type DataFile = ReturnType<typeof dataFile>

/** A line of a manifest list. */
export type ManifestFile = {
  readonly [Name in keyof typeof LIST_FIELDS]: (typeof LIST_FIELDS)[Name][1] extends 'string'
    ? string
    : number
}

export type TrackedShard = { readonly entry: ManifestEntry; readonly sha256: string }

export function encodeManifest(schema: IcebergSchema, tracked: readonly TrackedShard[]): Promise<Uint8Array> {
  return writeAvro(
    MANIFEST,
    {
      schema: JSON.stringify(schema),
      'schema-id': String(schema['schema-id']),
      'partition-spec': '[]',
      'partition-spec-id': '0',
      'format-version': '2',
      content: 'data',
      // Iceberg has no place for it. Readers skip keys that they do not know.
      [DIGESTS]: Buffer.from(tracked.map(({ sha256 }) => sha256).join(''), 'hex').toString('base64'),
    },
    tracked.map(({ entry }) => entry),
  )
}

const DIGESTS = 'spillway.sha256'
const DIGEST_CHARACTERS = 64

/** @throws Error when it is no manifest of Spillway */
export async function decodeManifest(bytes: Uint8Array): Promise<readonly TrackedShard[]> {
  const { metadata, rows } = await readAvro(MANIFEST, bytes)
  const digests = Buffer.from(String(metadata[DIGESTS] ?? ''), 'base64').toString('hex')
  if (digests.length !== rows.length * DIGEST_CHARACTERS) throw new Error('It lacks digests')
  return rows.map((entry, i) => ({
    entry: entry as ManifestEntry,
    sha256: digests.slice(i * DIGEST_CHARACTERS, (i + 1) * DIGEST_CHARACTERS),
  }))
}

export function encodeManifestList(
  snapshot: { readonly id: number; readonly parent: number | null; readonly sequence: number },
  manifests: readonly ManifestFile[],
): Promise<Uint8Array> {
  return writeAvro(
    LIST,
    {
      'format-version': '2',
      'snapshot-id': String(snapshot.id),
      'parent-snapshot-id': String(snapshot.parent),
      'sequence-number': String(snapshot.sequence),
    },
    manifests,
  )
}

/** @throws Error when it is no manifest list of Spillway */
export async function decodeManifestList(bytes: Uint8Array): Promise<readonly ManifestFile[]> {
  return (await readAvro(LIST, bytes)).rows as readonly ManifestFile[]
}

/** @param metadata of the file, besides schema and codec */
function writeAvro(
  schema: Schema,
  metadata: Readonly<Record<string, string>>,
  rows: readonly unknown[],
): Promise<Uint8Array> {
  const entries = Object.entries(metadata).map(([key, value]) => [key, Buffer.from(value)])
  const options = {
    codec: 'deflate',
    metadata: Object.fromEntries(entries),
    syncMarker: randomBytes(16),
    writeHeader: true,
  }
  return pipeline(rows, new avro.streams.BlockEncoder(schema, options), buffer)
}

/** Reads a file that {@link writeAvro} wrote with this schema. @throws Error when it is another file */
async function readAvro(schema: Schema, bytes: Uint8Array) {
  const decoder = new avro.streams.BlockDecoder()
  let metadata: Readonly<Record<string, Buffer>> = {}
  decoder.once('metadata', (_type, _codec, { meta }) => {
    metadata = meta
  })
  const rows: readonly unknown[] = await Readable.from([bytes]).pipe(decoder).toArray()
  if (String(metadata['avro.schema']) !== JSON.stringify(schema)) throw new Error('It has another schema')
  return { metadata, rows }
}

/** @param root address of the data set */
export function dataFile(
  root: string,
  { path, rows, bytes }: TableShard,
  statistics: readonly ColumnStatistics[],
) {
  const bounded = withBounds(statistics)
  return {
    content: 0,
    file_path: `${root}/${path}`,
    file_format: 'PARQUET',
    partition: {},
    record_count: rows,
    file_size_in_bytes: bytes,
    column_sizes: statistics.map(({ name, bytes }) => ({ key: fieldId(name), value: bytes })),
    value_counts: statistics.map(({ name }) => ({ key: fieldId(name), value: rows })),
    null_value_counts: statistics.map(({ name, nulls }) => ({ key: fieldId(name), value: nulls })),
    lower_bounds: bounded.map(({ name, bounds }) => ({ key: fieldId(name), value: boundBytes(bounds.min) })),
    upper_bounds: bounded.map(({ name, bounds }) => ({ key: fieldId(name), value: boundBytes(bounds.max) })),
  }
}

/** Source: https://iceberg.apache.org/spec/#binary-single-value-serialization */
function boundBytes(value: bigint | string): Uint8Array {
  if (typeof value === 'string') return Buffer.from(value)
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}

function field(id: number, name: string, type: Schema) {
  return { name, type, 'field-id': id }
}

/** A map with integer keys: Avro's own maps have strings. */
function map(keyId: number, valueId: number, value: Schema): Schema {
  return {
    type: 'array',
    logicalType: 'map',
    items: {
      type: 'record',
      name: `k${keyId}_v${valueId}`,
      fields: [field(keyId, 'key', 'int'), field(valueId, 'value', value)],
    },
  }
}

function optional(id: number, name: string, type: Schema) {
  return { ...field(id, name, ['null', type] as Schema), default: null }
}

const MANIFEST: Schema = {
  type: 'record',
  name: 'manifest_entry',
  fields: [
    field(0, 'status', 'int'),
    optional(1, 'snapshot_id', 'long'),
    optional(3, 'sequence_number', 'long'),
    optional(4, 'file_sequence_number', 'long'),
    field(2, 'data_file', {
      type: 'record',
      name: 'r2',
      fields: [
        field(134, 'content', 'int'),
        field(100, 'file_path', 'string'),
        field(101, 'file_format', 'string'),
        field(102, 'partition', { type: 'record', name: 'r102', fields: [] }),
        field(103, 'record_count', 'long'),
        field(104, 'file_size_in_bytes', 'long'),
        optional(108, 'column_sizes', map(117, 118, 'long')),
        optional(109, 'value_counts', map(119, 120, 'long')),
        optional(110, 'null_value_counts', map(121, 122, 'long')),
        optional(125, 'lower_bounds', map(126, 127, 'bytes')),
        optional(128, 'upper_bounds', map(129, 130, 'bytes')),
      ],
    }),
  ],
}

const LIST_FIELDS = {
  manifest_path: [500, 'string'],
  manifest_length: [501, 'long'],
  partition_spec_id: [502, 'int'],
  content: [517, 'int'],
  sequence_number: [515, 'long'],
  min_sequence_number: [516, 'long'],
  added_snapshot_id: [503, 'long'],
  added_files_count: [504, 'int'],
  existing_files_count: [505, 'int'],
  deleted_files_count: [506, 'int'],
  added_rows_count: [512, 'long'],
  existing_rows_count: [513, 'long'],
  deleted_rows_count: [514, 'long'],
} as const

const LIST: Schema = {
  type: 'record',
  name: 'manifest_file',
  fields: Object.entries(LIST_FIELDS).map(([name, [id, type]]) => field(id, name, type)),
}

// The streams generate code for a schema. Where that is forbidden, it is known before anything is requested.
avro.Type.forSchema(LIST)
