import { createHash, type KeyObject } from 'node:crypto'
import {
  columnsOf,
  ExportError,
  hidesIdentity,
  type IdentityPolicy,
  isExportError,
  numberOf,
  type Pipeline,
  type Query,
  queryLabel,
  type Store,
  typeName,
} from '../../core/index.ts'
import type { InspectedShard, ShardReader } from '../../load/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  fitsManifest,
  MANIFEST_PATH,
  type Manifest,
  type ManifestShard,
  manifestShards,
  parseManifest,
  readCheckpoint,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  settingsDigest,
  splitPath,
} from '../../state/index.ts'
import { looksMasked } from '../../transform/index.ts'
import { asInFile, type Completeness, completenessOf } from '../data-set/completeness.ts'
import { namingLocations, openDataSet } from '../data-set/open-data-set.ts'
import { namePipeline } from '../queries.ts'
import { repeatedIds } from './repeated-ids.ts'
import { filesOfRows } from './unlisted-files.ts'

/** Two statements: whether the files match the checkpoint and manifest (`ok`), and whether all that is planned is exported. */
export type Verification = Completeness & {
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
  | 'another_data_set'
  | 'checkpoint'
  | 'nothing_exported'

type Finding = Omit<Problem, 'path'>

export type VerifyOptions = {
  /** Called before each shard. */
  readonly onShard?: (path: string) => void
  /** A public Ed25519 key that the manifest has to be signed under; null: its signature is not looked at. */
  readonly signedBy?: KeyObject | null
  /** With a signature: the last run that the manifest knows has to have ended by then or later, epoch ms; null: whenever. */
  readonly notBeforeMs?: number | null
  /** Where queries are named by digests; null: what is complete is told without figures then. */
  readonly maskKey?: Uint8Array | null
}

/**
 * Reads every shard again and compares it with checkpoint and manifest: there, as long as it should be, the same
 * SHA-256, rows and columns, nothing unmasked, no id twice for one query, and no file beside them. Changes nothing and
 * sends no requests.
 * @throws ExportError `config` when nothing was exported yet
 */
export function verifyDataSet(pipeline: Pipeline, options: VerifyOptions = {}): Promise<Verification> {
  return namingLocations(pipeline, () => verify(pipeline, options))
}

async function verify(pipeline: Pipeline, options: VerifyOptions): Promise<Verification> {
  const { onShard, maskKey = null } = options
  const store = openDataSet(pipeline)
  const problems: Problem[] = []
  // Listed first: a run that is at work commits a shard before it publishes it.
  const files: string[] = []
  for await (const path of filesOfRows(pipeline, store)) files.push(path)
  const { state, shards: expected } = await onRecord(store, pipeline, options, problems)
  if (
    problems.every(({ cause }) => cause === 'nothing_exported') &&
    problems.length > 0 &&
    files.length === 0
  )
    throw nothingExported(pipeline)
  let rows = 0
  const sound: ManifestShard[] = []
  const ids = await repeatedIds(pipeline, expected)
  for (const shard of expected) {
    onShard?.(shard.path)
    const finding = await verifyShard(store, pipeline, shard, (reader) => ids?.take(shard, reader, 0))
    if (finding !== null) problems.push({ path: shard.path, ...finding })
    else {
      rows += shard.rows
      sound.push(shard)
    }
  }
  for (let round = 1; ids !== null && round < ids.rounds; round++) {
    for (const shard of sound) await ids.take(shard, await readerOf(store, pipeline, shard), round)
  }
  for (const [path, times] of ids?.found ?? []) {
    const problem = `${times} of its rows ${times === 1 ? 'has' : 'have'} an id that their query has had before`
    problems.push({ path, problem, cause: 'repeated_ids' })
  }
  const known = new Set(expected.map(({ path }) => path))
  for (const path of files) {
    if (known.has(path)) continue
    const problem = 'is not on record: a reader would take its rows for data'
    problems.push({ path, problem, cause: 'not_on_record' })
  }
  const completeness = await completenessOf(pipeline, maskKey, store, state)
  return { ok: problems.length === 0, ...completeness, shards: expected.length, rows, problems }
}

function nothingExported({ file, load }: Pipeline): ExportError {
  const next = `Run \`spillway run ${file}\` first.`
  return new ExportError('config', 'Nothing was exported yet', load.pathAsGiven, next)
}

type OnRecord = { readonly state: CheckpointState | null; readonly shards: readonly ManifestShard[] }

/** What the checkpoint vouches for; where the data set was moved without it, what the manifest lists. */
async function onRecord(
  store: Store,
  pipeline: Pipeline,
  { signedBy = null, notBeforeMs = null, maskKey = null }: VerifyOptions,
  problems: Problem[],
): Promise<OnRecord> {
  const state = await reading(() => readCheckpoint(store), CHECKPOINT_PATH, 'checkpoint', problems)
  // Read once, so that what is signed is what is listed.
  const bytes = await reading(() => store.read(MANIFEST_PATH), MANIFEST_PATH, 'manifest', problems)
  const manifest =
    bytes === null
      ? null
      : await reading(async () => parseManifest(bytes), MANIFEST_PATH, 'manifest', problems)
  const isReadable = problems.length === 0
  if (state === null && manifest === null && isReadable) {
    const problem = 'is not there: nothing was exported yet'
    problems.push({ path: MANIFEST_PATH, problem, cause: 'nothing_exported' })
    return { state, shards: [] }
  }
  if (signedBy !== null) {
    const fault = await signatureFault(store, bytes, signedBy)
    if (fault !== null) problems.push({ path: SIGNATURE_PATH, problem: fault, cause: 'signature' })
  }
  for (const problem of foreignParts(pipeline, manifest, state)) {
    problems.push({ path: MANIFEST_PATH, problem, cause: 'another_data_set' })
  }
  if (signedBy !== null && manifest !== null) {
    const faults = [
      ...otherSettings(pipeline, manifest),
      strangeQueries(pipeline, manifest, maskKey),
      tooOld(manifest, notBeforeMs),
    ]
    for (const problem of faults) {
      if (problem !== null) problems.push({ path: MANIFEST_PATH, problem, cause: 'signature' })
    }
  }
  if (state === null) return { state, shards: manifest?.shards ?? [] }
  const shards = [...manifestShards(state)]
  if (manifest !== null) compareManifest(manifest.shards, shards, signedBy !== null, problems)
  else if (isReadable && hasEnded(state))
    problems.push({ path: MANIFEST_PATH, problem: 'is missing', cause: 'manifest' })
  return { state, shards }
}

/** What shows that a manifest or a checkpoint belongs to another data set than the pipeline's, or to each other's. */
function* foreignParts(
  { name }: Pipeline,
  manifest: Manifest | null,
  state: CheckpointState | null,
): Generator<string> {
  const owner = manifest?.pipeline ?? state?.header.pipeline ?? name
  if (owner !== name) yield `is of the pipeline "${owner}", not of "${name}"`
  if (manifest === null || state === null) return
  if (manifest.pipeline !== state.header.pipeline) {
    yield `is of the pipeline "${manifest.pipeline}", and the checkpoint of "${state.header.pipeline}"`
  }
  if (manifest.data_set_id !== state.header.data_set_id) {
    yield 'has another data_set_id than the checkpoint: they are not of one data set'
  }
  if (manifest.config_digest !== settingsDigest(state.header.settings)) {
    yield 'has another config_digest than the checkpoint: they are not of one data set'
  }
}

/** What a signed manifest says of its data set, and the pipeline says otherwise. */
function* otherSettings({ extract, transform, load }: Pipeline, manifest: Manifest): Generator<string> {
  const { resource, format, masking } = manifest
  if (resource !== extract.resource) yield `lists ${resource}, and the pipeline asks for ${extract.resource}`
  else if (format !== load.format.kind) yield `lists ${format}, and the pipeline exports ${load.format.kind}`
  for (const policy of ['secret', 'identity'] as const) {
    if (masking[policy] === transform[policy]) continue
    yield `says that transform.${policy} was ${masking[policy]}, and the pipeline says ${transform[policy]}`
  }
}

/** Queries that the signed manifest lists shards of, and that neither the pipeline requests nor the manifest calls retired. */
function strangeQueries(given: Pipeline, manifest: Manifest, maskKey: Uint8Array | null): string | null {
  if (manifest.resource === 'reports') return null
  try {
    const { extract } = asInFile(namePipeline(given, maskKey))
    const known = new Set([
      ...extract.queries.map(({ name }) => name),
      ...manifest.retired.map(({ query }) => query),
    ])
    const strange = new Set<string>()
    for (const { partitions } of manifest.shards) {
      for (const key of partitions) if (!known.has(splitPath(key)[0])) strange.add(splitPath(key)[0])
    }
    if (strange.size === 0) return null
    return `lists rows of ${numberOf(strange.size, 'query', 'queries')} that the pipeline does not ask for: it may be another data set's`
  } catch (error) {
    // Names that take a mask key can't be told without it.
    if (isExportError(error, 'config')) return null
    throw error
  }
}

/** A signature says nothing about when it was made; the runs that are signed do. */
function tooOld({ runs }: Manifest, notBeforeMs: number | null): string | null {
  if (notBeforeMs === null) return null
  const run = runs.at(-1)
  const ended = run === undefined ? null : (run.finished_at ?? run.started_at)
  if (ended !== null && Date.parse(ended) >= notBeforeMs) return null
  const when = ended === null ? 'knows of no run' : `is older than asked for: its last run ended ${ended}`
  return `${when}, not at ${new Date(notBeforeMs).toISOString()} or later`
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
 * requested has to list every shard: nobody has signed the others.
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

/** @param onSound gets what it read, where nothing is off */
async function verifyShard(
  store: Store,
  pipeline: Pipeline,
  shard: ManifestShard,
  onSound: (reader: ShardReader) => Promise<void> | undefined,
): Promise<Finding | null> {
  const size = await store.size(shard.path)
  if (size === null) return { problem: 'is missing', cause: 'missing' }
  if (size !== shard.bytes) {
    return { problem: `holds ${numberOf(size, 'byte')} instead of ${shard.bytes}`, cause: 'size' }
  }
  const reader = await readerOf(store, pipeline, shard)
  const hash = createHash('sha256')
  for await (const chunk of reader.stream()) hash.update(chunk)
  if (hash.digest('hex') !== shard.sha256) {
    return { problem: 'its SHA-256 is not the one on record', cause: 'checksum' }
  }
  try {
    const finding = await verifyContent(reader, pipeline, shard)
    if (finding === null) await onSound(reader)
    return finding
  } catch (error) {
    if (!isExportError(error)) throw error
    return { problem: error.what, cause: 'unreadable' }
  }
}

async function verifyContent(
  reader: ShardReader,
  pipeline: Pipeline,
  shard: ManifestShard,
): Promise<Finding | null> {
  const { load } = pipeline
  const columns = columnsOf(pipeline)
  const checks = maskingChecks(pipeline)
  const unmasked = new Map<string, number>()
  // Loaded here, as it would only lengthen the start of every other command.
  const { inspectShard } = await import('../../load/inspect/index.ts')
  const found = await inspectShard(reader, load.format, {
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

// Of a shard of 1,000,000 rows not a third.
const MAX_HELD_BYTES = 256 << 20

/** In object storage every piece is a request, so a shard is read whole, unless it is too large to be held. */
async function readerOf(
  store: Store,
  { load }: Pipeline,
  { path, bytes: size }: ManifestShard,
): Promise<ShardReader> {
  if (load.place.kind === 's3' && size <= MAX_HELD_BYTES) {
    const bytes = (await store.read(path)) ?? new Uint8Array()
    return {
      size: bytes.byteLength,
      slice: async (start, end) => bytes.subarray(start, end),
      async *stream() {
        yield bytes
      },
    }
  }
  return {
    size,
    slice: (start, end) => store.readRange(path, start, end),
    stream: () => store.stream(path),
  }
}
