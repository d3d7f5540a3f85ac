import type { KeyObject } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isExportError, type Pipeline, ROW_FOLDERS, type Store } from '../../../core/index.ts'
import { tableProblems } from '../../../open-tables/index.ts'
import { withSchema } from '../../../rows/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  fitsManifest,
  MANIFEST_PATH,
  type Manifest,
  PathMap,
  parseManifest,
  readCheckpoint,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  schemaFromJson,
  stateOfManifest,
  type Verdict,
} from '../../../state/index.ts'
import type { DataSet } from '../../data-set.ts'
import { CLEARING_PATH, isClearing } from '../../open/find-state.ts'
import { filesAt, LIKE_A_SHARD, rowFiles } from '../../open/look.ts'
import { nothingExported } from '../../open-store.ts'
import { type LeftOut, leftOutOf } from '../../plan/left-out.ts'
import { whyStale } from '../../plan/scope.ts'
import { readVerdict } from '../../plan/verdict.ts'
import { type Problem, type ProblemCause, RepeatedIds, verifyShard } from './verify-shard.ts'

/** Whether the files are those of the manifest (`ok`), and whether all that the given file plans is exported (`complete`). */
export type Verification = Pick<Verdict, 'complete' | 'partitions' | 'covers'> & {
  readonly verdict: Verdict
  readonly left_out: LeftOut
  readonly ok: boolean
  readonly shards: number
  readonly rows: number
  /** Items that are not among the rows by intent: with the rows they are everything that the service returned. */
  readonly quarantined: number
  readonly forgotten: number
  /** Rows whose id an earlier row of their query has, in folders of one query. */
  readonly repeated_ids: number
  readonly problems: readonly Problem[]
  /** Keys of the partitions that `run --redo` has to export again; where there are problems and none, a plain run does. */
  readonly repair: readonly string[]
  /** Whether a command was stopped before it had finished, or is at work. Any command that changes the data set finishes it. */
  readonly unfinished: boolean
}

type VerifyOptions = {
  readonly onShard?: (path: string) => void
  /** A public Ed25519 key under which the manifest has to be signed; null: its signature is not checked. */
  readonly signedBy?: KeyObject | null
  /** With a signature: the last run in the manifest has to have ended then or later, epoch ms; null: any time. */
  readonly notBeforeMs?: number | null
}

/** Changes nothing, and works beside other commands. @throws ExportError `config` when nothing is exported */
export function verifyDataSet(dataSet: DataSet, options: VerifyOptions = {}): Promise<Verification> {
  const read = (bytes: Uint8Array | null) => verify(dataSet, bytes, options)
  return dataSet.steadily(read, ({ ok }) => !ok)
}

async function verify(
  dataSet: DataSet,
  bytes: Uint8Array | null,
  { onShard, signedBy = null, notBeforeMs = null }: VerifyOptions,
): Promise<Verification> {
  const { pipeline, planned, store } = dataSet
  const problems: Problem[] = []
  const manifest =
    bytes === null
      ? null
      : await reading(async () => parseManifest(bytes), MANIFEST_PATH, 'manifest', problems)
  // Listed before the checkpoint is read: a run commits a shard before it publishes it.
  const files = await filesOf(store)
  const unfinished = await readUnfinished(store, manifest, problems)
  if (bytes === null && !(unfinished.isCut && unfinished.state === null)) {
    const isBegun = unfinished.state !== null
    if (!isBegun && problems.length === 0 && files.length === 0) throw nothingExported(pipeline)
    if (!isBegun || unfinished.state.runs.some(({ finished_at }) => finished_at !== null))
      problems.push({ path: MANIFEST_PATH, problem: 'is missing', cause: 'manifest' })
  }
  if (signedBy !== null)
    problems.push(...(await signatureProblems(dataSet, bytes, manifest, signedBy, notBeforeMs)))
  let rows = 0
  const shards = manifest?.shards ?? []
  const repeated = new RepeatedIds(shards)
  const repair = new Set<string>()
  const schemas = (manifest?.schema_settings ?? []).map(schemaFromJson)
  for (const shard of shards) {
    onShard?.(shard.path)
    const schema = schemas[shard.schema ?? 0]!
    const finding = await verifyShard(store, withSchema(pipeline, schema), shard, repeated.of(shard))
    if (finding === null) rows += shard.rows
    else {
      problems.push({ path: shard.path, ...finding })
      // A run makes the shard of an empty data set anew.
      if (shard.rows > 0) for (const key of shard.partitions) repair.add(key)
    }
  }
  const known = new Set(shards.map(({ path }) => path))
  // With a manifest that cannot be read, nothing is known of them.
  const isListed = bytes === null || manifest !== null
  for (const path of isListed ? files : []) {
    // What is signed is the manifest, so it has to list every shard.
    if (known.has(path) || (signedBy === null && unfinished.isComing(path))) continue
    problems.push({ path, ...(unfinished.isGoing(path) ? UNFINISHED : NOT_LISTED) })
  }
  if (manifest !== null) {
    for (const problem of await problemsOfTables(pipeline, store, manifest, unfinished.state)) {
      const isMended = unfinished.isCut && problem.next === undefined
      problems.push({ ...problem, cause: isMended ? 'unfinished' : 'table' })
    }
  }
  // What is counted is what the manifest lists. A signed one may lack the last runs.
  const listed = manifest === null ? null : stateOfManifest(manifest)
  const state = listed && { ...listed, runs: unfinished.state?.runs ?? listed.runs }
  const verdict = await readVerdict(store, planned, state, { atWork: 'perhaps' })
  const left_out = leftOutOf(planned.transform, state ?? NOTHING)
  const { quarantined, forgotten } = left_out
  const { complete, partitions, covers } = verdict
  return {
    ok: problems.length === 0,
    ...{ complete, partitions, covers, left_out, verdict },
    ...{ shards: shards.length, rows, quarantined, forgotten, repeated_ids: repeated.total, problems },
    repair: [...repair].sort(),
    unfinished: unfinished.isCut,
  }
}

