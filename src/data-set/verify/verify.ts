import type { KeyObject } from 'node:crypto'
import {
  isExportError,
  nullIf,
  type Pipeline,
  ROW_FOLDERS,
  type Store,
  SUMMARY_PAGE_PATH,
} from '../../core/index.ts'
import { partOf } from '../../load/index.ts'
import { tableProblems } from '../../open-tables/index.ts'
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
} from '../../state/index.ts'
import { type Completeness, completenessOf, withNames } from '../completeness.ts'
import { mismatches } from '../files.ts'
import { namingLocations, nothingExported, openDataSet } from '../open-data-set.ts'
import { otherScope, whyStale } from '../scope.ts'
import { isPageOfManifest } from '../summary-page/write-summary-page.ts'
import { repeatedIds } from './repeated-ids.ts'
import { rowsThatDiffer } from './rows-that-differ.ts'
import { type Problem, type ProblemCause, readerOf, verifyShard } from './verify-shard.ts'

/** Whether the files match checkpoint and manifest (`ok`), and whether the whole plan is exported (`complete`). */
export type Verification = Completeness & {
  readonly ok: boolean
  readonly shards: number
  readonly rows: number
  /** Rows with an id that an earlier row of their query has: the service repeated them too late to be recognized. */
  readonly repeated_ids: number
  /** Items that are not among the rows by intent: with the rows they are everything that the service returned. */
  readonly quarantined: number
  readonly forgotten: number
  readonly problems: readonly Problem[]
  /** Hidden files among the shards, which no reader takes: no problem, as those of a file manager. */
  readonly hidden: readonly string[]
}

type VerifyOptions = {
  /** Called before each shard. */
  readonly onShard?: (path: string) => void
  /** A public Ed25519 key under which the manifest has to be signed; null: its signature is not checked. */
  readonly signedBy?: KeyObject | null
  /** With a signature: the last run in the manifest has to have ended then or later, epoch ms; null: any time. */
  readonly notBeforeMs?: number | null
  /** With a signature: how the pipeline file differs from the data set. */
  readonly differences?: readonly string[]
  /** Spillway's own; null: the summary page is not looked at. */
  readonly version?: string | null
}

/**
 * Reads every shard and compares it with checkpoint and manifest: existence, length, SHA-256, rows, columns, masking,
 * repeated ids of a query, rows by partition, and unknown files. Changes nothing and sends no requests.
 * @throws ExportError `config` when nothing was exported yet
 */
export function verifyDataSet(pipeline: Pipeline, options: VerifyOptions = {}): Promise<Verification> {
  return namingLocations(pipeline, () => verify(pipeline, options))
}

async function verify(pipeline: Pipeline, options: VerifyOptions): Promise<Verification> {
  const { onShard, version = null } = options
  const store = openDataSet(pipeline)
  const problems: Problem[] = []
  // Listed first: a run commits a shard before it publishes it.
  const files: string[] = []
  const hidden: string[] = []
  for await (const path of filesOfRows(pipeline, store)) {
    const isHidden = /(?:^|\/)\.[^/]*$/.test(path) && !LIKE_A_SHARD.test(path)
    if (isHidden) hidden.push(path)
    else files.push(path)
  }
  const { state, manifest, bytes, shards: expected } = await onRecord(store, pipeline, options, problems)
  if (
    problems.every(({ cause }) => cause === 'nothing_exported') &&
    problems.length > 0 &&
    files.length === 0
  )
    throw nothingExported(pipeline)
  // Of a manifest that is wrong itself it says nothing more.
  const isLookedAt = manifest !== null && version !== null && problems.length === 0
  if (isLookedAt && (await isPageOfManifest(store, bytes!, version)) === false) {
    const problem = 'is not what the manifest gives; `spillway summary` writes it anew'
    problems.push({ path: SUMMARY_PAGE_PATH, problem, cause: 'summary_page' })
  }
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
    for (const shard of sound) await ids.take(shard, readerOf(store, pipeline, shard), round)
  }
  const known = new Set(expected.map(({ path }) => path))
  for (const path of files) {
    if (known.has(path)) continue
    const problem = 'is not on record: a reader would take its rows for data'
    problems.push({ path, problem, cause: 'not_on_record' })
  }
  if (state !== null) for (const problem of rowsThatDiffer(state)) problems.push(problem)
  if (manifest !== null) {
    const found = await tableProblems(
      store,
      { ...pipeline.load.tables, dataSetId: manifest.data_set_id },
      manifest.shards,
    )
    for (const problem of found) problems.push({ ...problem, cause: 'table' })
  }
  const completeness = await completenessOf(pipeline, store, state)
  const { quarantined, forgotten } = completeness.left_out
  const counts = { shards: expected.length, rows, repeated_ids: ids?.found ?? 0, quarantined, forgotten }
  return { ok: problems.length === 0, ...completeness, ...counts, problems, hidden }
}

