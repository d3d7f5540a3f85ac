import {
  formatTimestamp,
  type Int64Json,
  int64FromJson,
  type OwnedStore,
  type Pipeline,
} from '../../core/index.ts'
import { columnsOf, typeName, withSchema } from '../../rows/index.ts'
import type { CheckpointState } from '../checkpoint/fold-journal.ts'
import { hasBegun, type PartitionState, sumOfPartitions } from '../checkpoint/folded-partition.ts'
import type { SealedShard } from '../checkpoint/packed-collections.ts'
import type { Scope } from '../journal-entry.ts'
import { asExported, schemaToJson } from '../schemas.ts'
import { settingsDigest } from '../settings.ts'
import { coverage, type TimeRange } from '../verdict.ts'
import {
  MANIFEST_PATH,
  type Manifest,
  type ManifestPartition,
  type ManifestShard,
  parseManifest,
  type RetiredQuery,
} from './manifest.ts'

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

/** Whether the bytes are what would be written. */
export function isManifest(
  bytes: Uint8Array,
  pipeline: Pipeline,
  state: CheckpointState,
  plan: ManifestPlan,
): boolean {
  let at = 0
  for (const text of manifestText(pipeline, state, plan)) {
    const expected = Buffer.from(text)
    if (!expected.equals(bytes.subarray(at, at + expected.byteLength))) return false
    at += expected.byteLength
  }
  return at === bytes.byteLength
}

/**
 * Whether the bytes are the manifest of a checkpoint as of its last run, or as of an earlier one that changed more.
 * @param plan default: what they list, because the pipeline file may have changed since
 */
export function isManifestOf(
  bytes: Uint8Array,
  pipeline: Pipeline,
  state: CheckpointState,
  plan?: Pick<ManifestPlan, 'scope' | 'planned' | 'retired'>,
): boolean {
  const { scope, partitions, retired, runs, waiting } = parseManifest(bytes)
  // They have the names of retired queries, the state their rows.
  const names = new Set(retired.map(({ query }) => query))
  const listed = {
    scope: state.scope ?? scope,
    planned: partitions.map(({ key }) => key),
    retired: [...names].sort().flatMap((query) => holdingsOf(query, state) ?? []),
  }
  const then = { ...state, runs: state.runs.slice(0, runs.length) }
  return isManifest(bytes, pipeline, then, { ...(plan ?? listed), waiting, service: runs.at(-1)?.service })
}

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
  for (const sealed of [...state.shards].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const shard = manifestShard(sealed)
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

export function manifestShard(shard: Omit<SealedShard, 'shard'>): ManifestShard {
  const { path, rows, bytes, sha256, partitions, imported_at, stands_for, schema } = shard
  const at = (time: Int64Json): string => formatTimestamp(int64FromJson(time))
  const span = imported_at === null ? null : { min: at(imported_at.min), max: at(imported_at.max) }
  return {
    path,
    rows,
    bytes,
    sha256,
    partitions: [...partitions].sort(),
    imported_at: span,
    stands_for: stands_for?.map(([from, to]) => [from, to]),
    schema,
  }
}

/** All partitions that are planned or present, by key. */
function* manifestPartitions(
  state: CheckpointState,
  planned: Iterable<string>,
): Generator<ManifestPartition> {
  const { partitions } = state
  const stateOf = publishedStates(state)
  const keys = new Set(planned)
  for (const [key, folded] of partitions) {
    if (hasBegun(folded) || folded.state === 'failed') keys.add(key)
  }
  for (const key of [...keys].sort()) {
    const folded = partitions.get(key)
    const failure = folded?.state === 'failed' ? folded.error : null
    yield {
      key,
      state: stateOf(key),
      rows: folded?.rows ?? 0,
      quarantined: folded?.quarantined ?? 0,
      repeated: folded?.repeated || undefined,
      forgotten: folded?.forgotten || undefined,
      error:
        failure === null ? undefined : { cause: failure.cause, next: failure.next, ended: failure.ended },
    }
  }
}

/** The state of each partition as readers see it: `done` once all rows are published; a redone one is as it was. */
export function publishedStates({
  partitions,
  openShards,
  redo,
}: CheckpointState): (key: string) => PartitionState {
  const waiting = new Set([...openShards.values()].flatMap((shard) => [...shard.partitions]))
  return (key) => {
    const state = partitions.get(key)?.state ?? 'pending'
    return state === 'done' && waiting.has(key) && !redo.partitions.has(key) ? 'partial' : state
  }
}

/** Finds a manifest's lines without JSON, in POSIX (extended), RE2 and Java: one group, no backslash, any indent. */
export const MANIFEST_LINES = {
  dataSet: '^[^"{]*"data_set_id": *"([^"]+)"',
  path: '^[^"{]*[{]"path":"([^"]+)"',
  // Further on in the line of a shard.
  rows: '"rows":([0-9]+)',
  sha256: '"sha256":"([0-9a-f]+)"',
  /** As JSON. */
  partitions: '"partitions":([^{}]*),"imported_at"',
  schema: '"schema":([0-9]+)',
} as const

/** Prints a line for each shard of a manifest, as `sha256sum --check` reads it. */
export const SHA256SUMS_OF_MANIFEST = `sed -nE 's/${MANIFEST_LINES.path}.*${MANIFEST_LINES.sha256}.*/\\2  \\1/p' _manifest.json`

function shardLine(shard: object): string {
  return `    ${JSON.stringify(shard)}`
}

/** The lines that {@link MANIFEST_LINES} find, for engines that cannot read the file. */
export function manifestLines(manifest: Pick<Manifest, 'data_set_id' | 'shards'>): readonly string[] {
  const listed = manifest.shards.map(({ path, rows, sha256, partitions, schema }) =>
    shardLine({ path, rows, sha256, partitions, imported_at: null, schema: schema || undefined }),
  )
  return [`  "data_set_id": ${JSON.stringify(manifest.data_set_id)}`, ...listed]
}