const NOTHING = { prunes: [], runs: [], partitions: new PathMap<never>() }

/** A command at work commits to tables while these are read, and tells its state of it first. */
async function problemsOfTables(
  pipeline: Pipeline,
  store: Store,
  manifest: Manifest,
  state: CheckpointState | null,
): ReturnType<typeof tableProblems> {
  const { data_set_id: dataSetId, shards } = manifest
  const marks = state?.header.data_set_id === dataSetId ? state.tables : null
  const found = await tableProblems(store, { ...pipeline.load.tables, dataSetId }, shards, marks)
  if (found.length === 0 || marks === null) return found
  const again = await readCheckpoint(store)
  const isSame = isDeepStrictEqual(again?.tables, marks)
  return isSame ? found : problemsOfTables(pipeline, store, manifest, again)
}

const NOT_LISTED = {
  problem: 'is not in the manifest: a reader would take its rows for data',
  cause: 'not_on_record',
} as const

const UNFINISHED = {
  problem: 'is about to be added or removed: a reader may find its rows twice',
  cause: 'unfinished',
} as const

/** What the checkpoint of a data set, where it is there, tells of work that its manifest does not show yet. */
type Unfinished = {
  readonly isCut: boolean
  /** Whether a file is a shard beside those of the manifest, and none is replaced by it. */
  isComing(path: string): boolean
  /** Whether a file is a shard that replaces others, or is replaced. */
  isGoing(path: string): boolean
} & { readonly state: CheckpointState | null }

async function readUnfinished(
  store: Store,
  manifest: Manifest | null,
  problems: Problem[],
): Promise<Unfinished> {
  if (await isClearing(store)) {
    const problem = 'says that the data set is being removed (`run --fresh`)'
    problems.push({ path: CLEARING_PATH, problem, cause: 'unfinished' })
    return { state: null, isCut: true, isComing: () => false, isGoing: () => true }
  }
  const state = await reading(() => readCheckpoint(store), CHECKPOINT_PATH, 'checkpoint', problems)
  if (state === null || (manifest !== null && manifest.data_set_id !== state.header.data_set_id))
    return { state, isCut: false, isComing: () => false, isGoing: () => false }
  const [own, listed] = [new Map<string, string>(), new Map<string, string>()]
  for (const { path, sha256 } of state.shards) own.set(path, sha256)
  for (const { path, sha256 } of manifest?.shards ?? []) listed.set(path, sha256)
  const isSame = own.size === listed.size && [...own].every(([path, sha256]) => listed.get(path) === sha256)
  return {
    state,
    isCut: !state.isSettled || !isSame,
    isComing: (path) => state.isSettled && own.has(path),
    isGoing: (path) => own.has(path) || state.invalidated.has(path),
  }
}

/** What is signed may be another data set than the file's, or an earlier state of this one. */
async function signatureProblems(
  { store, differences }: DataSet,
  bytes: Uint8Array | null,
  manifest: Manifest | null,
  signedBy: KeyObject,
  notBeforeMs: number | null,
): Promise<readonly Problem[]> {
  const fault = await signatureFault(store, bytes, signedBy, manifest)
  const others = manifest === null ? [] : [...differences, tooOld(manifest, notBeforeMs)]
  return [[SIGNATURE_PATH, fault] as const, ...others.map((each) => [MANIFEST_PATH, each] as const)].flatMap(
    ([path, problem]) => (problem === null ? [] : { path, problem, cause: 'signature' as const }),
  )
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

/** What readers would take: in folders of rows any file; beside them what ends like a shard, for patterns begin there. */
async function filesOf(store: Store): Promise<readonly string[]> {
  const files: string[] = []
  for (const name of await store.list('')) {
    if (ROW_FOLDERS.includes(name)) for await (const path of rowFiles(store, name)) files.push(path)
    else if (!/^[._]/.test(name))
      for await (const path of filesAt(store, name)) if (LIKE_A_SHARD.test(path)) files.push(path)
  }
  return files
}
