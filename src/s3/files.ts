import { ExportError } from '../core/index.ts'
import type { KnownObjects } from './known-objects.ts'
import type { Bucket } from './requests/bucket.ts'
import { Conflict } from './requests/connection.ts'
import type { Chunks } from './requests/uploads.ts'
import { findFile, newEpoch, readFile, removeBehind, type StoredFile, streamFile } from './stored-file.ts'

/** Files below it may have segments. Other readers take all files outside it, so each of those is one object. */
const STATE = '_state/'
const MAX_COPY_BYTES = 5 * 1024 ** 3
// A run may write a file anew while it is read.
const READ_ATTEMPTS = 20

/** The files of a data set in a bucket, by their paths. Methods throw what {@link KnownObjects} throws. */
export class Files {
  readonly #objects: KnownObjects
  readonly #bucket: Bucket

  constructor(objects: KnownObjects) {
    this.#objects = objects
    this.#bucket = objects.bucket
  }

  /** @returns null when there is none */
  find(path: string): Promise<StoredFile | null> {
    return this.#objects.find(this.#objects.nameOf(path))
  }

  /** @returns null when there is no such file */
  async readWhole(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
    const name = this.#objects.nameOf(path)
    return this.#again(async () => {
      if (this.#objects.isKnown(name)) return this.read(path, 0, Number.POSITIVE_INFINITY)
      const got = await this.#objects.getWhole(name)
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
    await this.#objects.write(this.#objects.nameOf(path), chunks, path.startsWith(STATE))
    if (before !== null) await removeBehind(this.#bucket, before)
  }

  /**
   * Moves a file: by a copy on the server, or by an upload. A new owner moves the sources of copies away and aborts uploads,
   * so a former owner can't publish any more.
   */
  async publish(from: string, to: string): Promise<void> {
    const [source, target] = [this.#objects.nameOf(from), this.#objects.nameOf(to)]
    if (this.#objects.owner !== null && !this.#objects.isOwn(source) && !this.#objects.isOwn(target)) {
      throw new Error('a move past the staging prefix')
    }
    const file = await this.find(from)
    if (file === null) {
      if ((await findFile(this.#bucket, target)) !== null) return
      return this.#missing(from)
    }
    if (source === target) return
    if (!this.#objects.isOwn(source)) await this.#objects.owner?.require()
    const epoch = to.startsWith(STATE) ? newEpoch() : null
    if (to.startsWith(STATE) && !this.#objects.isOwn(target)) {
      await this.write(to, streamFile(this.#bucket, file, 0, file.size))
    } else {
      if (file.segments.length > 1 || file.size > MAX_COPY_BYTES) {
        const chunks = streamFile(this.#bucket, file, 0, file.size)
        await this.#objects.upload(target, chunks, { size: file.size, epoch })
      } else if (!(await this.#bucket.copy(source, target, epoch))) return this.#missing(from)
      this.#objects.noteMove(target)
    }
    await this.#objects.remove(source, file)
  }

  /** Gives a path the content of a file from another store. */
  async bring(path: string, chunks: Chunks): Promise<void> {
    const name = this.#objects.nameOf(path)
    await this.#objects.owner?.require()
    this.#objects.forget(name)
    await this.#objects.write(name, chunks, false)
  }

  async remove(path: string): Promise<void> {
    const name = this.#objects.nameOf(path)
    if (!this.#objects.isOwn(name)) await this.#objects.owner?.require()
    await this.#objects.remove(name, path.startsWith(STATE) ? await this.find(path) : null)
  }

  async removeFolder(folder: string): Promise<void> {
    const start = `${this.#objects.nameOf(folder)}/`
    if (!this.#objects.isOwn(start)) await this.#objects.owner?.require()
    for await (const { name } of this.#bucket.objects(start)) {
      await this.#bucket.remove(name)
      this.#objects.forget(name)
    }
    await this.remove(folder)
  }

  /** Reads again when the file was written anew in the meantime. */
  async #again<T>(read: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read()
      } catch (error) {
        if (!(error instanceof Conflict) || this.#objects.owner !== null || attempt === READ_ATTEMPTS)
          throw error
      }
    }
  }

  async #there(path: string): Promise<StoredFile> {
    return (await this.find(path)) ?? this.#missing(path)
  }

  async #missing(path: string): Promise<never> {
    await this.#objects.owner?.require()
    throw new ExportError(
      'storage',
      'The object is gone',
      path,
      'Check that nothing else clears load.path, then run again.',
    )
  }
}
