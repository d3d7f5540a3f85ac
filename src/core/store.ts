import { ExportError, numberOf } from './errors.ts'

/**
 * Where shards and state live. The pipeline needs no more than this of a disk, so that another kind of
 * storage can take its place. Paths are relative to the data set's root, with `/`; every method rejects
 * with an ExportError `storage` that names the path.
 */
export type Store = {
  /** Opens for appending, made if absent, cut to `size` bytes (0: empty). @throws `damaged` when it is shorter. */
  openLog(path: string, size: number): Promise<Log>
  /**
   * The same for a file that stays short, or that others read: where nothing can be appended to a file, each flush
   * writes it anew.
   */
  openSmallLog(path: string, size: number): Promise<Log>
  /** The whole file, or null when there is none. */
  read(path: string): Promise<Uint8Array<ArrayBuffer> | null>
  /** Bytes `[start, end)` of a file. */
  readRange(path: string, start: number, end: number): Promise<Uint8Array<ArrayBuffer>>
  /** The file from its beginning, as much as `bytes` has room for. @returns how many bytes that were */
  readInto(path: string, bytes: Uint8Array): Promise<number>
  /** The file in chunks; for what may be too large to hold. */
  stream(path: string): AsyncIterable<Uint8Array>
  /** Size in bytes, or null when there is no such file. */
  size(path: string): Promise<number | null>
  /** Bytes that there is still room for; null when that is not known. */
  freeBytes(): Promise<number | null>
  /** Begins to look at files and folders, a million of them if need be. */
  statCheck(): StatCheck
  /** Writes a whole file under its name in one step: temporary file, flush, rename, flush of the folder. */
  writeWhole(path: string, chunks: Iterable<string | Uint8Array>): Promise<void>
  /** Gives a whole, flushed file its final name, and flushes the folder. Doing it again does nothing. */
  publish(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Names in a folder, sorted; none when there is no such folder. */
  list(folder: string): Promise<readonly string[]>
  /** Removes a folder or file and all that is in it. */
  removeFolder(folder: string): Promise<void>
  /** Removes a folder if nothing is in it. */
  removeEmptyFolder(folder: string): Promise<void>
  /**
   * Makes a folder for one owner alone, beside `folder`, and gives a store in which it stands for `folder`.
   * @param owner a name that nobody else ever uses
   */
  fenced(folder: string, owner: string): Promise<FencedStore>
}

/**
 * A store whose every change goes through a folder of its own: what gets a name in the data set is moved there out of
 * that folder, and what loses its name is moved into it. Whoever takes the folder away ends all of that at once, even
 * for an owner who is at work: there is no moment between a check and a change. From then on every change is
 * refused with `locked`. What the owner has opened by then it can still write to, so the new owner goes on in copies.
 */
export type FencedStore = Store & {
  /**
   * Moves all that another owner left into the folder of this one, and takes its folder away.
   * @param owner null: what was left in order, see `leave`
   * @param mayWrite whether the owner may still be there, and write to what it has opened: these files count only
   *   after `settle`
   * @returns whether there was anything in it
   */
  takeOver(owner: string | null, mayWrite: boolean): Promise<boolean>
  /** Puts a copy in the place of a file, so that whoever has opened it writes to what nobody reads. */
  replaceByCopy(path: string): Promise<void>
  /** Puts copies in the place of files that an earlier owner may write to. */
  settle(): Promise<void>
  /** Leaves what is in the own folder under the folder's common name, and is an owner no more. */
  release(): Promise<void>
  /** @throws ExportError `locked` when another owner took over */
  requireLock(): Promise<void>
}

/** What a file or a folder is to hold: so many bytes, or so many names. */
export type ExpectedStat = { readonly path: string } & (
  | { readonly bytes: number }
  | { readonly names: number }
)

/** Looks that are taken while more of them are added. */
export type StatCheck = {
  add(look: ExpectedStat): void
  /** Once everything was added. @returns what holds something else, is not there or can't be looked at */
  mismatches(): Promise<readonly ExpectedStat[]>
  /** Ends it, also before its time. */
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

/** What is thrown for a log that is too short to be gone on with. */
export function shorterThanCounted(path: string, found: number, size: number): ExportError {
  return new ExportError(
    'damaged',
    `The file holds ${numberOf(found, 'byte')}, but the checkpoint counts on ${size}`,
    path,
    'Put the file back as it was, or start over with --fresh.',
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
