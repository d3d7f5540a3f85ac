import { ExportError } from './errors.ts'

/**
 * The storage of a data set: a local disk, or a container of objects. Paths are relative to the data set's root, with
 * `/`. A file is whole and durable when it gets its name, and from then on it is only replaced as a whole or removed; on a
 * disk the files of the log grow, by `extend`. Every method rejects with an ExportError `storage` that names the path.
 */
export type Store = {
  /** Bytes `[start, end)` of a file, as far as there are any; by default all of them. Null: the file does not exist. */
  read(path: string, start?: number, end?: number): Promise<Uint8Array | null>
  /** The file in chunks; for files that may not fit in memory. Rejects if the file does not exist. */
  stream(path: string): AsyncIterable<Uint8Array>
  /** Size in bytes; null: the file does not exist. */
  size(path: string): Promise<number | null>
  /** Names in a folder, sorted; none if the folder does not exist. */
  list(folder: string): Promise<readonly string[]>
  /** Free space in bytes; null: unknown. */
  freeBytes(): Promise<number | null>
  /** Stats files and folders, up to a million of them. @returns those of another size, missing or not readable */
  mismatches(expected: Iterable<ExpectedStat>): Promise<readonly ExpectedStat[]>
  /** Begins an ownership, by `_state/open.<owner>`. @param owner the fencing token: 12 hex digits that are used once */
  own(owner: string): Promise<OwnedStore>
}

/** One owner may change it until another takes over. Then every change fails with `locked`; no check races with it. */
export type OwnedStore = Store & {
  /** Creates a file that must not exist, whole and durable. @returns false: one exists, and nothing was changed */
  create(path: string, chunks: FileChunks): Promise<boolean>
  /**
   * The same of chunks that come one after the other, each in the memory of the last. A crash leaves nothing that counts.
   * @param path below `_state/sealed`, asked for after the last one: it says what the file holds
   */
  build(chunks: AsyncIterable<Uint8Array>, path: () => string): Promise<void>
  /**
   * Appends durably to a file that this owner created. A crash may leave a part. Missing: files do not grow.
   * @param size of the file so far
   * @throws ExportError `locked` when another owner took over: the bytes do not count; `damaged`: it has another size
   */
  extend?(path: string, size: number, chunks: Iterable<Uint8Array>): Promise<void>
  /** Forces a file to the disk that a former owner has appended to, and its name. Missing: files do not grow. */
  fsync?(path: string): Promise<void>
  /** Replaces a file, or creates it, in one step. @param access `private`: for its owner alone, whatever other files allow */
  replace(path: string, chunks: Iterable<string | Uint8Array>, access?: 'private'): Promise<void>
  /** Moves a file that nobody changes to a free name. Idempotent: if only `to` exists, it was moved before. */
  publish(from: string, to: string): Promise<void>
  /** Removes a file, if it exists. Outside `_state` folders that become empty go with it. */
  remove(path: string): Promise<void>
  /** Ends the rights of other owners, and removes what they have left in `_state/open.<owner>`. */
  takeOver(owners: Iterable<string>): Promise<void>
  /** @throws ExportError `locked` when another owner took over */
  requireLock(): Promise<void>
  /** Ends the ownership, and removes what belongs to it. */
  release(): Promise<void>
}

/** What a file is made of. */
export type FileChunks = Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>

/** Expected size of a file in bytes, or of a folder in names. */
export type ExpectedStat = { readonly path: string } & (
  | { readonly bytes: number }
  | { readonly names: number }
)

/** The error of an owner whose rights another owner ended. @param where the missing file or folder */
export function takenOver(where: string): ExportError {
  return new ExportError({
    kind: 'locked',
    what: 'Another run has taken this pipeline over, because this one sent no heartbeat in time',
    where,
    next: 'Let the other run continue. It requests the uncommitted pages of this run again; nothing is lost or duplicated.',
  })
}

export function nameInUse(path: string): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'Another file has the name of a shard',
    where: path,
    next: 'Check that nothing else writes below load.path, move that file away, then run again.',
  })
}

export const SUMMARY_PAGE_PATH = '_report.html'
/** First bytes of every summary page. A file without them is none. */
export const SUMMARY_PAGE_START = '<!doctype html>\n<!-- spillway report -->\n'
