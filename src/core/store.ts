import { ExportError, numberOf } from './errors.ts'

/**
 * The storage of a data set: a local disk, or object storage. Paths are relative to the data set's root, with `/`. Every
 * method rejects with an ExportError `storage` that names the path.
 */
export type Store = {
  /** Opens for appending, made if absent, cut to `size` bytes (0: empty). @throws `damaged` when it is shorter. */
  openLog(path: string, size: number): Promise<Log>
  /**
   * The same for a file that stays short, or that others read. Where storage can't append to files, each fsync writes it
   * anew.
   */
  openSmallLog(path: string, size: number): Promise<Log>
  /** The whole file, or null when there is none. */
  read(path: string): Promise<Uint8Array<ArrayBuffer> | null>
  /** Bytes `[start, end)` of a file. */
  readRange(path: string, start: number, end: number): Promise<Uint8Array<ArrayBuffer>>
  /** Reads the file from its beginning, as far as `bytes` has room. @returns how many bytes were read */
  readInto(path: string, bytes: Uint8Array): Promise<number>
  /** The file in chunks; for files that may not fit in memory. */
  stream(path: string): AsyncIterable<Uint8Array>
  /** Size in bytes, or null when there is no such file. */
  size(path: string): Promise<number | null>
  /** Free space in bytes; null: unknown. */
  freeBytes(): Promise<number | null>
  /** Begins to stat files and folders, up to a million of them. */
  statCheck(): StatCheck
  /** Replaces a file in one step: temporary file, fsync, rename, fsync of the folder. */
  writeWhole(path: string, chunks: Iterable<string | Uint8Array>): Promise<void>
  /** Gives a finished, fsynced file its final name, and fsyncs the folder. Idempotent. */
  publish(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Names in a folder, sorted; none when there is no such folder. */
  list(folder: string): Promise<readonly string[]>
  /** Removes a folder or file with everything in it. */
  removeFolder(folder: string): Promise<void>
  /** Removes a folder if nothing is in it. */
  removeEmptyFolder(folder: string): Promise<void>
  /**
   * Makes a staging directory for one owner, beside `folder`, and gives a store in which it replaces `folder`.
   * @param owner the fencing token: a name that is used once
   */
  fenced(folder: string, owner: string): Promise<FencedStore>
}

/**
 * A store whose every change goes through a staging directory. A file gets its name in the data set by a move out of that
 * directory, and loses it by a move into it. A new owner removes the directory, which fences the former owner in one step:
 * there is no time between a check and a change. From then on every change of the former owner fails with `locked`. It can
 * still write to files that it has open, so the new owner continues in copies of them.
 */
export type FencedStore = Store & {
  /**
   * Moves all files of another owner's staging directory into this one, and removes the other.
   * @param owner null: the files that an owner left with `release`
   * @param mayWrite whether the owner may be alive, and write to files that it has open: these count only after `settle`
   * @returns whether there was anything in it
   */
  takeOver(owner: string | null, mayWrite: boolean): Promise<boolean>
  /** Replaces a file by a copy, so that a former owner that has it open writes to a file that is never read. */
  replaceByCopy(path: string): Promise<void>
  /** Replaces files that a former owner may write to by copies. */
  settle(): Promise<void>
  /** Gives up ownership. Files in the staging directory stay for the next owner, under the common name. */
  release(): Promise<void>
  /** @throws ExportError `locked` when another owner took over */
  requireLock(): Promise<void>
}

/** What a file or folder should hold: so many bytes, or so many names. */
export type ExpectedStat = { readonly path: string } & (
  | { readonly bytes: number }
  | { readonly names: number }
)

/** A check that stats files while more of them are added. */
export type StatCheck = {
  add(expected: ExpectedStat): void
  /** To be called after the last `add`. @returns what holds something else, is missing or can't be read */
  mismatches(): Promise<readonly ExpectedStat[]>
  /** Ends the check, also before it is done. */
  close(): Promise<void>
}

/** A file that only grows. */
export type Log = {
  readonly path: string
  /** Bytes written so far. */
  readonly size: number
  append(chunks: readonly Uint8Array[]): Promise<void>
  /** Returns when everything appended is on stable storage, under the file's own name. */
  fsync(): Promise<void>
  close(): Promise<void>
}

/** The error for a log that is shorter than its committed bytes. */
export function shorterThanCounted(path: string, found: number, size: number): ExportError {
  return new ExportError(
    'damaged',
    `The file holds ${numberOf(found, 'byte')}, but the checkpoint counts on ${size}`,
    path,
    'Put the file back as it was, or start over with --fresh.',
  )
}

/** The error of an owner whose staging directory another owner took away. @param where says what is gone */
export function takenOver(where: string): ExportError {
  return new ExportError(
    'locked',
    'Another run has taken this pipeline over, because this one sent no heartbeat in time',
    where,
    'Let the other one go on; what this one had in hand is asked for again, and nothing is lost or doubled.',
  )
}

/** A log whose calls go through `wrap`, which gives errors its path. */
export function wrapLog(log: Log, wrap: <T>(work: () => Promise<T>) => Promise<T>): Log {
  return {
    path: log.path,
    get size() {
      return log.size
    },
    append: (chunks) => wrap(() => log.append(chunks)),
    fsync: () => wrap(() => log.fsync()),
    close: () => wrap(() => log.close()),
  }
}

/** The report of a data set, at its root. */
export const REPORT_PATH = '_report.html'
/** How every report begins, so that nothing else is taken for one. */
export const REPORT_START = '<!doctype html>\n<!-- spillway report -->\n'
