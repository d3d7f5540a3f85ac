import { closeSync, constants, existsSync, lstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ExportError, isExportError, type Pipeline } from '../../core/index.ts'
import { pathWithin } from './save-file.ts'

// Windows lacks these. Opening a pipe must not wait for a writer.
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
/** More than the first line of any of them needs. */
const BEGINNING_BYTES = 256
/** What tells that a folder is a data set, or the state of one. */
const IN_DATA_SETS = ['_manifest.json', join('_state', 'checkpoint.jsonl')]

/** A file that a flag names and that is written again and again: a log, metrics, a heartbeat. */
export type OwnFile = {
  readonly path: string
  /** For messages: `The log file`. */
  readonly what: string
  /** Whether a file that begins so was written for this flag. */
  readonly isOwn: (beginning: string) => boolean
}

/**
 * Makes sure that writing the file harms no other: it is new, empty, or Spillway's own, and lies in no data set.
 * @throws ExportError `config` if it is not so; errors of the system
 */
export function checkOwnFile(file: OwnFile): void {
  const { path, what, isOwn } = file
  if (isInDataSet(dirname(path))) throw inDataSet(file)
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  const next = 'Choose another name, or move the existing file away.'
  if (found.isSymbolicLink())
    throw new ExportError({ kind: 'config', what: `${what} is a symbolic link`, where: path, next })
  if (!found.isFile()) throw Object.assign(new Error('no file'), { code: 'not a regular file' })
  if (found.size === 0 || isOwn(beginningOf(path))) return
  throw new ExportError({
    kind: 'config',
    what: `${what} would change a file that is not from spillway`,
    where: path,
    next,
  })
}

/** The error of a file that a flag names, if the system does not allow what is to be done with it. */
export function ownFileError({ path }: OwnFile, what: string, next: string, cause: unknown): unknown {
  return isExportError(cause) ? cause : new ExportError({ kind: 'config', what, where: path, next, cause })
}

/** What helps most of the time. */
export const CHOOSE_A_FOLDER = 'Choose a file in a folder that is there and can be written.'

/** The same for data sets that are still to be made. @throws ExportError `config` */
export async function keepOutOf(file: OwnFile, { load }: Pick<Pipeline, 'load'>): Promise<void> {
  const { location } = load
  const root = location.kind === 'disk' ? location.root : location.stateRoot
  if (root !== null && (await pathWithin(file.path, root)) !== null) throw inDataSet(file)
}

function inDataSet({ path, what }: OwnFile): ExportError {
  const problem = `${what} would lie in the folder of the data set`
  return new ExportError({ kind: 'config', what: problem, where: path, next: 'Choose another folder.' })
}

function isInDataSet(folder: string): boolean {
  // A folder that is not there is reported where the file is opened.
  if (!existsSync(folder)) return false
  for (let at = realpathSync(folder); ; at = dirname(at)) {
    if (IN_DATA_SETS.some((name) => existsSync(join(at, name)))) return true
    if (at === dirname(at)) return false
  }
}

function beginningOf(path: string): string {
  const fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const bytes = Buffer.alloc(BEGINNING_BYTES)
    return bytes.toString('utf8', 0, readSync(fd, bytes))
  } finally {
    closeSync(fd)
  }
}
