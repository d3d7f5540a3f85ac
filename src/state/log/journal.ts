import {
  type BufferPool,
  ExportError,
  type OwnedStore,
  serial,
  sideBySide,
  takenOver,
} from '../../core/index.ts'
import { type Found, saveCheckpoint } from '../checkpoint/checkpoint.ts'
import { blobsNeeded, type CheckpointState } from '../checkpoint/checkpoint-state.ts'
import type { JournalFold } from '../checkpoint/fold-journal.ts'
import type { BlobRef, CommitLog } from '../commit-log.ts'
import type { JournalEntry } from '../journal-entry.ts'
import { type CommitPart, commitPath, encodeCommit, LOG_FOLDER, type LogFile, readBlob } from './commit.ts'
import { gatherings, smallFiles } from './gather.ts'
import { requireReadable } from './parse-entry.ts'

// A checkpoint is saved when the log since the last one is as large as it; at least so large, because small ones would
// be saved with each page. Rows that no open shard needs any more stay until then.
const MIN_ENTRY_BYTES = 1 << 20
const MIN_BLOB_BYTES = 128 << 20
/** A file of the log grows to about this size, so that little is kept for the rows of few pages. */
const FILE_BYTES = 1 << 20
/** A checkpoint up to this size is saved with each run, a larger one when an eighth of it is new. */
const SMALL_BYTES = 8 << 20

type Waiting = CommitPart & {
  readonly resolve: (blobs: readonly BlobRef[]) => void
  readonly reject: (error: unknown) => void
}

/**
 * The open journal of one owner: the state of its data set, and the log of the commits, which alone change it. A
 * commit begins a file with its number, created only if no other is there: if it is, another owner has taken over; or,
 * on a disk, it is appended to the file that this owner began. Commits that arrive while one is being written go
 * together into the next.
 */
export class Journal implements CommitLog {
  readonly #store: OwnedStore
  readonly #fold: JournalFold
  /** Files of the log, by number. */
  readonly #files: Set<number>
  /** The file of the last commit, if this owner began it; null: the next commit begins another. */
  #file: LogFile | null = null
  #saved: { readonly sequence: number; readonly bytes: number }
  /** Bytes committed since the last checkpoint. */
  #entryBytes: number
  #blobBytes: number
  #waiting: Waiting[] = []
  readonly #turns = serial()
  /** Where bytes are that were gathered into another file since the log was opened, by their place before. */
  readonly #moved = new Map<string, BlobRef>()
  #sweeping: Promise<void> = Promise.resolve()
  /** After a failed write the end of the log is unknown, so all later commits fail as well. */
  #failure: { readonly error: unknown } | null = null

  constructor(store: OwnedStore, { fold, saved, entryBytes, blobBytes, files }: Found) {
    this.#store = store
    this.#fold = fold
    this.#saved = saved
    this.#entryBytes = entryBytes
    this.#blobBytes = blobBytes
    this.#files = new Set(files)
  }

  get state(): CheckpointState {
    return this.#fold.state
  }

