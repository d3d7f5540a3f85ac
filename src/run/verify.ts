import { createHash, type KeyObject } from 'node:crypto'
import {
  columnsNamed,
  hidesIdentity,
  type IdentityPolicy,
  isExportError,
  type Pipeline,
  type Query,
  queryLabel,
  type Store,
  typeName,
} from '../core/index.ts'
import { type InspectedShard, partOf, type ShardReader } from '../load/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  fitsManifest,
  MANIFEST_PATH,
  type ManifestShard,
  manifestShards,
  parseManifest,
  readCheckpoint,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
} from '../state/index.ts'
import { looksMasked } from '../transform/index.ts'
import { openDataSet } from './data-set/index.ts'
import { repeatedIds } from './repeated-ids.ts'
import { namingPlaces } from './setting/index.ts'

export type Verification = {
  readonly ok: boolean
  readonly shards: number
  readonly rows: number
  readonly problems: readonly Problem[]
}

export type Problem = { readonly path: string; readonly problem: string }

/**
 * Reads every shard again and holds it against what is on record: there, as long as it should be, the same
 * SHA-256, rows and columns, nothing unmasked, and no id twice for one query. Changes nothing and asks the service nothing.
 * @param onShard called before each shard
 * @param signedBy a public Ed25519 key that the manifest has to be signed under; null: its signature is not looked at
 */
export function verifyDataSet(
  pipeline: Pipeline,
  onShard: (path: string) => void,
  signedBy: KeyObject | null = null,
): Promise<Verification> {
  return namingPlaces(pipeline, () => verify(pipeline, onShard, signedBy))
}

async function verify(
  pipeline: Pipeline,
  onShard: (path: string) => void,
  signedBy: KeyObject | null,
): Promise<Verification> {
  const store = openDataSet(pipeline)
  const problems: Problem[] = []
  // Looked for first: what a run that is at work publishes is on record before it has its name.
  const files: string[] = []
  for await (const path of shardFiles(store, pipeline.extract.resource)) files.push(path)
  const expected = await shardsOnRecord(store, signedBy, problems)
  let rows = 0
  const sound: ManifestShard[] = []
  for (const shard of expected) {
    onShard(shard.path)
    const problem = await verifyShard(store, pipeline, shard)
    if (problem !== null) problems.push({ path: shard.path, problem })
    else {
      rows += shard.rows
      sound.push(shard)
    }
  }
  for (const [path, times] of (await repeatedIds(pipeline, sound, (shard) => readerOf(store, shard))) ?? []) {
    problems.push({ path, problem: `${times} of its rows have an id that their query has had before` })
  }
  const known = new Set(expected.map(({ path }) => path))
  for (const path of files) {
    if (!known.has(path))
      problems.push({ path, problem: 'is not on record: a reader would take its rows for data' })
  }
  return { ok: problems.length === 0, shards: expected.length, rows, problems }
}

/** What the checkpoint vouches for; where the data set was moved without it, what the manifest lists. */
async function shardsOnRecord(
  store: Store,
  signedBy: KeyObject | null,
  problems: Problem[],
): Promise<readonly ManifestShard[]> {
  const state = await reading(() => readCheckpoint(store), CHECKPOINT_PATH, problems)
  // Read once, so that what is signed is what is listed.
  const bytes = await reading(() => store.read(MANIFEST_PATH), MANIFEST_PATH, problems)
  const manifest =
    bytes === null ? null : await reading(async () => parseManifest(bytes), MANIFEST_PATH, problems)
  const isReadable = problems.length === 0
  if (signedBy !== null) {
    const fault = await signatureFault(store, bytes, signedBy)
    if (fault !== null) problems.push({ path: SIGNATURE_PATH, problem: fault })
  }
  if (state === null) {
    if (manifest === null && isReadable) {
      problems.push({ path: MANIFEST_PATH, problem: 'is not there: nothing was exported yet' })
    }
    return manifest?.shards ?? []
  }
  const shards = [...manifestShards(state)]
  if (manifest !== null) compareManifest(manifest.shards, shards, signedBy !== null, problems)
  else if (isReadable && hasEnded(state)) problems.push({ path: MANIFEST_PATH, problem: 'is missing' })
  return shards
}

/** Why a manifest can't be taken for one that the key's owner signed; null: it can. */
async function signatureFault(
  store: Store,
  manifest: Uint8Array | null,
  signedBy: KeyObject,
): Promise<string | null> {
  const signature = await store.read(SIGNATURE_PATH)
  if (signature === null) return 'is missing: the manifest is not signed'
  const { byteLength } = signature
  if (byteLength !== SIGNATURE_BYTES) {
    return `is no signature: it holds ${byteLength} bytes instead of ${SIGNATURE_BYTES}`
  }
  if (manifest === null) return 'is there without the manifest that it is of'
  if (fitsManifest(signature, manifest, signedBy)) return null
  return 'does not fit: the manifest was changed after it was signed, or it was signed under another key'
}

function hasEnded(state: CheckpointState): boolean {
  return state.runs.some(({ finished_at }) => finished_at !== null)
}