/** The shards of the checkpoint, or of the manifest if the data set was moved without its checkpoint. */
async function onRecord(
  store: Store,
  pipeline: Pipeline,
  { signedBy = null, notBeforeMs = null, differences = [] }: VerifyOptions,
  problems: Problem[],
) {
  const state = await reading(() => readCheckpoint(store), CHECKPOINT_PATH, 'checkpoint', problems)
  // Read once, so that the signature is checked over the same bytes.
  const bytes = await reading(() => store.read(MANIFEST_PATH), MANIFEST_PATH, 'manifest', problems)
  const manifest =
    bytes === null
      ? null
      : await reading(async () => parseManifest(bytes), MANIFEST_PATH, 'manifest', problems)
  const isReadable = problems.length === 0
  if (state === null && manifest === null && isReadable) {
    const problem = 'is not there: nothing was exported yet'
    problems.push({ path: MANIFEST_PATH, problem, cause: 'nothing_exported' })
    return { state, manifest, bytes, shards: [] }
  }
  if (signedBy !== null) {
    const fault = await signatureFault(store, bytes, signedBy, manifest)
    if (fault !== null) problems.push({ path: SIGNATURE_PATH, problem: fault, cause: 'signature' })
  }
  for (const problem of foreignParts(manifest, state)) {
    problems.push({ path: MANIFEST_PATH, problem, cause: 'another_data_set' })
  }
  if (signedBy !== null && manifest !== null) {
    // What is signed may be another data set than the file's, or an earlier state of this one.
    const named = withNames(pipeline)
    const scope = named === null ? null : otherScope(manifest.scope, named)
    for (const problem of [...differences, scope, tooOld(manifest, notBeforeMs)]) {
      if (problem !== null) problems.push({ path: MANIFEST_PATH, problem, cause: 'signature' })
    }
  }
  if (state === null) return { state, manifest, bytes, shards: manifest?.shards ?? [] }
  const shards = [...manifestShards(state)]
  if (manifest !== null) {
    // After a crash it may still list shards that were replaced.
    const listed = manifest.shards.filter(({ path }) => !state.invalidated.has(path))
    compareManifest(listed, shards, signedBy !== null, problems)
  }
  if (manifest === null && isReadable && state.runs.some(({ finished_at }) => finished_at !== null))
    problems.push({ path: MANIFEST_PATH, problem: 'is missing', cause: 'manifest' })
  return { state, manifest, bytes, shards }
}

/** Signs that manifest and checkpoint do not belong to each other. */
function* foreignParts(manifest: Manifest | null, state: CheckpointState | null): Generator<string> {
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

/** A signature has no time; the runs in the manifest have. */
function tooOld({ runs }: Manifest, notBeforeMs: number | null): string | null {
  if (notBeforeMs === null) return null
  const run = runs.at(-1)
  const ended = run === undefined ? null : (run.finished_at ?? run.started_at)
  if (ended !== null && Date.parse(ended) >= notBeforeMs) return null
  const when = ended === null ? 'has no run' : `is older than required: its last run ended ${ended}`
  return `${when}, not at ${new Date(notBeforeMs).toISOString()} or later`
}

/** Why a manifest cannot be taken for one that the key's owner signed; null: it can. */
async function signatureFault(
  store: Store,
  manifest: Uint8Array | null,
  signedBy: KeyObject,
  described: Manifest | null,
): Promise<string | null> {
  const signature = await store.read(SIGNATURE_PATH)
  if (signature === null) return `is missing: the manifest is not signed${whyStale(described)}`
  const { byteLength } = signature
  if (byteLength !== SIGNATURE_BYTES) {
    return `is no signature: it holds ${byteLength} bytes instead of ${SIGNATURE_BYTES}`
  }
  if (manifest === null) return 'is there without the manifest that it is of'
  if (fitsManifest(signature, manifest, signedBy)) return null
  return `does not fit: the manifest was changed after it was signed, or it was signed under another key${whyStale(described)}`
}

/**
 * A manifest may be older than the checkpoint (a run was killed), but must not contradict it. If its signature is
 * checked, it has to list every shard: others are not signed.
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
      tell(path, 'differs between manifest and checkpoint')
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

/** Names that patterns of readers end with. */
const LIKE_A_SHARD = /\.(?:parquet|csv|csv\.\w+)$/i

/**
 * Every file in the folders of shards, whatever its name: patterns match all names that end like a shard's, and some
 * engines read every file. Beside them, every file that ends like a shard: a pattern may begin at the data set. Names
 * that begin with `_` are skipped there, as readers do.
 */
async function* filesOfRows(pipeline: Pipeline, store: Store): AsyncGenerator<string> {
  for (const folder of ROW_FOLDERS)
    yield* filesBelow(`${folder}/`, await store.list(folder), /./, pipeline, store)
  const others = (await store.list('')).filter((name) => !name.startsWith('_') && !ROW_FOLDERS.includes(name))
  yield* filesBelow('', others, LIKE_A_SHARD, pipeline, store)
}

/** @param folder with its slash @param wanted names of files that count */
async function* filesBelow(
  folder: string,
  names: readonly string[],
  wanted: RegExp,
  pipeline: Pipeline,
  store: Store,
): AsyncGenerator<string> {
  for (const name of names) {
    const path = `${folder}${name}`
    // No shard is checked twice: there may be half a million.
    // null: for example a symbolic link, which readers follow.
    const below = partOf(name) === null ? await store.list(path).catch(nullIf('storage')) : []
    if (below !== null && below.length > 0) yield* filesBelow(`${path}/`, below, wanted, pipeline, store)
    else if (!wanted.test(name)) continue
    else if (below === null) yield path
    else if (partOf(name) !== null || !(await isEmptyFolder(path, pipeline, store))) yield path
  }
}

async function isEmptyFolder(path: string, { load }: Pipeline, store: Store): Promise<boolean> {
  return load.location.kind === 'disk' && (await mismatches(store, [{ path, names: 0 }])).length === 0
}
