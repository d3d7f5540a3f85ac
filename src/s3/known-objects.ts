import type { Bucket } from './requests/bucket.ts'
import type { Condition } from './requests/connection.ts'
import { type Chunks, firstBytes, type UploadOptions } from './requests/uploads.ts'
import { findFile, newEpoch, removeBehind, type StoredFile } from './stored-file.ts'

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

// Uploaded in one request up to this size; S3 takes up to 5 GiB.
const ONE_REQUEST_BYTES = 8 << 20

/**
 * The objects of a data set, by their names, with what one owner knows of them (null: a reader, or a writer without the
 * lock). A public name is written only if its object is the one that this owner last saw, see {@link Condition}. Methods
 * throw {@link Conflict} where it is another one, and what the SDK throws.
 */
export class KnownObjects {
  readonly bucket: Bucket
  readonly owner: Owner | null
  /** Files in the staging prefix, by name. */
  readonly #known = new Map<string, StoredFile>()
  /** ETags of public names as this owner last saw them; null: there was no object. */
  readonly #seen = new Map<string, string | null>()
  /** Names in the staging prefix that something was moved to. */
  readonly #moved = new Set<string>()

  constructor(bucket: Bucket, owner: Owner | null) {
    this.bucket = bucket
    this.owner = owner
  }

  nameOf(path: string): string {
    return this.owner?.objectName(path) ?? path
  }

  isOwn(name: string): boolean {
    return this.owner?.has(name) === true
  }

  /** Whether {@link find} takes no request. */
  isKnown(name: string): boolean {
    return this.#known.has(name)
  }

  /** @returns null when there is none */
  async find(name: string): Promise<StoredFile | null> {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const isOwn = this.isOwn(name)
    if (isOwn && this.owner?.mayHold(name) === false && !this.#moved.has(name)) return null
    const file = await findFile(this.bucket, name)
    if (isOwn && file !== null) this.#known.set(name, file)
    else this.#sawFirst(name, file?.etag ?? null)
    return file
  }

  /** An object and its metadata; null when there is none. */
  async getWhole(name: string): ReturnType<Bucket['getWhole']> {
    const got = await this.bucket.getWhole(name)
    this.#sawFirst(name, got?.head.etag ?? null)
    return got
  }

  /** Writes one object, in parts where it is large. @param mayGrow it gets an epoch */
  async write(name: string, chunks: Chunks, mayGrow: boolean): Promise<StoredFile> {
    const condition = await this.conditionFor(name)
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
        ? await this.bucket.put(name, Buffer.concat(beginning), { epoch, condition })
        : await this.upload(name, counted(), { epoch, condition })
    const file = {
      name,
      etag,
      epoch,
      segments: [{ name, start: 0, size: total }],
      size: total,
      isSealed: false,
      stale: [],
      seals: [],
    }
    this.note(file)
    return file
  }

  upload(name: string, chunks: Chunks, options: UploadOptions): Promise<string> {
    if (this.owner === null) return this.bucket.upload(name, chunks, options)
    return this.owner.uploading(name, (unsure) => this.bucket.upload(name, chunks, { ...options, unsure }))
  }

  /** Removes a file, segments first: without the first object nobody would find them. */
  async remove(name: string, file: StoredFile | null): Promise<void> {
    if (file !== null) await removeBehind(this.bucket, file)
    await this.bucket.remove(name)
    this.forget(name)
  }

  /** The condition under which this owner may write a name. */
  async conditionFor(name: string): Promise<Condition | null> {
    if (this.owner === null || this.isOwn(name)) return null
    let etag = this.#seen.get(name)
    if (etag === undefined) {
      etag = (await this.bucket.head(name))?.etag ?? null
      this.#seen.set(name, etag)
    }
    // Checked after the HEAD: as long as this is the owner, the ETag seen is no later owner's.
    await this.owner.require()
    return etag === null ? 'absent' : { etag }
  }

  /** This owner has written a file. */
  note(file: StoredFile): void {
    if (this.isOwn(file.name)) this.#known.set(file.name, file)
    else this.saw(file.name, file.etag)
  }

  /** This owner may write over the object with this ETag. */
  saw(name: string, etag: string | null): void {
    if (this.owner !== null && !this.isOwn(name)) this.#seen.set(name, etag)
  }

  #sawFirst(name: string, etag: string | null): void {
    if (!this.#seen.has(name)) this.saw(name, etag)
  }

  /** This owner may write over the object that it finds next. */
  seeAnew(name: string): void {
    this.#seen.delete(name)
  }

  /** Something was moved to a name. */
  noteMove(name: string): void {
    this.forget(name)
    if (this.isOwn(name)) this.#moved.add(name)
  }

  forget(name: string): void {
    this.#known.delete(name)
    this.#seen.delete(name)
    this.#moved.delete(name)
  }
}
