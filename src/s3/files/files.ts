import { randomBytes } from 'node:crypto'
import { ExportError, type Log, shorterThanCounted, sideBySide } from '../../core/index.ts'
import { type Bucket, type Chunks, type Condition, Conflict, type UploadOptions } from '../requests/index.ts'
import { growingLog } from './growing-log.ts'
import { smallLog } from './small-log.ts'
import { findFile, pieceName, readFile, type StoredFile, streamFile } from './stored-file.ts'

/** Whoever may change the data set. */
export type Owner = {
  /** What a path is called in the bucket. */
  place(path: string): string
  /** Whether nobody but this owner changes a name. */
  has(name: string): boolean
  /** Whether there may be something under such a name that this owner has not written. */
  mayHold(name: string): boolean
  /** @throws ExportError `locked` when it is the owner no more */
  require(): Promise<void>
  /**
   * Carries out an upload in parts that whoever takes over can end.
   * @param upload calls `unsure` when something of it may be left in the end
   * @throws ExportError `locked` when it is the owner no more
   */
  uploading<T>(name: string, upload: (unsure: () => void) => Promise<T>): Promise<T>
}

/** Files below it may grow; what is above is read by others, and each is one object. */
const STATE = '_state/'
// What fits goes up in one request; S3 takes up to 5 GiB.
const ONE_REQUEST_BYTES = 8 << 20
const MAX_COPY_BYTES = 5 * 1024 ** 3
// Each object of a file is a request to whoever reads it; so many at most while it grows, and so many when it is opened.
const MAX_PIECES = 250
const MAX_PIECES_AT_START = 32
// A reader may come upon a file in the moment in which a run writes it anew.
const READ_ATTEMPTS = 20

/**
 * The files of a data set in a bucket, by their paths, as one owner may change them (null: nobody's claim stands
 * behind it). A public name is written only as this owner last saw it, see {@link Condition}.
 * Methods throw {@link Conflict} where it has become something else, and what the SDK throws.
 */
export class Files {
  readonly #bucket: Bucket
  readonly #own: Owner | null
  /** What is known of files that nobody else changes. */
  readonly #known = new Map<string, StoredFile>()
  /** ETags of public names as this owner last saw them; null: there was nothing. */
  readonly #seen = new Map<string, string | null>()

  /** Names of this owner's that something was moved to. */
  readonly #moved = new Set<string>()

  constructor(bucket: Bucket, own: Owner | null) {
    this.#bucket = bucket
    this.#own = own
  }

