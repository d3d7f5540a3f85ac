import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, ExportError, hasCode } from '../core/index.ts'

const LINK = 'There is a symbolic link below load.path, where links are not followed'

/** By error code: what it means, and what to do about it. */
const CAUSES: Record<string, readonly [what: string, next: string]> = {
  ENOSPC: [
    'The disk is full',
    'Free some space and run again; the run resumes after its last committed page.',
  ],
  EDQUOT: [
    'The disk quota is used up',
    'Free some space and run again; the run resumes after its last committed page.',
  ],
  EFBIG: [
    'The file grew beyond the allowed size',
    'Raise the limit of the process (`ulimit -f`, LimitFSIZE under systemd) or use a file system with larger files, then run again.',
  ],
  EROFS: ['The file system is read-only', 'Choose another load.path or mount it writable, then run again.'],
  EACCES: ['Writing or reading is not permitted', 'Check the owner and mode of the folder, then run again.'],
  EPERM: ['Writing or reading is not permitted', 'Check the owner and mode of the folder, then run again.'],
  EMFILE: [
    'Too many files are open',
    'Raise the limit (ulimit -n) or lower extract.concurrency, then run again.',
  ],
  ENOENT: ['The file or its folder is missing', 'Check that nothing else clears load.path, then run again.'],
  EIO: ['The disk reports an input/output error', 'Check the disk, then run again.'],
  EEXIST: ['A part of the path is a file, not a folder', 'Choose another load.path.'],
  ENOTDIR: ['A part of the path is a file, not a folder', 'Choose another load.path.'],
  ELOOP: [LINK, 'Put the file itself in its place; only load.path itself may be a link.'],
  EFTYPE: ['The path is neither a file nor a folder', 'Move it away, then run again.'],
  // Opening a pipe for writing that nobody reads.
  ENXIO: ['The path is not a regular file', 'Move it away, then run again.'],
  EISDIR: ['The path is a folder, not a file', 'Move it away, then run again.'],
  ENAMETOOLONG: [
    'The path is too long for this file system',
    'Choose a shorter load.path or leave query out of load.partition_by.',
  ],
}

/** Turns an error of the file system into an ExportError with its path and an advice. Other errors stay as they are. */
export function storageError(error: unknown, path: string): unknown {
  const code = codeOf(error)
  if (code === '') return error
  const [what, next] = CAUSES[code] ?? [
    `The file system refuses (${code})`,
    'Check the disk and load.path, then run again.',
  ]
  const owner = hasCode(error, 'EACCES', 'EPERM') ? ownerOf(error as NodeJS.ErrnoException) : null
  const whose = owner === null ? '' : `, and what is there belongs to another user (id ${owner})`
  return new ExportError({ kind: 'storage', what: `${what}${whose}`, where: path, next, cause: error })
}

/** Id of the other user to whom the file of an error, or else its folder, belongs; null: it is ours, or not known. */
function ownerOf({ path = '' }: NodeJS.ErrnoException): number | null {
  for (const each of [path, dirname(path)]) {
    const uid = path === '' ? undefined : statSync(each, { throwIfNoEntry: false })?.uid
    if (uid !== undefined) return uid === process.getuid?.() ? null : uid
  }
  return null
}

export function isAbsent(error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ENOTDIR')
}

/** For `catch` of a promise: what is not there gives null, other errors stay. */
export function nullIfAbsent(error: unknown): null {
  if (isAbsent(error)) return null
  throw error
}

/** What synchronous work gives; null where it finds no file, or no folder. */
export function unlessAbsent<T>(work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    return nullIfAbsent(error)
  }
}
