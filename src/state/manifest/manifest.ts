import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import * as z from 'zod'
import {
  ExportError,
  formatTimestamp,
  type Int64Json,
  int64FromJson,
  type OwnedStore,
  type Pipeline,
  RESOURCE_NAMES,
  type Store,
} from '../../core/index.ts'
import { columnsOf, typeName, withSchema } from '../../rows/index.ts'
import type { CheckpointState } from '../checkpoint/fold-journal.ts'
import { hasBegun, sumOfPartitions } from '../checkpoint/folded-partition.ts'
import type { SealedShard } from '../checkpoint/packed-collections.ts'
import { countsByName, ENTRY_SCHEMAS, runBy, runError, type Scope, schemaJson } from '../journal-entry.ts'
import { asExported, schemaToJson } from '../schemas.ts'
import { settingsDigest } from '../settings.ts'
import { coverage, type TimeRange } from '../verdict.ts'
import { shardLine } from './manifest-lines.ts'
import { manifestPartitionSchema, manifestPartitions } from './manifest-partitions.ts'

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
  partitions: z.array(manifestPartitionSchema),
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
export type RetiredQuery = Manifest['retired'][number]

/** What a manifest has from the pipeline file; all else is from the checkpoint. */
type ManifestPlan = {
  readonly scope: Scope
  readonly planned: Iterable<string>
  readonly retired: readonly RetiredQuery[]
  readonly waiting: readonly TimeRange[]
  /** Measurements of the service; default: as they are now. */
  readonly service?: Readonly<Record<string, number | null>> | undefined
}

/** Writes the manifest atomically, one line for each shard, so that a million shards are never one string. */
export async function writeManifest(
  store: OwnedStore,
  pipeline: Pipeline,
  state: CheckpointState,
  plan: ManifestPlan,
): Promise<void> {
  await store.replace(MANIFEST_PATH, manifestText(pipeline, state, plan))
}

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

/** Whether the bytes are the manifest of a checkpoint as of its last run, or as of an earlier one that changed more. */
export function isManifestOf(bytes: Uint8Array, pipeline: Pipeline, state: CheckpointState): boolean {
  // The pipeline file may have changed since: the manifest has the names of retired queries, the state their rows.
  const { scope: listedScope, partitions, retired: listed, runs, waiting } = parseManifest(bytes)
  const scope = state.scope ?? listedScope
  const names = new Set(listed.map(({ query }) => query))
  const retired = [...names].sort().flatMap((query) => holdingsOf(query, state) ?? [])
  const planned = partitions.map(({ key }) => key)
  const then = { ...state, runs: state.runs.slice(0, runs.length) }
  const plan = { scope, planned, retired, waiting, service: runs.at(-1)?.service }
  return manifestDifference(bytes, pipeline, then, plan) === 'none'
}

export function manifestDifference(
  bytes: Uint8Array,
  pipeline: Pipeline,
  state: CheckpointState,
  plan: ManifestPlan,
): 'none' | 'runs' | 'all' {
  let at = 0
  for (const text of manifestText(pipeline, state, plan)) {
    const expected = Buffer.from(text)
    if (!expected.equals(bytes.subarray(at, at + expected.byteLength)))
      return text.startsWith(RUNS) ? 'runs' : 'all'
    at += expected.byteLength
  }
  return at === bytes.byteLength ? 'none' : 'all'
}

/** Beginning of the last part of its text. */
const RUNS = ',\n  "runs": '

/** Partitions and rows of a query in a data set; null: none. */
export function holdingsOf(query: string, { partitions: all }: CheckpointState): RetiredQuery | null {
  let [partitions, rows] = [0, 0]
  for (const folded of all.branches.get(query)?.values() ?? []) {
    if (!hasBegun(folded) || folded.state === 'pruned') continue
    partitions++
    rows += folded.rows
  }
  return partitions === 0 ? null : { query, partitions, rows }
}