  /**
   * Takes the log over from an owner that may still run: the number of its next commit is taken then.
   * @returns false: a commit of its has arrived since the log was read
   */
  async claim(): Promise<boolean> {
    return (await this.#tryToWrite([{ entries: [{ kind: 'claim' }], blobs: [] }])) !== null
  }

  /** Removes files that nothing needs, after any earlier sweep. */
  sweep(): Promise<void> {
    const sweeping = this.#sweeping.then(() => this.#removeDead())
    this.#sweeping = sweeping.catch(() => {})
    return sweeping
  }

  /** Commits entries that refer to no bytes, all of them or none. */
  async append(entries: readonly JournalEntry[]): Promise<void> {
    if (entries.length > 0) await this.commit(entries)
  }

  async commit(
    entries: readonly JournalEntry[],
    blobs: readonly Uint8Array[] = [],
  ): Promise<readonly BlobRef[]> {
    for (const entry of entries) requireReadable(entry)
    if (this.#failure !== null) throw this.#failure.error
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entries, blobs, resolve, reject })
      void this.#turns(() => this.#writeWaiting())
    })
  }

  async read(ref: BlobRef, memory?: BufferPool): Promise<Uint8Array | null> {
    for (let at: BlobRef | undefined = ref; at !== undefined; at = this.#moved.get(placeOf(at))) {
      const bytes = await readBlob(this.#store, at, memory)
      if (bytes !== null) return bytes
    }
    // The next owner removes what it does not need.
    await this.#store.requireLock()
    return null
  }

  /** Replaces the file if bytes that are not wanted any more may be in the log: then nothing is left of them. */
  async compact(): Promise<void> {
    if (this.state.erasedAt > this.#saved.sequence) await this.#turns(() => this.#save())
    await this.sweep()
  }

  /** Brings the file in line with the log. */
  async close(): Promise<void> {
    try {
      await this.#turns(async () => {
        if (this.#failure === null && this.#isWorthSaving) await this.#save()
      })
    } catch (error) {
      this.#failure ??= { error }
      throw error
    } finally {
      await this.#sweeping
    }
  }

  get #isWorthSaving(): boolean {
    if (this.state.position.sequence === this.#saved.sequence) return false
    return this.#saved.bytes <= SMALL_BYTES || 8 * this.#entryBytes >= this.#saved.bytes
  }

  /** Never rejects: whoever waits gets the error. */
  async #writeWaiting(): Promise<void> {
    const taken = this.#waiting
    this.#waiting = []
    if (taken.length === 0) return
    try {
      if (this.#failure !== null) throw this.#failure.error
      const blobs = await this.#write(taken)
      for (const [i, { resolve }] of taken.entries()) resolve(blobs[i]!)
      const { bytes } = this.#saved
      if (
        this.#entryBytes > Math.max(MIN_ENTRY_BYTES, bytes) ||
        this.#blobBytes > Math.max(MIN_BLOB_BYTES, 2 * bytes)
      )
        await this.#save()
    } catch (error) {
      this.#failure ??= { error }
      for (const { reject } of taken) reject(error)
    }
  }

  /**
   * @returns the location of the bytes of each part
   * @throws ExportError `locked` when there is another commit of that number
   */
  async #write(parts: readonly CommitPart[]): Promise<readonly (readonly BlobRef[])[]> {
    const blobs = await this.#tryToWrite(parts)
    if (blobs === null) throw takenOver(commitPath(this.state.position.sequence + 1))
    return blobs
  }

  async #tryToWrite(parts: readonly CommitPart[]): Promise<readonly (readonly BlobRef[])[] | null> {
    requireOpenShards(parts, this.state)
    const file = this.#growing
    const commit = encodeCommit(this.state.position, parts, file)
    const path = commitPath(commit.file.first)
    if (file !== null) await this.#store.extend!(path, file.bytes, commit.chunks)
    else if (!(await this.#store.create(path, commit.chunks))) return null
    this.#file = commit.file
    this.#files.add(commit.file.first)
    for (const { entries, blobs } of commit.parts) this.#fold.apply(entries, commit.position, blobs)
    const [line, ...blobs] = commit.chunks
    this.#entryBytes += line!.byteLength
    for (const { byteLength } of blobs) this.#blobBytes += byteLength
    return commit.parts.map(({ blobs }) => blobs)
  }

  /** The file that the next commit is appended to; null: it begins one. Those that are to go, or stay for ever, do not grow. */
  get #growing(): LogFile | null {
    const file = this.#file
    if (file === null || this.#store.extend === undefined || file.bytes >= FILE_BYTES) return null
    const { erasedAt, claims } = this.state
    return file.first > Math.max(this.#saved.sequence, erasedAt) && !claims.has(file.first) ? file : null
  }

  async #save(): Promise<void> {
    // What is moved goes into another file.
    this.#file = null
    const { erasedAt } = this.state
    const small = smallFiles(this.state)
    // What is needed of a file is moved, so that the rest of it goes.
    if (small.size > 0 || erasedAt > this.#saved.sequence)
      await this.#gather((sequence) => small.has(sequence) || sequence <= erasedAt)
    const { sequence } = this.state.position
    const bytes = await saveCheckpoint(this.#store, this.state)
    this.#saved = { sequence, bytes }
    this.#entryBytes = 0
    this.#blobBytes = 0
    // Commits go on meanwhile. A failure is no reason to end a run: a later sweep repeats it.
    void this.sweep().catch(() => {})
  }

  /** Commits bytes again that are in some files. */
  async #gather(isMoving: (sequence: number) => boolean): Promise<void> {
    for await (const { from, ...part } of gatherings(this.state, isMoving, (ref) => this.read(ref))) {
      const [blobs] = await this.#write([part])
      for (const [i, ref] of from.entries()) this.#moved.set(placeOf(ref), blobs![i]!)
    }
    this.#forgetMoves()
  }

  /** Forgets where bytes are that nothing needs any more. */
  #forgetMoves(): void {
    if (this.#moved.size === 0) return
    const needed = new Set(Array.from(blobsNeeded(this.state), placeOf))
    // The last moves first: bytes may have moved twice.
    for (const [place, to] of [...this.#moved].reverse()) {
      if (needed.has(placeOf(to))) needed.add(place)
      else this.#moved.delete(place)
    }
  }

  async #removeDead(): Promise<void> {
    const dead = deadFiles(this.#files, this.#saved.sequence, this.state)
    await sideBySide(dead, async (first) => {
      await this.#store.remove(commitPath(first))
      this.#files.delete(first)
    })
  }
}

/** @param saved the last commit that the checkpoint covers */
function deadFiles(files: Iterable<number>, saved: number, state: CheckpointState): readonly number[] {
  const needed = new Set(state.claims)
  for (const { sequence } of blobsNeeded(state)) needed.add(sequence)
  return [...files].filter((first) => first <= saved && !needed.has(first))
}

function placeOf({ sequence, offset }: BlobRef): string {
  return `${sequence} ${offset}`
}

/** @throws ExportError `data` when readers would find rows for a shard that is not open */
function requireOpenShards(parts: readonly CommitPart[], { openShards }: CheckpointState): void {
  const opened = new Set<number>()
  for (const entry of parts.flatMap(({ entries }) => entries)) {
    if (entry.kind === 'open') opened.add(entry.shard)
    for (const { shard, rows } of (entry.kind === 'page' && entry.logged) || []) {
      if (opened.has(shard) || openShards.has(shard)) continue
      throw new ExportError({
        kind: 'data',
        what: `A page has ${rows} rows for shard ${shard}, which is not open`,
        where: LOG_FOLDER,
        next: 'The page was not committed, and committed data is unchanged. Report this error.',
      })
    }
  }
}
