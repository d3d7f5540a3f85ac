import { randomBytes } from 'node:crypto'
import { ExportError, type OwnedStore, serial, sideBySide, takenOver } from '../../core/index.ts'
import { type Found, saveCheckpoint } from '../checkpoint/checkpoint.ts'
import type { CheckpointState, JournalFold } from '../checkpoint/fold-journal.ts'
import type { JournalEntry } from '../journal-entry.ts'
import { blobKey, blobsNeeded, blobsToMove, RecentBlobs, smallFiles } from './blobs.ts'
import {
  type BlobRef,
  type CommitPart,
  claimFile,
  claimOf,
  commitPath,
  encodeCommit,
  LOG_FOLDER,
  LOG_START,
  readBlob,
  requireReadable,
} from './commit.ts'
import { listLog } from './read-log.ts'

// A checkpoint is saved when the log since it is as large, and at least this: else each page would save one.
const MIN_ENTRY_BYTES = 1 << 20
const MIN_BLOB_BYTES = 128 << 20
/** A file of the log grows to about this size, so that little is kept for the rows of few pages. */
const FILE_BYTES = 1 << 20
/** Bytes that are kept in memory where each read of a file is a request. */
const RECENT_BYTES = 32 << 20
/** A checkpoint up to this size is saved with each run, a larger one when an eighth of it is new. */
const SMALL_BYTES = 8 << 20

export type CommitLog = {
  /** Commits entries and the bytes that they refer to by index, all or none, durably. @returns where the blobs are */
  commit(entries: readonly JournalEntry[], blobs?: readonly Uint8Array[]): Promise<readonly BlobRef[]>
  /** Committed bytes; null: they are lost or changed. */
  read(ref: BlobRef): Promise<Uint8Array | null>
}

type Waiting = CommitPart & {
  readonly resolve: (blobs: readonly BlobRef[]) => void
  readonly reject: (error: unknown) => void
}

/**
 * The open journal of one owner. It begins with a claim, in a file that is created only if no other owner has: from
 * then on nothing counts that a former owner sends. Commits that arrive during a write go together into the next.
 */
export class Journal implements CommitLog {
  readonly #store: OwnedStore
  readonly #fold: JournalFold
  /** Where the claim ends, and whether the checkpoint covers all before it. */
  #claim = { end: LOG_START, followsCheckpoint: false }
  #saved: { readonly file: number; readonly bytes: number }
  /** Files up to this one do not grow any more. */
  #ended: number
  /** Bytes committed since the last checkpoint. */
  #entryBytes: number
  #blobBytes: number
  #waiting: Waiting[] = []
  readonly #turns = serial()
  readonly #recent: RecentBlobs
  /** Where bytes are that moved into another file since the log was opened, by their place before. */
  readonly #moved = new Map<string, BlobRef>()
  readonly #sweeps = serial()
  /** After a failed write the end of the log is unknown, so all later commits fail as well. */
  #failure: { readonly error: unknown } | null = null

  private constructor(store: OwnedStore, { fold, saved, entryBytes, blobBytes }: Found) {
    this.#store = store
    this.#recent = new RecentBlobs(store.extend === undefined ? RECENT_BYTES : 0)
    this.#fold = fold
    this.#saved = saved
    this.#ended = saved.file
    this.#entryBytes = entryBytes
    this.#blobBytes = blobBytes
  }

  /** Takes the next place in the log. @returns null: another claim has come first; read everything again */
  static async open(store: OwnedStore, found: Found): Promise<Journal | null> {
    const { file, bytes } = found.fold.logEnd
    // Its owner may have ended before the last commit was forced to the disk.
    if (file > found.saved.file) await store.fsync?.(commitPath(file))
    const journal = new Journal(store, found)
    const claim: JournalEntry = { kind: 'claim', after: [file, bytes], nonce: randomBytes(8).toString('hex') }
    const isFirst = await journal.#write([{ entries: [claim], blobs: [] }], claimFile(claimOf(file) + 1))
    journal.#claim = { end: journal.state.logEnd, followsCheckpoint: file === found.saved.file }
    return isFirst === null ? null : journal
  }

  get state(): CheckpointState {
    return this.#fold
  }

