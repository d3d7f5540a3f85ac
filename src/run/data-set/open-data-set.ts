import { join } from 'node:path'
import {
  type Clock,
  type DataSetLocation,
  ExportError,
  isExportError,
  type NamedPipeline,
  type Pipeline,
  type Store,
} from '../../core/index.ts'
import { diskStore, requireWritable } from '../../disk/index.ts'
import { s3Store, splitStore } from '../../s3/index.ts'
import {
  type CheckpointState,
  checkMaskKey,
  type Hold,
  MANIFEST_PATH,
  type Manifest,
  readCheckpoint,
  readManifest,
  takeLock,
} from '../../state/index.ts'
import { namePipeline } from '../queries.ts'
import { growingFiles } from './files.ts'

/** Where a pipeline writes to. */
export function openDataSet({ load }: Pipeline): Store {
  const { place: location, fileMode, dirMode } = load
  if (location.kind === 'disk') return diskStore({ root: location.root, fileMode, dirMode })
  const { stateRoot } = location
  if (stateRoot === null) return s3Store(location)
  return splitStore(location, diskStore({ root: stateRoot, fileMode, dirMode }), stateRoot)
}

/** @throws ExportError as the first write there would, as far as that can be known without one */
export async function requireReachable({ load: { place: location } }: Pipeline): Promise<void> {
  await requireFolder(location)
  if (location.kind === 's3') await s3Store(location).list('')
}

/** @throws ExportError `config` when nothing can be written where a data set, or its state, is to lie */
export async function requireFolder(location: DataSetLocation): Promise<void> {
  const root = location.kind === 'disk' ? location.root : location.stateRoot
  if (root === null) return
  await requireWritable(root, location.kind === 'disk' ? '.' : '_state')
  await requireWritable(join(root, '_state'), '_state')
}

/**
 * The checkpoint of a data set, and the pipeline with the names that its queries have in it.
 * @param maskKey where queries are named by digests: under another key they have other names
 * @throws ExportError `damaged` or `config` when the checkpoint can't be read, or the key is not there or another one
 */
export async function readNamed(
  given: Pipeline,
  maskKey: Uint8Array | null,
): Promise<{ pipeline: NamedPipeline; state: CheckpointState | null }> {
  const pipeline = namePipeline(given, maskKey)
  const state = await namingLocations(pipeline, () => readCheckpoint(openDataSet(pipeline)))
  if (state !== null && maskKey !== null) checkMaskKey(state.header.settings, maskKey, pipeline.file)
  return { pipeline, state }
}

/** @param what that takes a manifest @throws ExportError `config` when there is none */
export async function requireManifest(store: Store, pipeline: Pipeline, what: string): Promise<Manifest> {
  const manifest = await readManifest(store)
  if (manifest === null) throw noManifest(pipeline, what)
  return manifest
}

export function noManifest({ file }: Pipeline, what: string): ExportError {
  const said = `There is no manifest, so there is nothing to ${what} yet`
  return new ExportError('config', said, MANIFEST_PATH, runFirst(file))
}

export function nothingExported({ file, load }: Pipeline): ExportError {
  return new ExportError('config', 'Nothing was exported yet', load.pathAsGiven, runFirst(file))
}

function runFirst(file: string): string {
  return `Run the pipeline first: \`spillway run ${file}\`.`
}

/** Written out, not picked from `LockOptions`: the library's declarations would show the whole store. */
export type HoldOptions = {
  readonly clock: Clock
  /** Ends the wait for another run. */
  readonly stop: AbortSignal
  /** Left out: no queue is involved. */
  readonly hold?: Hold | undefined
  /** Left out: false. */
  readonly fresh?: boolean
  readonly warn: (message: string) => void
  /** Says why it waits, and for how many milliseconds at most; left out: `warn` does. */
  readonly onWait?: (message: string, waitMs: number) => void
}

/**
 * Holds a data set against runs, or for one, while something is done to it.
 * @param work `lost` aborts when another run has taken over
 * @throws ExportError `locked` when another one is at work
 */
export async function holdDataSet<T>(
  pipeline: Pipeline,
  { warn, onWait = warn, fresh = false, ...options }: HoldOptions,
  work: (store: Store, lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const waiting = { ...options, warn: onWait, fresh, growing: growingFiles }
  const lock = await takeLock(openDataSet(pipeline), waiting)
  try {
    return await work(lock.store, lock.lost)
  } finally {
    // What was done is on disk, and its result is still reported. A lock file that stays gets no more heartbeats.
    await lock.release().catch((error: unknown) => {
      if (!isExportError(error)) throw error
      warn(
        `the lock could not be given back; the next run waits until it is known to be dead: ${error.message}`,
      )
    })
  }
}

/**
 * Carries out what is about a data set; errors that name a location in it name it below `load.path` as the pipeline file
 * gives that. Inside, paths are relative to the data set, wherever it lies.
 */
export async function namingLocations<T>(pipeline: Pipeline, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw isExportError(error) ? withLocation(pipeline, error) : error
  }
}

/** The same error with its location below `load.path`; as it is when it is about something else. */
export function withLocation({ load }: Pipeline, error: ExportError): ExportError {
  if (!IN_DATA_SET.test(error.where)) return error
  const apart = load.place.kind === 's3' && error.where.startsWith('_state') ? load.place.stateRoot : null
  const root = (apart ?? load.pathAsGiven).replace(/(?<=.)\/+$/, '')
  const location = error.where === '.' ? root : `${root === '/' ? '' : root}/${error.where}`
  return new ExportError(error.kind, error.what, location, error.next, {
    cause: error.cause,
    untilMs: error.untilMs,
  })
}

/** The first part of every path in a data set. Partitions are named `<type>.<value>/…`, addresses begin otherwise. */
const IN_DATA_SET = /^(?:_[\w.]+|credentials|reports)(?:\/|$)|^\.$/

/** Absolute path of a file of the data set, or its address. */
export function pathIn({ load }: Pipeline, path: string): string {
  return load.place.kind === 'disk' ? join(load.place.root, path) : `${load.path}/${path}`
}
