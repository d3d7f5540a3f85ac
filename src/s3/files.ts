import { randomBytes } from 'node:crypto'
import { ExportError, type Log, shorterThanCounted, sideBySide } from '../core/index.ts'
import type { Bucket } from './requests/bucket.ts'
import { type Condition, Conflict } from './requests/connection.ts'
import type { Chunks, UploadOptions } from './requests/uploads.ts'
import {
  findFile,
  growingLog,
  readFile,
  type StoredFile,
  segmentName,
  smallLog,
  streamFile,
} from './stored-file.ts'

/** The owner of the data set: a run that may change it. */
export type Owner = {
  /** The name of a path's object in the bucket. */
  objectName(path: string): string
  /** Whether a name is in the staging prefix, where nobody but this owner changes anything. */
  has(name: string): boolean
  /** Whether such a name may hold an object that this owner has not written. */
  mayHold(name: string): boolean
  /** @throws ExportError `locked` when another owner took over */
  require(): Promise<void>
  /**
   * Carries out a multipart upload, which a later owner can abort.
   * @param upload calls `unsure` when parts of it may be left at the end
   * @throws ExportError `locked` when another owner took over
   */
  uploading<T>(name: string, upload: (unsure: () => void) => Promise<T>): Promise<T>
}

/** Files below it may have segments. Other readers take all files outside it, so each of those is one object. */
const STATE = '_state/'
// Uploaded in one request up to this size; S3 takes up to 5 GiB.
const ONE_REQUEST_BYTES = 8 << 20
const MAX_COPY_BYTES = 5 * 1024 ** 3
// Reading a file takes a request for each segment. Files with more segments than this are gathered into fewer objects.
const MAX_SEGMENTS = 250
const MAX_SEGMENTS_WHEN_OPENED = 32
// A run may write a file anew while it is read.
const READ_ATTEMPTS = 20

/**
 * The files of a data set in a bucket, by their paths, as one owner may change them (null: a reader, or a writer without
 * the lock). A public name is written only if its object is the one that this owner last saw, see {@link Condition}.
 * Methods throw {@link Conflict} where it is another one, and what the SDK throws.
 */
export class Files {
  readonly #bucket: Bucket
  readonly #owner: Owner | null
  /** Files in the staging prefix, by name. */
  readonly #known = new Map<string, StoredFile>()
  /** ETags of public names as this owner last saw them; null: there was no object. */
  readonly #seen = new Map<string, string | null>()
  /** Names in the staging prefix that something was moved to. */
  readonly #moved = new Set<string>()

  constructor(bucket: Bucket, owner: Owner | null) {
    this.#bucket = bucket
    this.#owner = owner
  }