export function* manifestShards(state: CheckpointState): Generator<ManifestShard> {
  const byPath = [...state.shards].sort((a, b) => (a.path < b.path ? -1 : 1))
  for (const shard of byPath) yield manifestShard(shard)
}

export function manifestShard(shard: Omit<SealedShard, 'shard'>): ManifestShard {
  const { path, rows, bytes, sha256, partitions, imported_at, stands_for, schema } = shard
  const at = (time: Int64Json): string => formatTimestamp(int64FromJson(time))
  const span = imported_at === null ? null : { min: at(imported_at.min), max: at(imported_at.max) }
  const compacted =
    stands_for === undefined
      ? {}
      : { stands_for: stands_for.map(([from, to]): [number, number] => [from, to]) }
  const all = [...partitions].sort()
  return {
    path,
    rows,
    bytes,
    sha256,
    partitions: all,
    imported_at: span,
    ...compacted,
    ...(schema === undefined ? {} : { schema }),
  }
}

function* manifestText(
  pipeline: Pipeline,
  state: CheckpointState,
  { scope, planned, retired, waiting, service = { page_size: state.service.pageSize } }: ManifestPlan,
): Generator<string> {
  const { extract, transform, load } = pipeline
  const head = {
    version: 1,
    pipeline: pipeline.name,
    data_set_id: state.header.data_set_id,
    resource: extract.resource,
    format: load.format.kind,
    columns: columnsOf(asExported(pipeline, state)).map(({ name, type, nullable }) => ({
      name,
      type: typeName(type, load.format),
      nullable,
    })),
    masking: { secret: transform.secret, identity: transform.identity },
    schemas: state.schemas.map((schema) => columnsOf(withSchema(pipeline, schema)).map(({ name }) => name)),
    schema_settings: state.schemas.map(schemaToJson),
    config_digest: settingsDigest(state.header.settings),
    settings: state.header.settings,
    scope: { ...scope, queries: [...scope.queries].sort() },
  }
  yield `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "shards": [`
  const { quarantined, repeated, forgotten } = sumOfPartitions(state)
  const totals = { rows: 0, bytes: 0, shards: 0, quarantined, repeated, forgotten }
  for (const shard of manifestShards(state)) {
    const { schema = 0 } = shard
    const listed = state.schemas.length === 1 ? shard : { ...shard, schema }
    yield `${totals.shards === 0 ? '' : ','}\n${shardLine(listed)}`
    totals.shards++
    totals.rows += shard.rows
    totals.bytes += shard.bytes
  }
  const partitions = [...manifestPartitions(state, planned)]
  const tail = {
    begun_parts: Object.fromEntries(
      [...state.goneFrom.keys()].sort().map((folder) => [folder, state.partsOf.get(folder) ?? 0]),
    ),
    totals,
    unknown_fields: Object.fromEntries([...state.unknownFields].sort(([a], [b]) => (a < b ? -1 : 1))),
    retired,
    prunes: state.prunes,
    forgotten: state.erasures,
    covers: coverage(scope, partitions),
  }
  const runs = {
    runs: state.runs.map(({ started_at, finished_at, status, version, by, ...run }, i) => ({
      started_at,
      finished_at,
      // A run without an end entry was killed.
      status: status ?? 'interrupted',
      rows: run.rows,
      requests: run.requests,
      retries: run.retries,
      quarantined: run.quarantined,
      failures: run.failures,
      reasons: run.reasons,
      searches_spent: run.searchesSpent,
      searches_remaining: run.searchesRemaining,
      version,
      by,
      error: run.error,
      ...(i === state.runs.length - 1 ? { service } : {}),
    })),
    waiting,
  }
  yield `${totals.shards === 0 ? '' : '\n  '}],\n  "partitions": [`
  let before = ''
  for (const partition of partitions) {
    yield `${before}\n    ${JSON.stringify(partition)}`
    before = ','
  }
  yield `${before === '' ? '' : '\n  '}],${JSON.stringify(tail, null, 2).slice(1, -2)}`
  yield `,${JSON.stringify(runs, null, 2).slice(1)}\n`
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
