import { ExportError } from '../core/index.ts'

/** What the file system says, in words for people, and what to do about it. */
const CAUSES: Record<string, readonly [what: string, next: string]> = {
  ENOSPC: [
    'The disk is full',
    'Free some space and run again; the run goes on from its last committed page.',
  ],
  EDQUOT: [
    'The disk quota is used up',
    'Free some space and run again; the run goes on from its last committed page.',
  ],
  EFBIG: [
    'The file grew beyond the allowed size',
    'Lower load.shard_rows or raise the limit, then run again.',
  ],
  EROFS: ['The file system is read-only', 'Choose another load.path or mount it writable, then run again.'],
  EACCES: ['Writing or reading is not permitted', 'Check the owner and mode of the folder, then run again.'],
  EPERM: ['Writing or reading is not permitted', 'Check the owner and mode of the folder, then run again.'],
  EMFILE: [
    'Too many files are open',
    'Raise the limit (ulimit -n) or lower extract.concurrency, then run again.',
  ],
  ENOENT: ['The file or its folder is gone', 'Check that nothing else clears load.path, then run again.'],
  EIO: ['The disk reports an input/output error', 'Check the disk, then run again.'],
  EEXIST: ['A part of the path is a file, not a folder', 'Choose another load.path.'],
  ENOTDIR: ['A part of the path is a file, not a folder', 'Choose another load.path.'],
  ENOTREG: ['Something else than a file stands where a file is needed', 'Move it away, then run again.'],
  // Opening a pipe for writing that nobody reads.
  ENXIO: ['Something else than a file stands where a file is needed', 'Move it away, then run again.'],
  EISDIR: ['A folder stands where a file is needed', 'Move it away, then run again.'],
  ENAMETOOLONG: [
    'The path is too long for this file system',
    'Choose a shorter load.path or leave query out of load.partition_by.',
  ],
}

/** Gives a file system error its path and an advice; whatever else was thrown passes as it is. */
export function storageError(error: unknown, path: string): unknown {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) return error
  const { code } = error
  const [what, next] = CAUSES[code] ?? [
    `The file system refuses (${code})`,
    'Check the disk and load.path, then run again.',
  ]
  return new ExportError('storage', what, path, next, { cause: error })
}
