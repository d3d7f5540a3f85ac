import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import * as z from 'zod'
import { ExportError, RESOURCE_NAMES, type Store } from '../../core/index.ts'
import { PARTITION_STATES } from '../checkpoint/folded-partition.ts'
import { countsByName, ENTRY_SCHEMAS, runBy, runError, schemaJson } from '../journal-entry.ts'

export const SIGNATURE_PATH = '_manifest.sig'

/** Length of an Ed25519 signature, and of the whole file. */
export const SIGNATURE_BYTES = 64

export const MANIFEST_PATH = '_manifest.json'
export const MANIFEST_START = '{\n  "version": 1,\n  "pipeline": '

const count = z.number().int().nonnegative()

const shardSchema = z.object({
  /** Relative to the data set. */
  path: z.string(),
  rows: count,
  bytes: count,
  /** In hex. */
  sha256: z.string(),
  partitions: z.array(z.string()),
  imported_at: z.object({ min: z.string(), max: z.string() }).nullable(),
  /** The shards that were compacted into it: parts of its folder, first and last of each range; absent: none. */
  stands_for: z.array(z.tuple([count, count])).optional(),
  /** Index in `schemas`; absent: there is one. */
  schema: count.optional(),
})

const partitionSchema = z.object({
  key: z.string(),
  state: z.enum(PARTITION_STATES),
  rows: count,
  quarantined: count,
  repeated: count.optional(),
  forgotten: count.optional(),
  /** Why it failed, as all say that failed for the same reason. `ended`: nothing of it is left to request. */
  error: z.object({ cause: z.string(), next: z.string(), ended: z.literal(true).optional() }).optional(),
})
const timeRange = z.object({ from: z.string(), until: z.string() })

const manifestSchema = z.object({
  version: z.literal(1),
  pipeline: z.string(),
  /** A UUID that never changes, as in the header of the checkpoint. */
  data_set_id: z.uuid(),
  resource: z.enum(RESOURCE_NAMES),
  format: z.enum(['parquet', 'csv']),
  /** Of the data set: those of all shards. One that some of them lack is nullable. */
  columns: z.array(z.object({ name: z.string(), type: z.string(), nullable: z.boolean() })),
  /** Names of the columns of shards, in their order. New schemas are added at the end. */
  schemas: z.array(z.array(z.string())),
  /** What each of them is made of, by the names in the pipeline file. */
  schema_settings: z.array(schemaJson).min(1),
  masking: z.object({ secret: z.string(), identity: z.string() }),
  config_digest: z.string(),
  shards: z.array(shardSchema),
  /** Shards begun so far in folders of which some are gone: no number is used again. */
  begun_parts: z.record(z.string(), count),
  totals: z.object({
    rows: count,
    bytes: count,
    shards: count,
    quarantined: count,
    /** Items that the service sent again within a chain; each is exported once. */
    repeated: count,
    forgotten: count,
  }),
  unknown_fields: countsByName,
  /** Queries that the pipeline file no longer has: their partitions and rows in the data set. */
  retired: z.array(z.object({ query: z.string(), partitions: count, rows: count })),
  /** What `config_digest` is made of, by the names in the pipeline file. */
  settings: z.record(z.string(), z.unknown()),
  /** What the pipeline file requests, without flags: with the states of partitions it says what an export covers. */
  scope: ENTRY_SCHEMAS.scope,
  partitions: z.array(partitionSchema),
  prunes: z.array(ENTRY_SCHEMAS.prune),
  forgotten: z.array(ENTRY_SCHEMAS.forget.omit({ changes: true })),
  /** From where to where every query is exported without a hole; null: nowhere, or there are no windows. */
  covers: timeRange.nullable(),
  /** Windows that had begun when the last run did, and that a later one exports, `lag` after their end. */
  waiting: z.array(timeRange),
  runs: z.array(
    z.object({
      started_at: z.string(),
      finished_at: z.string().nullable(),
      status: z.string(),
      rows: count,
      requests: count,
      retries: count,
      quarantined: count,
      failures: count,
      /** Why items were quarantined, by field and rule, and how many. */
      reasons: countsByName,
      /** Searches that it spent and that were left, as the service reports; null: it does not report them. */
      searches_spent: count.nullable(),
      searches_remaining: count.nullable(),
      version: z.string(),
      by: runBy,
      /** Why it is not complete; null: it is, or was killed. */
      error: runError.nullable(),
      /** Only of the last run: measured page size of the service; null: not measured yet. */
      service: z.object({ page_size: count.nullable() }).optional(),
    }),
  ),
})

// The declarations of these two spell the types out, so that users of the library need none of zod.
const asManifest = (json: unknown) => manifestSchema.parse(json)
const asShard = (json: unknown) => shardSchema.parse(json)

/** `_manifest.json`, as the page on file formats describes it. */
export type Manifest = ReturnType<typeof asManifest>
export type ManifestShard = ReturnType<typeof asShard>
export type ManifestPartition = Manifest['partitions'][number]
export type RetiredQuery = Manifest['retired'][number]

/** null: the file does not exist. @throws ExportError `damaged` if it is not a manifest */
export async function readManifest(store: Store): Promise<Manifest | null> {
  const bytes = await store.read(MANIFEST_PATH)
  return bytes === null ? null : parseManifest(bytes)
}

/** @throws ExportError `damaged` if it is not a manifest */
export function parseManifest(bytes: Uint8Array): Manifest {
  try {
    return asManifest(JSON.parse(Buffer.from(bytes).toString()))
  } catch (error) {
    throw new ExportError({
      kind: 'damaged',
      what: 'The manifest cannot be read',
      where: MANIFEST_PATH,
      next: 'Run the pipeline again: every run replaces the manifest at its end.',
      cause: error,
    })
  }
}

/** SHA-256 in hex of the manifest's bytes: what is made from it names it so. */
export function manifestDigest(manifest: Uint8Array): string {
  return createHash('sha256').update(manifest).digest('hex')
}

/** Ed25519 signature of the manifest's bytes (RFC 8032, without a prehash). `openssl pkeyutl -rawin` verifies it. */
export function signatureOf(manifest: Uint8Array, privateKey: KeyObject): Uint8Array {
  return sign(null, manifest, privateKey)
}

export function fitsManifest(signature: Uint8Array, manifest: Uint8Array, publicKey: KeyObject): boolean {
  return signature.byteLength === SIGNATURE_BYTES && verify(null, manifest, publicKey, signature)
}

/** SHA-256 in hex of a public key in DER: `openssl pkey -pubin -in pub.pem -outform DER | sha256sum`. */
export function keyDigest(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}