  /** @returns null when there is none */
  async find(path: string): Promise<StoredFile | null> {
    const name = this.#objectName(path)
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const isOwn = this.#isOwn(name)
    if (isOwn && this.#owner?.mayHold(name) === false && !this.#moved.has(name)) return null
    const file = await findFile(this.#bucket, name)
    if (isOwn && file !== null) this.#known.set(name, file)
    else if (this.#owner !== null && !this.#seen.has(name)) this.#seen.set(name, file?.etag ?? null)
    return file
  }

  /** @returns null when there is no such file */
  async readWhole(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const name = this.#objectName(path)
    return this.#again(async () => {
      if (this.#known.has(name)) return this.read(path, 0, Number.POSITIVE_INFINITY)
      const got = await this.#bucket.getWhole(name)
      if (this.#owner !== null && !this.#isOwn(name) && !this.#seen.has(name)) {
        this.#seen.set(name, got?.head.etag ?? null)
      }
      if (got === null || got.head.epoch === null) return got?.bytes ?? null
      const file = await this.find(path)
      return file === null ? null : readFile(this.#bucket, file, 0, file.size)
    })
  }

  /** Bytes `[start, end)`, as far as there are any. @throws ExportError `storage` when there is no such file */
  async read(path: string, start: number, end: number): Promise<Uint8Array<ArrayBuffer>> {
    return this.#again(async () => readFile(this.#bucket, await this.#there(path), start, end))
  }

  /** The first bytes of a file, up to `limit`, in chunks. @throws ExportError `storage` when there is no such file */
  async *stream(path: string, limit = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    // Only the first read may be repeated: later chunks are with the caller.
    const { chunks, first } = await this.#again(async () => {
      const file = await this.#there(path)
      const chunks = streamFile(this.#bucket, file, 0, Math.min(limit, file.size))
      return { chunks, first: await chunks.next() }
    })
    if (first.done === true) return
    yield first.value
    yield* chunks
  }

  /** Replaces a file in one step. */
  async write(path: string, chunks: Chunks): Promise<void> {
    const before = path.startsWith(STATE) ? await this.find(path) : null
    await this.#write(this.#objectName(path), chunks, path.startsWith(STATE))
    if (before !== null) await this.#removeBehind(before)
  }

  /** Opens a log after its first `size` bytes; removes what is behind them. */
  async openLog(path: string, size: number): Promise<Log> {
    const name = this.#objectName(path)
    if (size === 0) return this.#logAt(path, null)
    let file = await this.#longEnough(path, size)
    // Left by a crash. The empty segment that ends an epoch stays: a former owner may still append to it.
    if (!file.isSealed && !this.#isOwn(name)) await this.#removeAll(file.stale)
    if (file.size > size) file = await this.#cut(name, file, size)
    const isScattered = file.segments.length > MAX_SEGMENTS_WHEN_OPENED && !this.#isOwn(name)
    const mayGrow = file.epoch !== null && !file.isSealed
    return this.#logAt(path, mayGrow && !isScattered ? file : await this.#gathered(name, file))
  }

  /** The same for a file that each fsync writes anew. */
  async openSmallLog(path: string, size: number): Promise<Log> {
    const name = this.#objectName(path)
    this.#seen.delete(name)
    const file = size === 0 ? await this.find(path) : await this.#longEnough(path, size)
    const bytes = file === null ? new Uint8Array() : await readFile(this.#bucket, file, 0, size)
    const save = async (all: Uint8Array): Promise<void> => {
      await this.#write(name, [all], false)
    }
    if (file !== null && file.size > size) await save(bytes)
    return smallLog(path, bytes, save)
  }

  /**
   * Moves a file: by a copy on the server, or by an upload. A new owner moves the sources of copies away and aborts uploads,
   * so a former owner can't publish any more.
   */
  async publish(from: string, to: string): Promise<void> {
    const [source, target] = [this.#objectName(from), this.#objectName(to)]
    if (this.#owner !== null && !this.#isOwn(source) && !this.#isOwn(target)) {
      throw new Error('a move past the staging prefix')
    }
    const file = await this.find(from)
    if (file === null) {
      if ((await findFile(this.#bucket, target)) !== null) return
      return this.#missing(from)
    }
    if (source === target) return
    if (!this.#isOwn(source)) await this.#owner?.require()
    const epoch = to.startsWith(STATE) ? newEpoch() : null
    if (to.startsWith(STATE) && !this.#isOwn(target)) {
      await this.write(to, streamFile(this.#bucket, file, 0, file.size))
    } else {
      if (file.segments.length > 1 || file.size > MAX_COPY_BYTES) {
        const chunks = streamFile(this.#bucket, file, 0, file.size)
        await this.#upload(target, chunks, { size: file.size, epoch })
      } else if (!(await this.#bucket.copy(source, target, epoch))) return this.#missing(from)
      this.#forget(target)
      if (this.#isOwn(target)) this.#moved.add(target)
    }
    await this.#removeFile(source, file)
  }

  /** Gives a path the content of a file from another store. */
  async bring(path: string, chunks: Chunks): Promise<void> {
    const name = this.#objectName(path)
    await this.#owner?.require()
    this.#forget(name)
    await this.#write(name, chunks, false)
  }

  async remove(path: string): Promise<void> {
    const name = this.#objectName(path)
    if (!this.#isOwn(name)) await this.#owner?.require()
    await this.#removeFile(name, path.startsWith(STATE) ? await this.find(path) : null)
  }

  async removeFolder(folder: string): Promise<void> {
    const start = `${this.#objectName(folder)}/`
    if (!this.#isOwn(start)) await this.#owner?.require()
    for await (const { name } of this.#bucket.objects(start)) {
      await this.#bucket.remove(name)
      this.#forget(name)
    }
    await this.remove(folder)
  }

  /** Ends the epoch of a file that may grow, and writes its content anew with another one. */
  async replaceByCopy(path: string): Promise<void> {
    const name = this.#objectName(path)
    const file = await findFile(this.#bucket, name)
    if (file !== null && file.epoch !== null) await this.#withNewEpoch(name, file)
  }

  #objectName(path: string): string {
    return this.#owner?.objectName(path) ?? path
  }

  #isOwn(name: string): boolean {
    return this.#owner?.has(name) === true
  }

  /** Reads again when the file was written anew in the meantime. */
  async #again<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof Conflict) || this.#owner !== null || attempt === READ_ATTEMPTS) throw error
      }
    }
  }

  async #there(path: string): Promise<StoredFile> {
    return (await this.find(path)) ?? this.#missing(path)
  }

  async #missing(path: string): Promise<never> {
    await this.#owner?.require()
    throw new ExportError(
      'storage',
      'The object is gone',
      path,
      'Check that nothing else clears load.path, then run again.',
    )
  }

  async #longEnough(path: string, size: number): Promise<StoredFile> {
    const file = await this.find(path)
    // Checked after the read: as long as this is the owner, what was found is no later owner's.
    if (!this.#isOwn(this.#objectName(path)) || file === null || file.size < size)
      await this.#owner?.require()
    if (file !== null && file.size >= size) return file
    throw shorterThanCounted(path, file?.size ?? 0, size)
  }

  #logAt(path: string, file: StoredFile | null): Log {
    const name = this.#objectName(path)
    return growingLog(path, file, {
      begin: async (bytes) => {
        // The log begins empty: what was there goes.
        const before = await this.find(path)
        if (!this.#isOwn(name)) await this.#owner?.require()
        if (before !== null) await this.#removeBehind(before)
        return this.#write(name, [bytes], true)
      },
      grow: async (file, bytes) => {
        const grown = await this.#grow(name, file, bytes)
        return grown.segments.length > MAX_SEGMENTS ? this.#gathered(name, grown) : grown
      },
    })
  }

  /** Adds a segment to a file. @throws Conflict when another owner has added one there, or has ended the epoch */
  async #grow(name: string, file: StoredFile, bytes: Uint8Array): Promise<StoredFile> {
    const { epoch, size } = file
    if (epoch === null) throw new Error('a file without an epoch')
    const segment = { name: segmentName(name, epoch, size), start: size, size: bytes.byteLength }
    await this.#bucket.put(segment.name, bytes, { condition: 'absent' })
    const grown = { ...file, segments: [...file.segments, segment], size: size + bytes.byteLength }
    if (this.#isOwn(name)) this.#known.set(name, grown)
    return grown
  }

  /** Writes one object, in parts where it is large. @param mayGrow it gets an epoch */
  async #write(name: string, chunks: Chunks, mayGrow: boolean): Promise<StoredFile> {
    const condition = await this.#conditionFor(name)
    const epoch = mayGrow ? newEpoch() : null
    const { beginning, size, rest } = await firstBytes(chunks, ONE_REQUEST_BYTES)
    let total = size
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      yield* beginning
      for await (const chunk of rest) {
        total += chunk.byteLength
        yield chunk
      }
    }
    const etag =
      size <= ONE_REQUEST_BYTES
        ? await this.#bucket.put(name, Buffer.concat(beginning), { epoch, condition })
        : await this.#upload(name, counted(), { epoch, condition })
    const file = {
      etag,
      epoch,
      segments: [{ name, start: 0, size: total }],
      size: total,
      isSealed: false,
      stale: [],
      seals: [],
    }
    this.#note(name, file)
    return file
  }

  #upload(name: string, chunks: Chunks, options: UploadOptions): Promise<string> {
    if (this.#owner === null) return this.#bucket.upload(name, chunks, options)
    return this.#owner.uploading(name, (unsure) => this.#bucket.upload(name, chunks, { ...options, unsure }))
  }

  /** The condition under which this owner may write a name. */
  async #conditionFor(name: string): Promise<Condition | null> {
    if (this.#owner === null || this.#isOwn(name)) return null
    let etag = this.#seen.get(name)
    if (etag === undefined) {
      etag = (await this.#bucket.head(name))?.etag ?? null
      this.#seen.set(name, etag)
    }
    // Checked after the HEAD: as long as this is the owner, the ETag seen is no later owner's.
    await this.#owner.require()
    return etag === null ? 'absent' : { etag }
  }

  /** Removes what is behind the first `size` bytes. */
  async #cut(name: string, file: StoredFile, size: number): Promise<StoredFile> {
    const [first, ...others] = file.segments
    // From the end, so that at no time a missing segment has others behind it.
    await this.#removeAll([...file.stale, ...file.seals])
    for (const segment of others.toReversed()) {
      if (segment.start >= size) await this.#bucket.remove(segment.name)
      else if (segment.start + segment.size > size) {
        const kept = await this.#bucket.get(segment.name, [0, size - segment.start])
        if (kept === null) throw new Conflict(segment.name)
        await this.#bucket.put(segment.name, kept)
      }
    }
    let { etag } = file
    if (first!.size > size) {
      const condition = await this.#conditionFor(name)
      const kept = await readFile(this.#bucket, file, 0, size)
      etag = await this.#bucket.put(name, kept, { epoch: file.epoch, condition })
    }
    const segments = file.segments
      .filter(({ start }, i) => i === 0 || start < size)
      .map((segment) => ({ ...segment, size: Math.min(segment.size, size - segment.start) }))
    const shorter = { ...file, etag, segments, size, isSealed: false, stale: [], seals: [] }
    this.#note(name, shorter)
    return shorter
  }

  async #withNewEpoch(name: string, found: StoredFile): Promise<StoredFile> {
    let file = found
    while (file.epoch !== null && !file.isSealed) {
      try {
        const end = segmentName(name, file.epoch, file.size)
        await this.#bucket.put(end, new Uint8Array(), { condition: 'absent' })
        file = { ...file, isSealed: true }
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        // The former owner appended first: its segment counts.
        const grown = await findFile(this.#bucket, name)
        if (grown?.epoch !== file.epoch) throw error
        file = grown
      }
    }
    const bytes = await readFile(this.#bucket, file, 0, file.size)
    // Cut at a random offset, so that the first object has another ETag although the content is the same. A former owner's
    // conditional write on the old ETag then fails.
    const behind = 1 + (randomBytes(4).readUInt32LE() % Math.max(1, Math.min(bytes.byteLength, 1 << 20)))
    const cut = Math.max(0, bytes.byteLength - behind)
    this.#seen.set(name, file.etag)
    let renewed = await this.#write(name, [bytes.subarray(0, cut)], true)
    if (cut < bytes.byteLength) renewed = await this.#grow(name, renewed, bytes.subarray(cut))
    await this.#removeAll(file.segments.slice(1).map((segment) => segment.name))
    return renewed
  }

  /** Writes many segments anew as two objects, of a file that no former owner appends to. */
  async #gathered(name: string, file: StoredFile): Promise<StoredFile> {
    const gathered = await this.#withNewEpoch(name, file)
    if (file.epoch !== null) await this.#removeAll([...file.seals, segmentName(name, file.epoch, file.size)])
    return gathered
  }

  /** Removes a file, segments first: without the first object nobody would find them. */
  async #removeFile(name: string, file: StoredFile | null): Promise<void> {
    if (file !== null) await this.#removeBehind(file)
    await this.#bucket.remove(name)
    this.#forget(name)
  }

  async #removeBehind({ segments, stale, seals }: StoredFile): Promise<void> {
    await this.#removeAll([...segments.slice(1).map((segment) => segment.name), ...stale, ...seals])
  }

  #removeAll(names: readonly string[]): Promise<void> {
    return sideBySide(names, (name) => this.#bucket.remove(name))
  }

  #note(name: string, file: StoredFile): void {
    if (this.#isOwn(name)) this.#known.set(name, file)
    else if (this.#owner !== null) this.#seen.set(name, file.etag)
  }

  #forget(name: string): void {
    this.#known.delete(name)
    this.#seen.delete(name)
    this.#moved.delete(name)
  }
}

function newEpoch(): string {
  return randomBytes(6).toString('hex')
}

type Beginning = {
  readonly beginning: readonly Uint8Array[]
  /** Bytes of it; not more than the limit when that is all. */
  readonly size: number
  readonly rest: AsyncIterable<Uint8Array>
}

/** Reads chunks until they are more than `limit` bytes. */
async function firstBytes(chunks: Chunks, limit: number): Promise<Beginning> {
  const from = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
  const beginning: Uint8Array[] = []
  let size = 0
  while (size <= limit) {
    const next = await from.next()
    if (next.done === true) break
    beginning.push(next.value)
    size += next.value.byteLength
  }
  const rest = { [Symbol.asyncIterator]: () => ({ next: async () => from.next() }) }
  return { beginning, size, rest }
}