  /** Removes files that nothing needs, after any earlier sweep. */
  sweep(): Promise<void> {
    return this.#sweeps(async () => {
      const files = await listLog(this.#store)
      // Of the state as it is after the list: commits go on.
      const needed = new Set(Array.from(blobsNeeded(this.state), ({ file }) => file))
      const dead = files.filter((file) => file <= this.#saved.file && !needed.has(file))
      await sideBySide(dead, (file) => this.#store.remove(commitPath(file)))
    })
  }

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

  async read(ref: BlobRef): Promise<Uint8Array | null> {
    for (let at: BlobRef | undefined = ref; at !== undefined; at = this.#moved.get(blobKey(at))) {
      const recent = this.#recent.get(at)
      if (recent !== undefined) return recent
      const bytes = await readBlob(this.#store, at)
      if (bytes === null) continue
      this.#recent.read(at, bytes)
      return bytes
    }
    // The next owner removes what it does not need.
    await this.#store.requireLock()
    return null
  }

  /** Leaves nothing of bytes that are not wanted any more. */
  async erase(): Promise<void> {
    if (this.state.erasedIn > this.#saved.file) await this.#turns(() => this.#save())
    await this.sweep()
  }

  /** Brings the checkpoint in line with the log. An owner that has changed nothing leaves nothing. */
  async close(): Promise<void> {
    try {
      await this.#turns(async () => {
        if (this.#failure !== null || (this.#claim.followsCheckpoint && (await this.#withdraw()))) return
        if (this.#isWorthSaving) await this.#save()
      })
    } catch (error) {
      this.#failure ??= { error }
      throw error
    } finally {
      await this.#sweeps(async () => {})
    }
  }

  /** Ends it where nothing may be changed. */
  async refuse(): Promise<void> {
    if (!(await this.#turns(() => this.#withdraw()))) await this.close()
  }

  /** Takes the claim back, if nothing was committed since. In a bucket a late removal could hit a later owner's. */
  async #withdraw(): Promise<boolean> {
    const { end } = this.#claim
    if (this.state.logEnd !== end || this.#store.extend === undefined) return false
    const path = commitPath(end.file)
    this.#failure = { error: takenOver(path) }
    await this.#store.remove(path)
    return true
  }

  get #isWorthSaving(): boolean {
    if (this.state.logEnd.file === this.#saved.file) return false
    return this.#saved.bytes <= SMALL_BYTES || 8 * this.#entryBytes >= this.#saved.bytes
  }

  /** Never rejects: whoever waits gets the error. */
  async #writeWaiting(): Promise<void> {
    const taken = this.#waiting
    this.#waiting = []
    if (taken.length === 0) return
    try {
      if (this.#failure !== null) throw this.#failure.error
      const blobs = await this.#append(taken)
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

  /** @returns the location of the bytes of each part; null: the file is there already */
  async #write(parts: readonly CommitPart[], file: number): Promise<readonly (readonly BlobRef[])[] | null> {
    requireOpenShards(parts, this.state)
    const { logEnd } = this.state
    const commit = encodeCommit(logEnd, parts, file)
    const path = commitPath(file)
    if (file === logEnd.file) await this.#store.extend!(path, logEnd.bytes, commit.chunks)
    else if (!(await this.#store.create(path, commit.chunks))) return null
    for (const { entries, blobs } of commit.parts) this.#fold.apply(entries, commit.end, blobs)
    this.#entryBytes += commit.chunks[0]!.byteLength
    for (const [i, { blobs }] of commit.parts.entries()) {
      for (const [j, ref] of blobs.entries()) {
        this.#blobBytes += ref.bytes
        this.#recent.committed(ref, parts[i]!.blobs[j]!)
      }
    }
    return commit.parts.map(({ blobs }) => blobs)
  }

  /** @throws ExportError `locked` when the file is there: only another owner can have made it */
  async #append(parts: readonly CommitPart[]): Promise<readonly (readonly BlobRef[])[]> {
    const file = this.#nextFile
    const blobs = await this.#write(parts, file)
    if (blobs === null) throw takenOver(commitPath(file))
    return blobs
  }

  /** The file of the next commit. Those that are to go, or that the checkpoint covers, do not grow. */
  get #nextFile(): number {
    const { logEnd, erasedIn } = this.state
    const { file, bytes } = logEnd
    const grows = this.#store.extend !== undefined && bytes < FILE_BYTES
    return grows && file > Math.max(this.#ended, erasedIn) ? file : file + 1
  }

  async #save(): Promise<void> {
    // What is moved goes into another file.
    this.#ended = this.state.logEnd.file
    const { erasedIn } = this.state
    const small = smallFiles(this.state)
    // What is needed of a file is moved, so that the rest of it goes.
    if (small.size > 0 || erasedIn > this.#saved.file)
      await this.#moveBlobs((file) => small.has(file) || file <= erasedIn)
    const { file } = this.state.logEnd
    this.#ended = file
    this.#saved = { file, bytes: await saveCheckpoint(this.#store, this.state) }
    this.#entryBytes = 0
    this.#blobBytes = 0
    // Commits go on meanwhile. A failure is no reason to end a run: a later sweep repeats it.
    void this.sweep().catch(() => {})
  }

  /** Commits bytes again that are in some files, without an entry: the checkpoint that follows says where they are. */
  async #moveBlobs(isMoving: (file: number) => boolean): Promise<void> {
    for await (const found of blobsToMove(this.state, isMoving, (ref) => this.read(ref))) {
      const [blobs] = await this.#append([{ entries: [], blobs: [...found.values()] }])
      for (const [i, ref] of [...found.keys()].entries()) this.#moved.set(blobKey(ref), blobs![i]!)
    }
    // Until it is saved, the former one needs its files.
    this.#saved = { ...this.#saved, file: 0 }
    this.#fold.move((ref) => this.#moved.get(blobKey(ref)) ?? ref)
    this.#forgetMoves()
  }

  #forgetMoves(): void {
    if (this.#moved.size === 0) return
    const needed = new Set(Array.from(blobsNeeded(this.state), blobKey))
    // The last moves first: bytes may have moved twice.
    for (const [place, to] of [...this.#moved].reverse()) {
      if (needed.has(blobKey(to))) needed.add(place)
      else this.#moved.delete(place)
    }
  }
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
