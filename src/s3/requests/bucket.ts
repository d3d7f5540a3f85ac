import { ExportError, sideBySide } from '../../core/index.ts'
import { isBrokenBody, isConflict, isMissing, isUnknownThere, statusOf } from './bucket-error.ts'
import type { BucketLocation } from './client.ts'
import {
  type Condition,
  Conflict,
  Connection,
  conditionOf,
  contentType,
  EPOCH,
  type Head,
  metadata,
  newMark,
  type PutOptions,
} from './connection.ts'
import { abortUpload, type Chunks, type UploadOptions, upload, uploadsTo } from './uploads.ts'

// Requests whose response body breaks off are repeated.
const BODY_ATTEMPTS = 4

/**
 * The requests that a data set needs, with names relative to its prefix. The SDK repeats a write whose response was
 * lost. So every object carries a mark of the write that made it, by which a conditional write recognizes its own
 * object.
 */
export class Bucket {
  readonly #connection: Connection

  constructor(location: BucketLocation) {
    this.#connection = new Connection(location)
  }

  /** For messages: `s3://bucket/prefix`. */
  get address(): string {
    return `s3://${this.#connection.bucket}/${this.#connection.key('')}`.replace(/\/$/, '')
  }

  async head(name: string): Promise<Head | null> {
    return (await this.#connection.head(name))?.head ?? null
  }

  /**
   * @param range bytes `[start, end)`; null: all
   * @returns null when there is no such object
   * @throws Conflict when it is not the one with the ETag given
   */
  async get(
    name: string,
    range: readonly [start: number, end: number] | null = null,
    etag: string | null = null,
  ): Promise<Uint8Array<ArrayBuffer> | null> {
    if (range !== null && range[0] >= range[1]) return new Uint8Array()
    return (await this.#get(name, range, etag))?.bytes ?? null
  }

  /** An object and its metadata; null when there is none. */
  getWhole(name: string): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly head: Head } | null> {
    return this.#get(name, null, null)
  }

  async #get(
    name: string,
    range: readonly [start: number, end: number] | null,
    etag: string | null,
  ): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly head: Head } | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#connection.send(async ({ sdk, s3 }) => {
          const response = await s3.send(
            new sdk.GetObjectCommand({
              ...this.#connection.object(name),
              ...(range === null ? {} : { Range: `bytes=${range[0]}-${range[1] - 1}` }),
              ...(etag === null ? {} : { IfMatch: etag }),
            }),
          )
          const bytes = new Uint8Array((await response.Body?.transformToByteArray()) ?? [])
          const { [EPOCH]: epoch = null } = response.Metadata ?? {}
          return { bytes, head: { size: bytes.byteLength, etag: response.ETag ?? '', epoch } }
        })
      } catch (error) {
        if (isMissing(error)) return null
        if (isConflict(error)) throw new Conflict(name)
        // The object ends before the range.
        if (error instanceof Error && statusOf(error) === 416)
          return { bytes: new Uint8Array(), head: { size: 0, etag: '', epoch: null } }
        // The SDK repeats requests, but not after an error in the response body.
        if (attempt === BODY_ATTEMPTS || !isBrokenBody(error)) throw error
      }
    }
  }

  /** @returns its ETag @throws Conflict when the condition does not hold */
  async put(name: string, body: Uint8Array, options: PutOptions = {}): Promise<string> {
    const mark = newMark()
    const put = (): Promise<string> =>
      this.#connection.send(async ({ sdk, s3 }) => {
        const { ETag = '' } = await s3.send(
          new sdk.PutObjectCommand({
            ...this.#connection.object(name),
            Body: body,
            ContentType: contentType(name),
            Metadata: metadata(mark, options.epoch ?? null),
            ...conditionOf(options.condition ?? null),
          }),
        )
        return ETag
      })
    return this.#connection.conditionally(name, mark, put)
  }

  /**
   * Copies an object of at most 5 GiB in one step on the server, or through this process where the store can't.
   * @param epoch of the copy; undefined: that of the original
   * @returns false when there is no such object
   */
  async copy(from: string, to: string, epoch?: string | null): Promise<boolean> {
    try {
      await this.#connection.send(({ sdk, s3 }) =>
        s3.send(
          new sdk.CopyObjectCommand({
            ...this.#connection.object(to),
            CopySource: `${this.#connection.bucket}/${this.#connection.key(from).split('/').map(encodeURIComponent).join('/')}`,
            ...(epoch === undefined
              ? {}
              : {
                  MetadataDirective: 'REPLACE',
                  Metadata: metadata(newMark(), epoch),
                  ContentType: contentType(to),
                }),
          }),
        ),
      )
      return true
    } catch (error) {
      if (isMissing(error)) return false
      if (!isUnknownThere(error)) throw error
      const found = await this.getWhole(from)
      if (found === null) return false
      await this.put(to, found.bytes, { epoch: epoch === undefined ? found.head.epoch : epoch })
      return true
    }
  }

  /**
   * Makes an object by a multipart upload: it appears with the last step, which fails if the upload was aborted.
   * @param options.size bytes in all; where it is unknown, at most 80 GB
   * @throws Conflict when the condition does not hold, or the upload was aborted
   */
  upload(name: string, chunks: Chunks, options: UploadOptions = {}): Promise<string> {
    return upload(this.#connection, name, chunks, options)
  }

  async remove(name: string): Promise<void> {
    await this.#connection.send(({ sdk, s3 }) =>
      s3.send(new sdk.DeleteObjectCommand(this.#connection.object(name))),
    )
  }

  removeAll(names: Iterable<string>): Promise<void> {
    return sideBySide(names, (name) => this.remove(name))
  }

  /** Every object whose name has this prefix, in order. */
  async *objects(start: string): AsyncGenerator<{ readonly name: string; readonly size: number }> {
    const cut = this.#connection.key('').length
    for (let token: string | undefined; ; ) {
      const page = await this.#connection.send(({ sdk, s3 }) =>
        s3.send(
          new sdk.ListObjectsV2Command({
            Bucket: this.#connection.bucket,
            Prefix: this.#connection.key(start),
            ContinuationToken: token,
          }),
        ),
      )
      for (const { Key = '', Size = 0 } of page.Contents ?? []) yield { name: Key.slice(cut), size: Size }
      token = page.NextContinuationToken
      if (token === undefined || page.IsTruncated !== true) return
    }
  }

  /** Names of the objects and folders directly in a folder. */
  async *names(folder: string): AsyncGenerator<string> {
    const prefix = this.#connection.key(folder === '' ? '' : `${folder}/`)
    for (let token: string | undefined; ; ) {
      const page = await this.#connection.send(({ sdk, s3 }) =>
        s3.send(
          new sdk.ListObjectsV2Command({
            Bucket: this.#connection.bucket,
            Prefix: prefix,
            Delimiter: '/',
            ContinuationToken: token,
          }),
        ),
      )
      for (const { Prefix = '' } of page.CommonPrefixes ?? []) yield Prefix.slice(prefix.length, -1)
      for (const { Key = '' } of page.Contents ?? []) if (Key !== prefix) yield Key.slice(prefix.length)
      token = page.NextContinuationToken
      if (token === undefined || page.IsTruncated !== true) return
    }
  }

  /** Ids of the uploads to this name that are under way; none where the store can't tell. */
  uploadsTo(name: string): Promise<readonly string[]> {
    return uploadsTo(this.#connection, name)
  }

  /** Aborts an upload, if it is under way. */
  abortUpload(name: string, id: string): Promise<void> {
    return abortUpload(this.#connection, name, id)
  }
}

/** An ETag that no object has. */
const NO_ETAG = '"00000000000000000000000000000000"'

/**
 * Writes an object that is not there yet, the first of a data set.
 * @returns its ETag
 * @throws ExportError `config` when the store refuses every condition
 */
export async function putFirst(bucket: Bucket, name: string, content: Uint8Array): Promise<string> {
  try {
    return await bucket.put(name, content, { condition: 'absent' })
  } catch (error) {
    throw isUnknownThere(error) ? unfit(bucket, 'does not know If-None-Match') : error
  }
}

/**
 * Tests whether a store honours conditional writes. Without them two runs would overwrite each other's files unnoticed.
 * If it does not, the object is removed.
 * @param name of an object that exists, and may be written with the same content again
 * @throws ExportError `config` naming the condition that the store ignores
 * @throws Conflict when the object was gone: another run has taken over
 */
export async function requireConditions(bucket: Bucket, name: string, content: Uint8Array): Promise<void> {
  const conditions: readonly [header: string, condition: Condition][] = [
    ['If-None-Match', 'absent'],
    ['If-Match', { etag: NO_ETAG }],
  ]
  for (const [header, condition] of conditions) {
    if (await isHonoured(bucket, name, content, condition)) continue
    // The object exists now in any case. So a second write distinguishes a store that ignores the condition from a
    // missing object.
    const wasGone = condition === 'absent' && (await isHonoured(bucket, name, content, condition))
    await bucket.remove(name)
    if (wasGone) throw new Conflict()
    throw unfit(bucket, `ignores ${header}`)
  }
}

function unfit(bucket: Bucket, what: string): ExportError {
  return new ExportError(
    'config',
    `The store ${what}, so two runs could write over each other without knowing`,
    bucket.address,
    'Write to a store that honours conditional writes: AWS S3, MinIO, R2, Ceph and others do, some in their latest versions only.',
  )
}

async function isHonoured(
  bucket: Bucket,
  name: string,
  content: Uint8Array,
  condition: Condition,
): Promise<boolean> {
  try {
    await bucket.put(name, content, { condition })
    return false
  } catch (error) {
    if (error instanceof Conflict) return true
    throw error
  }
}