  /** @returns null when there is none */
  async find(path: string): Promise<StoredFile | null> {
    const name = this.#place(path)
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const isOwn = this.#isOwn(name)
    if (isOwn && this.#own?.mayHold(name) === false && !this.#moved.has(name)) return null
    const file = await findFile(this.#bucket, name)
    if (isOwn && file !== null) this.#known.set(name, file)
    else if (this.#own !== null && !this.#seen.has(name)) this.#seen.set(name, file?.etag ?? null)
    return file
  }

  /** @returns null when there is no such file */
  async readWhole(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const name = this.#place(path)
    return this.#again(async () => {
      if (this.#known.has(name)) return this.read(path, 0, Number.POSITIVE_INFINITY)
      const got = await this.#bucket.getWhole(name)
      if (this.#own !== null && !this.#isOwn(name) && !this.#seen.has(name)) {
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
    // What has been given can't be taken back.
    const { chunks, first } = await this.#again(async () => {
      const file = await this.#there(path)
      const chunks = streamFile(this.#bucket, file, 0, Math.min(limit, file.size))
      return { chunks, first: await chunks.next() }
    })
    if (first.done === true) return
    yield first.value
    yield* chunks
  }

  /** Gives a path a content, in one step. */
  async write(path: string, chunks: Chunks): Promise<void> {
    const before = path.startsWith(STATE) ? await this.find(path) : null
    await this.#write(this.#place(path), chunks, path.startsWith(STATE))
    if (before !== null) await this.#removeBehind(before)
  }

  /** Opens a log after its first `size` bytes; what is behind them goes. */
  async openLog(path: string, size: number): Promise<Log> {
    const name = this.#place(path)
    if (size === 0) return this.#logAt(path, null)
    let file = await this.#longEnough(path, size)
    // Of a crash. What ended an epoch stays, for whoever was taken over and still adds to it.
    if (!file.isSealed && !this.#isOwn(name)) await this.#removeAll(file.stale)
    if (file.size > size) file = await this.#cut(name, file, size)
    const isScattered = file.pieces.length > MAX_PIECES_AT_START && !this.#isOwn(name)
    const mayGrow = file.epoch !== null && !file.isSealed
    return this.#logAt(path, mayGrow && !isScattered ? file : await this.#gathered(name, file))
  }

  /** The same for a file that is written anew with each flush. */
  async openSmallLog(path: string, size: number): Promise<Log> {
    const name = this.#place(path)
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
   * Moves a file. What is copied on the server must still be there by then, and an upload must not have been ended:
   * whoever takes over sees to both, so that a late owner gives nothing a name any more.
   */
  async publish(from: string, to: string): Promise<void> {
    const [source, target] = [this.#place(from), this.#place(to)]
    if (this.#own !== null && !this.#isOwn(source) && !this.#isOwn(target)) {
      throw new Error('a move that passes the own names by')
    }
    const file = await this.find(from)
    if (file === null) {
      if ((await findFile(this.#bucket, target)) !== null) return
      return this.#missing(from)
    }
    if (source === target) return
    if (!this.#isOwn(source)) await this.#own?.require()
    const epoch = to.startsWith(STATE) ? newEpoch() : null
    if (to.startsWith(STATE) && !this.#isOwn(target)) {
      await this.write(to, streamFile(this.#bucket, file, 0, file.size))
    } else {
      if (file.pieces.length > 1 || file.size > MAX_COPY_BYTES) {
        const chunks = streamFile(this.#bucket, file, 0, file.size)
        await this.#upload(target, chunks, { size: file.size, epoch })
      } else if (!(await this.#bucket.copy(source, target, epoch))) return this.#missing(from)
      this.#forget(target)
      if (this.#isOwn(target)) this.#moved.add(target)
    }
    await this.#removeFile(source, file)
  }

  /** Gives a path the content of a file that lies elsewhere. */
  async bring(path: string, chunks: Chunks): Promise<void> {
    const name = this.#place(path)
    await this.#own?.require()
    this.#forget(name)
    await this.#write(name, chunks, false)
  }

  async remove(path: string): Promise<void> {
    const name = this.#place(path)
    if (!this.#isOwn(name)) await this.#own?.require()
    await this.#removeFile(name, path.startsWith(STATE) ? await this.find(path) : null)
  }

  async removeFolder(folder: string): Promise<void> {
    const start = `${this.#place(folder)}/`
    if (!this.#isOwn(start)) await this.#own?.require()
    for await (const { name } of this.#bucket.objects(start)) {
      await this.#bucket.remove(name)
      this.#forget(name)
    }
    await this.remove(folder)
  }

  /** Ends the epoch of a file that may grow, where there is one, and gives its content another. */
  async renew(path: string): Promise<void> {
    const name = this.#place(path)
    const file = await findFile(this.#bucket, name)
    if (file !== null && file.epoch !== null) await this.#renewed(name, file)
  }

  #place(path: string): string {
    return this.#own?.place(path) ?? path
  }

  #isOwn(name: string): boolean {
    return this.#own?.has(name) === true
  }

  /** Reads once more what was written anew on the way. */
  async #again<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof Conflict) || this.#own !== null || attempt === READ_ATTEMPTS) throw error
      }
    }
  }

  async #there(path: string): Promise<StoredFile> {
    return (await this.find(path)) ?? this.#missing(path)
  }

  async #missing(path: string): Promise<never> {
    await this.#own?.require()
    throw new ExportError(
      'storage',
      'The object is gone',
      path,
      'Check that nothing else clears load.path, then run again.',
    )
  }

  async #longEnough(path: string, size: number): Promise<StoredFile> {
    const file = await this.find(path)
    // Who is the owner still has found nothing of a later one.
    if (!this.#isOwn(this.#place(path)) || file === null || file.size < size) await this.#own?.require()
    if (file !== null && file.size >= size) return file
    throw shorterThanCounted(path, file?.size ?? 0, size)
  }

  #logAt(path: string, file: StoredFile | null): Log {
    const name = this.#place(path)
    return growingLog(path, file, {
      begin: async (bytes) => {
        // Nothing of what was there counts any more.
        const before = await this.find(path)
        if (!this.#isOwn(name)) await this.#own?.require()
        if (before !== null) await this.#removeBehind(before)
        return this.#write(name, [bytes], true)
      },
      grow: async (file, bytes) => {
        const grown = await this.#grow(name, file, bytes)
        return grown.pieces.length > MAX_PIECES ? this.#gathered(name, grown) : grown
      },
    })
  }

  /** Adds an object to a file. @throws Conflict when somebody else has added one there, or has ended it */
  async #grow(name: string, file: StoredFile, bytes: Uint8Array): Promise<StoredFile> {
    const { epoch, size } = file
    if (epoch === null) throw new Error('a file that can not grow')
    const piece = { name: pieceName(name, epoch, size), start: size, size: bytes.byteLength }
    await this.#bucket.put(piece.name, bytes, { condition: 'absent' })
    const grown = { ...file, pieces: [...file.pieces, piece], size: size + bytes.byteLength }
    if (this.#isOwn(name)) this.#known.set(name, grown)
    return grown
  }

  /** Writes one object, in parts where it is large. @param mayGrow it gets an epoch of its own */
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
      pieces: [{ name, start: 0, size: total }],
      size: total,
      isSealed: false,
      stale: [],
      seals: [],
    }
    this.#note(name, file)
    return file
  }

  #upload(name: string, chunks: Chunks, options: UploadOptions): Promise<string> {
    if (this.#own === null) return this.#bucket.upload(name, chunks, options)
    return this.#own.uploading(name, (unsure) => this.#bucket.upload(name, chunks, { ...options, unsure }))
  }

  /** What has to be so for this owner to write a name. */
  async #conditionFor(name: string): Promise<Condition | null> {
    if (this.#own === null || this.#isOwn(name)) return null
    let etag = this.#seen.get(name)
    if (etag === undefined) {
      etag = (await this.#bucket.head(name))?.etag ?? null
      this.#seen.set(name, etag)
    }
    // Afterwards: who is the owner still has seen nothing of a later one.
    await this.#own.require()
    return etag === null ? 'absent' : { etag }
  }

  /** Takes away what is behind the first `size` bytes. */
  async #cut(name: string, file: StoredFile, size: number): Promise<StoredFile> {
    const [first, ...others] = file.pieces
    // From the end: at no moment is there a gap that later pieces could close.
    await this.#removeAll([...file.stale, ...file.seals])
    for (const piece of others.toReversed()) {
      if (piece.start >= size) await this.#bucket.remove(piece.name)
      else if (piece.start + piece.size > size) {
        const kept = await this.#bucket.get(piece.name, [0, size - piece.start])
        if (kept === null) throw new Conflict(piece.name)
        await this.#bucket.put(piece.name, kept)
      }
    }
    let { etag } = file
    if (first!.size > size) {
      const condition = await this.#conditionFor(name)
      const kept = await readFile(this.#bucket, file, 0, size)
      etag = await this.#bucket.put(name, kept, { epoch: file.epoch, condition })
    }
    const pieces = file.pieces
      .filter(({ start }, i) => i === 0 || start < size)
      .map((piece) => ({ ...piece, size: Math.min(piece.size, size - piece.start) }))
    const shorter = { ...file, etag, pieces, size, isSealed: false, stale: [], seals: [] }
    this.#note(name, shorter)
    return shorter
  }

  async #renewed(name: string, found: StoredFile): Promise<StoredFile> {
    let file = found
    while (file.epoch !== null && !file.isSealed) {
      try {
        const end = pieceName(name, file.epoch, file.size)
        await this.#bucket.put(end, new Uint8Array(), { condition: 'absent' })
        file = { ...file, isSealed: true }
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        // Its owner was quicker: what it added counts.
        const grown = await findFile(this.#bucket, name)
        if (grown?.epoch !== file.epoch) throw error
        file = grown
      }
    }
    const bytes = await readFile(this.#bucket, file, 0, file.size)
    // Cut at random, so that the first object is another one although the content is the same: who still counts on the
    // one before is refused.
    const behind = 1 + (randomBytes(4).readUInt32LE() % Math.max(1, Math.min(bytes.byteLength, 1 << 20)))
    const at = Math.max(0, bytes.byteLength - behind)
    this.#seen.set(name, file.etag)
    let renewed = await this.#write(name, [bytes.subarray(0, at)], true)
    if (at < bytes.byteLength) renewed = await this.#grow(name, renewed, bytes.subarray(at))
    await this.#removeAll(file.pieces.slice(1).map((piece) => piece.name))
    return renewed
  }

  /** The same for a file that nobody else adds to: what is in many objects comes to be in two. */
  async #gathered(name: string, file: StoredFile): Promise<StoredFile> {
    const gathered = await this.#renewed(name, file)
    if (file.epoch !== null) await this.#removeAll([...file.seals, pieceName(name, file.epoch, file.size)])
    return gathered
  }

  /** Removes a file; what is behind its first object goes first, so that nothing is left that nobody finds. */
  async #removeFile(name: string, file: StoredFile | null): Promise<void> {
    if (file !== null) await this.#removeBehind(file)
    await this.#bucket.remove(name)
    this.#forget(name)
  }

  async #removeBehind({ pieces, stale, seals }: StoredFile): Promise<void> {
    await this.#removeAll([...pieces.slice(1).map((piece) => piece.name), ...stale, ...seals])
  }

  #removeAll(names: readonly string[]): Promise<void> {
    return sideBySide(names, (name) => this.#bucket.remove(name))
  }

  #note(name: string, file: StoredFile): void {
    if (this.#isOwn(name)) this.#known.set(name, file)
    else if (this.#own !== null) this.#seen.set(name, file.etag)
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

/** Takes chunks until they are more than `limit` bytes. */
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
