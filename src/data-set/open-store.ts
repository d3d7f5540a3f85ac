import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { azureDriver } from '../azure/index.ts'
import { bucketStore } from '../bucket/index.ts'
import {
  type DataSetLocation,
  ExportError,
  isExportError,
  type LoadSettings,
  locationOf,
  type Pipeline,
  plainError,
  ROW_FOLDERS,
  runCommand,
  type Store,
  SUMMARY_PAGE_PATH,
} from '../core/index.ts'
import { diskStore, probeFolder, requireWritable } from '../disk/index.ts'
import { ORPHANS, QUARANTINE_FOLDER, SEALED_FOLDER } from '../load/index.ts'
import { DELTA_FOLDER, ICEBERG_FOLDER, METADATA_FOLDER } from '../open-tables/index.ts'
import { IN_STORE } from '../pipeline/index.ts'
import { s3Driver } from '../s3/index.ts'
import {
  CHECKPOINT_PATH,
  type Hold,
  LOG_FOLDER,
  type Lock,
  MANIFEST_PATH,
  SIGNATURE_PATH,
  SUPPRESSION_PATH,
  takeLock,
} from '../state/index.ts'
import type { WriteOptions } from './options.ts'
import { SUCCESS_PATH } from './settle/publish.ts'

export function openStore({ load }: Pipeline): Store {
  const { location, fileMode, dirMode } = load
  if (location.kind === 'disk') return diskStore({ root: location.root, fileMode, dirMode })
  return bucketStore(location.kind === 's3' ? s3Driver(location) : azureDriver(location))
}

/** @throws ExportError as the first write there would, as far as that is known without writing */
export async function requireReachable(pipeline: Pipeline): Promise<void> {
  await requireFolder(pipeline.load.location)
  await refuseLinks(openStore(pipeline))
}

/** @throws ExportError `config` when the folder of a data set cannot be written */
export async function requireFolder(location: DataSetLocation): Promise<void> {
  if (location.kind !== 'disk') return
  await requireWritable(location.root, '.')
  await requireWritable(join(location.root, '_state'), '_state')
}

/** Writes a small file, and removes it. @throws ExportError as the first write of a run would */
export async function probe(pipeline: Pipeline): Promise<void> {
  const { location } = pipeline.load
  if (location.kind === 'disk' && !existsSync(join(location.root, '_state')))
    return probeFolder(location.root)
  const id = randomBytes(6).toString('hex')
  const owned = await openStore(pipeline).own(id)
  try {
    await owned.replace(`_state/probe.${id}`, ['probe\n'])
    await owned.remove(`_state/probe.${id}`)
  } finally {
    await owned.release()
  }
}

export function nothingExported(pipeline: Pipeline): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'Nothing was exported yet: there is no manifest',
    where: withLine(pipeline, pathIn(pipeline, MANIFEST_PATH)),
    next: runFirst(pipeline),
  })
}

/** In another directory a run would begin a second export, and pay for it. */
function runFirst(pipeline: Pipeline): string {
  const { besideFile } = pipeline.load
  if (besideFile !== undefined && existsSync(join(besideFile, '_state')))
    return `${besideFile} holds a data set: relative paths start in the working directory, so call spillway where you ran it, or write an absolute load.path.`
  return `Run the pipeline first: \`${runCommand(pipeline)}\`.`
}

/**
 * @param onWait is called with the reason and the maximum time of a wait
 * @throws ExportError `locked` when another run holds it, `storage` naming a symbolic link
 */
export async function withLock<T>(
  pipeline: Pipeline,
  options: Pick<WriteOptions, 'clock' | 'stop' | 'onLog'> & {
    readonly hold?: Hold
    readonly fresh?: boolean
  },
  work: (owner: Omit<Lock, 'release'>) => Promise<T>,
  onWait?: (message: string, waitMs: number) => void,
): Promise<T> {
  const { clock, stop, hold, onLog, fresh = false } = options
  const warn = onWait ?? ((message: string) => onLog('warn', message))
  const lock = await takeLock(openStore(pipeline), { clock, stop, hold, warn, fresh })
  try {
    await refuseLinks(lock.store)
    return await work(lock)
  } finally {
    // The work is on disk, so its result is still reported. A lock file that remains gets no more heartbeats.
    await lock.release().catch((error: unknown) => {
      if (!isExportError(error)) throw error
      onLog(
        'warn',
        `the lock could not be released; the next run takes it over once this process has ended, or on another machine once its lease has expired: ${error.message}`,
      )
    })
  }
}

const PATHS = [
  ...[SUCCESS_PATH, MANIFEST_PATH, SIGNATURE_PATH, SUMMARY_PAGE_PATH, CHECKPOINT_PATH, SUPPRESSION_PATH],
  ...[QUARANTINE_FOLDER, ORPHANS, LOG_FOLDER, SEALED_FOLDER, ICEBERG_FOLDER, METADATA_FOLDER, DELTA_FOLDER],
  ...ROW_FOLDERS,
]

async function refuseLinks(store: Store): Promise<void> {
  // One list, instead of a request for each path that a bucket does not have.
  const names = await store.list('')
  for (const path of PATHS) {
    const [first = ''] = path.split('/')
    // The state may be elsewhere.
    if (first === '_state' || names.includes(first)) await store.size(path)
  }
}

/** Errors name paths relative to the data set; they become paths below `load.path`, in the form of the file. */
export async function namingLocations<T>(pipeline: Pipeline, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw isExportError(error) ? withLocation(pipeline, error) : error
  }
}

/** The path below `load.path`, and if the settings are wrong, the line; the same error if it concerns something else. */
export function withLocation(pipeline: Pipeline, error: ExportError): ExportError {
  const { load } = pipeline
  const isInside = IN_DATA_SET.test(error.where)
  const isSetting = error.where.startsWith('load.')
  const isWrong = error.kind === 'config' && (isInside || isSetting || IN_STORE.test(error.where))
  if (!isInside && !isWrong) return error
  const path = isInside ? pathGiven(load, error.where) : error.where
  const key = pipeline.locations[error.where] === undefined ? 'load.path' : error.where
  const where = isWrong ? withLine(pipeline, path, key) : path
  const { cause, untilMs } = error
  return new ExportError({ ...plainError(error), where, cause, untilMs })
}

/** A place, and the line of the setting that leads there. Settings of a program have no lines. */
function withLine(pipeline: Pipeline, place: string, key = 'load.path'): string {
  const line = locationOf(pipeline, key)
  return line === pipeline.file ? place : `${place}, ${line}`
}

function pathGiven({ pathAsGiven }: LoadSettings, path: string): string {
  const root = pathAsGiven.replace(/(?<=.)\/+$/, '')
  return path === '.' ? root : `${root === '/' ? '' : root}/${path}`
}

/** The first part of every path in a data set. Keys of partitions (`<type>.<value>/…`) and URLs do not match. */
const IN_DATA_SET = new RegExp(`^(?:_[\\w.]+|${ROW_FOLDERS.join('|')})(?:/|$)|^\\.$`)

/** Absolute path of a file of the data set, or its address. */
export function pathIn({ load }: Pipeline, path: string): string {
  return load.location.kind === 'disk' ? join(load.location.root, path) : `${load.path}/${path}`
}
