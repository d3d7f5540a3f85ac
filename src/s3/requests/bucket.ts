import { isBrokenBody, isConflict, isMissing, isUnknownThere, statusOf } from './bucket-error.ts'
import type { BucketLocation } from './client.ts'
import { Connection } from './connection.ts'
import {
  Conflict,
  conditionOf,
  contentType,
  EPOCH,
  type Head,
  metadata,
  newMark,
  type PutOptions,
} from './object.ts'
import { abortUpload, type Chunks, type UploadOptions, upload, uploadsTo } from './uploads.ts'

// Requests whose response body breaks off are repeated.
const BODY_ATTEMPTS = 4

/**
 * The requests that a data set needs, with names relative to its prefix. The SDK repeats a write whose response was lost. So
 * every object carries a mark of the write that made it, by which a conditional write recognizes its own object.
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
