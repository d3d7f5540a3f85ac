import { createHash, type KeyObject } from 'node:crypto'
import {
  columnsNamed,
  hidesIdentity,
  type IdentityPolicy,
  isExportError,
  numberOf,
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

/** `cause`: what many shards may have in common; the words of `problem` are about this one. */
export type Problem = { readonly path: string; readonly problem: string; readonly cause: ProblemCause }

export type ProblemCause =
  | 'missing'
  | 'size'
  | 'checksum'
  | 'unreadable'
  | 'rows'
  | 'columns'
  | 'unmasked'
  | 'repeated_ids'
  | 'not_on_record'
  | 'manifest'
  | 'signature'
  | 'checkpoint'
  | 'nothing_exported'

type Finding = Omit<Problem, 'path'>

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
    const finding = await verifyShard(store, pipeline, shard)
    if (finding !== null) problems.push({ path: shard.path, ...finding })
    else {
      rows += shard.rows
      sound.push(shard)
    }
  }
  for (const [path, times] of (await repeatedIds(pipeline, sound, (shard) => readerOf(store, shard))) ?? []) {
    const problem = `${times} of its rows ${times === 1 ? 'has' : 'have'} an id that their query has had before`
    problems.push({ path, problem, cause: 'repeated_ids' })
  }
  const known = new Set(expected.map(({ path }) => path))
  for (const path of files) {
    if (known.has(path)) continue
    const problem = 'is not on record: a reader would take its rows for data'
    problems.push({ path, problem, cause: 'not_on_record' })
  }
  return { ok: problems.length === 0, shards: expected.length, rows, problems }
}

/** What the checkpoint vouches for; where the data set was moved without it, what the manifest lists. */
async function shardsOnRecord(
  store: Store,
  signedBy: KeyObject | null,
  problems: Problem[],
): Promise<readonly ManifestShard[]> {
  const state = await reading(() => readCheckpoint(store), CHECKPOINT_PATH, 'checkpoint', problems)
  // Read once, so that what is signed is what is listed.
  const bytes = await reading(() => store.read(MANIFEST_PATH), MANIFEST_PATH, 'manifest', problems)
  const manifest =
    bytes === null
      ? null
      : await reading(async () => parseManifest(bytes), MANIFEST_PATH, 'manifest', problems)
  const isReadable = problems.length === 0
  if (signedBy !== null) {
    const fault = await signatureFault(store, bytes, signedBy)
    if (fault !== null) problems.push({ path: SIGNATURE_PATH, problem: fault, cause: 'signature' })
  }
  if (state === null) {
    if (manifest === null && isReadable) {
      const problem = 'is not there: nothing was exported yet'
      problems.push({ path: MANIFEST_PATH, problem, cause: 'nothing_exported' })
    }
    return manifest?.shards ?? []
  }
  const shards = [...manifestShards(state)]
  if (manifest !== null) compareManifest(manifest.shards, shards, signedBy !== null, problems)
  else if (isReadable && hasEnded(state))
    problems.push({ path: MANIFEST_PATH, problem: 'is missing', cause: 'manifest' })
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
  const tell = (path: string, problem: string): void => {
    problems.push({ path, problem, cause: 'manifest' })
  }
  for (const { path, sha256, rows, bytes } of listed) {
    const shard = byPath.get(path)
    if (shard === undefined) tell(path, 'is in the manifest but not in the checkpoint')
    else if (shard.sha256 !== sha256 || shard.rows !== rows || shard.bytes !== bytes) {
      tell(path, 'manifest and checkpoint say different things about it')
    }
    byPath.delete(path)
  }
  if (!isSigned) return
  for (const path of byPath.keys()) {
    problems.push({ path, problem: 'is not in the manifest that was signed', cause: 'signature' })
  }
}

async function reading<T>(
  read: () => Promise<T>,
  path: string,
  cause: ProblemCause,
  problems: Problem[],
): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    if (!isExportError(error)) throw error
    problems.push({ path, problem: error.what, cause })
    return null
  }
}

async function verifyShard(store: Store, pipeline: Pipeline, shard: ManifestShard): Promise<Finding | null> {
  const size = await store.size(shard.path)
  if (size === null) return { problem: 'is missing', cause: 'missing' }
  if (size !== shard.bytes) {
    return { problem: `holds ${numberOf(size, 'byte')} instead of ${shard.bytes}`, cause: 'size' }
  }
  const hash = createHash('sha256')
  for await (const chunk of store.stream(shard.path)) hash.update(chunk)
  if (hash.digest('hex') !== shard.sha256) {
    return { problem: 'its SHA-256 is not the one on record', cause: 'checksum' }
  }
  try {
    return await verifyContent(store, pipeline, shard)
  } catch (error) {
    if (!isExportError(error)) throw error
    return { problem: error.what, cause: 'unreadable' }
  }
}

async function verifyContent(
  store: Store,
  pipeline: Pipeline,
  shard: ManifestShard,
): Promise<Finding | null> {
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
  if (found.rows !== shard.rows) {
    return { problem: `holds ${numberOf(found.rows, 'row')} instead of ${shard.rows}`, cause: 'rows' }
  }
  const namesOnly = load.format.kind === 'csv'
  const expected = columns.map((column) => ({ ...column, type: typeName(column.type, load.format) }))
  const difference = differenceOf(typesByName(found.columns, namesOnly), typesByName(expected, namesOnly))
  if (difference !== null) return { problem: `its columns differ: ${difference}`, cause: 'columns' }
  for (const [column, times] of unmasked) {
    return {
      problem: `${numberOf(times, 'value')} of ${column} ${times === 1 ? 'is' : 'are'} not masked`,
      cause: 'unmasked',
    }
  }
  return null
}

/** In the order of the columns; CSV has names only. */
function typesByName(columns: InspectedShard['columns'], names: boolean): ReadonlyMap<string, string> {
  const types = columns.map(
    ({ name, type, nullable }) => [name, names ? '' : `${type}${nullable ? '' : ' not null'}`] as const,
  )
  return new Map(types)
}

/** What is other than it should be, in words; null: nothing. */
function differenceOf(is: ReadonlyMap<string, string>, wanted: ReadonlyMap<string, string>): string | null {
  const lacking = [...wanted.keys()].filter((name) => !is.has(name))
  const besides = [...is.keys()].filter((name) => !wanted.has(name))
  const others = [...is].filter(([name, type]) => wanted.has(name) && wanted.get(name) !== type)
  const parts = [
    ...(lacking.length === 0 ? [] : [`without ${lacking.join(', ')}`]),
    ...(besides.length === 0 ? [] : [`with ${besides.join(', ')}`]),
    ...others.map(([name, type]) => `${name} is ${type} instead of ${wanted.get(name)}`),
  ]
  if (parts.length > 0) return parts.join('; ')
  return [...is.keys()].join() === [...wanted.keys()].join() ? null : 'they stand in another order'
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