/**
 * A manifest may be older than the checkpoint (a run was killed), but must not say anything else. One whose signature is
 * asked for has to list every shard: nobody has signed the others.
 */
function compareManifest(
  listed: readonly ManifestShard[],
  onRecord: readonly ManifestShard[],
  isSigned: boolean,
  problems: Problem[],
): void {
  const byPath = new Map(onRecord.map((shard) => [shard.path, shard]))
  for (const { path, sha256, rows, bytes } of listed) {
    const shard = byPath.get(path)
    if (shard === undefined) problems.push({ path, problem: 'is in the manifest but not in the checkpoint' })
    else if (shard.sha256 !== sha256 || shard.rows !== rows || shard.bytes !== bytes) {
      problems.push({ path, problem: 'manifest and checkpoint say different things about it' })
    }
    byPath.delete(path)
  }
  if (!isSigned) return
  for (const path of byPath.keys()) problems.push({ path, problem: 'is not in the manifest that was signed' })
}

async function reading<T>(read: () => Promise<T>, path: string, problems: Problem[]): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (!isExportError(error)) throw error
    problems.push({ path, problem: error.what })
    return null
  }
}

async function verifyShard(store: Store, pipeline: Pipeline, shard: ManifestShard): Promise<string | null> {
  const size = await store.size(shard.path)
  if (size === null) return 'is missing'
  if (size !== shard.bytes) return `holds ${size} bytes instead of ${shard.bytes}`
  const hash = createHash('sha256')
  for await (const chunk of store.stream(shard.path)) hash.update(chunk)
  if (hash.digest('hex') !== shard.sha256) return 'its SHA-256 is not the one on record'
  try {
    return await verifyContent(store, pipeline, shard)
  } catch (error) {
    if (!isExportError(error)) throw error
    return error.what
  }
}

async function verifyContent(store: Store, pipeline: Pipeline, shard: ManifestShard): Promise<string | null> {
  const { extract, transform, load } = pipeline
  const columns = columnsNamed(extract.resource, extract.include, transform.columns)
  const checks = maskingChecks(pipeline)
  const unmasked = new Map<string, number>()
  // Loaded here, as it would only lengthen the start of every other command.
  const { inspectShard } = await import('../load/inspect/index.ts')
  const found = await inspectShard(readerOf(store, shard), load.format, {
    columns,
    watch: [...checks.keys()],
    onText: (column, value) => {
      if (checks.get(column)?.(value) !== true) {
        unmasked.set(column, (unmasked.get(column) ?? 0) + 1)
      }
    },
  })
  if (found.rows !== shard.rows) return `holds ${found.rows} rows instead of ${shard.rows}`
  const namesOnly = load.format.kind === 'csv'
  const expected = columns.map((column) => ({ ...column, type: typeName(column.type, load.format) }))
  const [is, wanted] = [columnList(found.columns, namesOnly), columnList(expected, namesOnly)]
  if (is !== wanted) return `its columns are (${is}) instead of (${wanted})`
  for (const [column, times] of unmasked) return `${times} values of ${column} are not masked`
  return null
}

/** As a list for messages; CSV has names only. */
function columnList(columns: InspectedShard['columns'], names: boolean): string {
  return columns
    .map(({ name, type, nullable }) => (names ? name : `${name} ${type}${nullable ? '' : ' not null'}`))
    .join(', ')
}

type Check = (value: string | null) => boolean

/** Whether values of a column can be what the policies make of them, by column; reports hold no secrets. */
function maskingChecks({ extract, transform }: Pipeline): ReadonlyMap<string, Check> {
  const checks = new Map<string, Check>()
  if (extract.resource === 'reports') return checks
  const watch = (column: string, check: Check): void => {
    if (transform.columns.includes(column)) checks.set(column, check)
  }
  watch('hash', (value) => looksMasked(transform.secret, value))
  if (transform.identity !== 'keep') {
    watch('identity_name', (value) => looksMasked(transform.identity, value))
    const hidden = hiddenValues(extract.queries, transform.identity)
    if (hidden.size > 0) watch('query_value', (value) => value === null || !hidden.has(value))
  }
  return checks
}

/** What may not stand in `query_value`, less what another query that hides nothing has there. */
function hiddenValues(queries: readonly Query[], identity: IdentityPolicy): ReadonlySet<string> {
  const hides = (query: Query): boolean => hidesIdentity(query, identity)
  const hidden = new Set(queries.filter(hides).map(queryLabel))
  for (const query of queries) if (!hides(query)) hidden.delete(queryLabel(query))
  return hidden
}

function readerOf(store: Store, { path, bytes }: ManifestShard): ShardReader {
  return {
    size: bytes,
    slice: (start, end) => store.readRange(path, start, end),
    stream: () => store.stream(path),
  }
}

/** Every file below a folder that is named like a shard. */
async function* shardFiles(store: Store, folder: string): AsyncGenerator<string> {
  for (const name of await store.list(folder)) {
    const path = `${folder}/${name}`
    if (partOf(name) !== null) yield path
    else if (/^(?:query|import_window)=/.test(name)) yield* shardFiles(store, path)
  }
}
