import { ExportError, numberOf } from './errors.ts'

/**
 * The storage of a data set: a local disk, or object storage. Paths are relative to the data set's root, with `/`.
 * Every method rejects with an ExportError `storage` that names the path.
 */
export type Store = {
  /** Whether reading back what was just written costs next to nothing. */
  readonly isLocal: boolean
  /**
   * Opens a file for appending: creates it if missing, truncates it to `size` bytes.
   * @throws `damaged` if it is shorter
   */
  openLog(path: string, size: number): Promise<Log>
  /**
   * The same for a file that stays short, or that others read while it is open. If the storage can't append to files,
   * each fsync writes the whole file again.
   */
  openSmallLog(path: string, size: number): Promise<Log>
  /** The whole file; null: it does not exist. */
  read(path: string): Promise<Uint8Array<ArrayBuffer> | null>
  /** Bytes `[start, end)` of a file. */
  readRange(path: string, start: number, end: number): Promise<Uint8Array<ArrayBuffer>>
  /** Reads the file from its beginning, as far as `bytes` has room. @returns how many bytes were read */
  readInto(path: string, bytes: Uint8Array): Promise<number>
  /** The file in chunks; for files that may not fit in memory. */
  stream(path: string): AsyncIterable<Uint8Array>
  /** Size in bytes; null: the file does not exist. */
  size(path: string): Promise<number | null>
  /** Free space in bytes; null: unknown. */
  freeBytes(): Promise<number | null>
  /** Starts a check that stats files and folders, up to a million of them. */
  statCheck(): StatCheck
  /** Replaces a file atomically: temporary file, fsync, rename, fsync of the folder. */
  writeWhole(path: string, chunks: Iterable<string | Uint8Array>): Promise<void>
  /** Gives a finished, fsynced file its final name, and fsyncs the folder. Idempotent. */
  publish(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Names in a folder, sorted; none if the folder does not exist. */
  list(folder: string): Promise<readonly string[]>
  /** Removes a folder with everything in it, or a file. */
  removeFolder(folder: string): Promise<void>
  /** Removes a folder if it is empty. */
  removeEmptyFolder(folder: string): Promise<void>
  /**
   * Creates a staging directory for one owner beside `folder`, and returns a store in which it replaces `folder`.
   * @param owner the fencing token: a name that is used once
   */
  fenced(folder: string, owner: string): Promise<FencedStore>
}

/**
 * A store in which every change is a move into or out of a staging directory. A new owner removes that directory, which
 * fences the former owner atomically: no check can race with a change. From then on every change of the former owner
 * fails with `locked`. The former owner can still write to files that it has open, so the new owner replaces these by
 * copies.
 */
export type FencedStore = Store & {
  /**
   * Moves all files of another owner's staging directory into this one, and removes the other.
   * @param owner null: the files that an owner left with `release`
   * @param mayWrite whether the former owner may be alive and write to open files; these may be used only after
   *   `settle`
   * @returns whether the directory held files
   */
  takeOver(owner: string | null, mayWrite: boolean): Promise<boolean>
  /** Replaces a file by a copy. A former owner that has it open then writes to a file that is never read. */
  replaceByCopy(path: string): Promise<void>
  /** Replaces all files that a former owner may write to by copies. */
  settle(): Promise<void>
  /** Ends the ownership. Files in the staging directory stay for the next owner, under the common name. */
  release(): Promise<void>
  /** @throws ExportError `locked` when another owner took over */
  requireLock(): Promise<void>
}

/** Expected size of a file in bytes, or of a folder in names. */
export type ExpectedStat = { readonly path: string } & (
  | { readonly bytes: number }
  | { readonly names: number }
)

/** Stats files while the caller adds more of them. */
export type StatCheck = {
  add(expected: ExpectedStat): void
  /** Call it after the last `add`. @returns files and folders of another size, missing or not readable */
  mismatches(): Promise<readonly ExpectedStat[]>
  /** Ends the check, even if it is not finished. */
  close(): Promise<void>
}

/** An append-only file. */
export type Log = {
  readonly path: string
  /** Bytes written so far. */
  readonly size: number
  append(chunks: readonly Uint8Array[]): Promise<void>
  /** Resolves when all appended bytes are on stable storage, under the name of the file. */
  fsync(): Promise<void>
  close(): Promise<void>
}

/** The error for a log that is shorter than its committed bytes. */
export function shorterThanCounted(path: string, found: number, size: number): ExportError {
  return new ExportError(
    'damaged',
    `The file holds ${numberOf(found, 'byte')}, but ${size} are committed`,
    path,
    'Put the file back as it was, or start over with --fresh.',
  )
}

/** The error of an owner whose staging directory another owner removed. @param where the missing file or folder */
export function takenOver(where: string): ExportError {
  return new ExportError(
    'locked',
    'Another run has taken this pipeline over, because this one sent no heartbeat in time',
    where,
    'Let the other run continue. It requests the uncommitted pages of this run again; nothing is lost or duplicated.',
  )
}

/** A log whose calls go through `wrap`, which adds its path to errors. */
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

/** The report of a data set. */
export const REPORT_PATH = '_report.html'
/** First bytes of every report. A file without them is not a report. */
export const REPORT_START = '<!doctype html>\n<!-- spillway report -->\n'
