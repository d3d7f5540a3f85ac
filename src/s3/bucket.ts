import { randomBytes } from 'node:crypto'
import type { S3Client } from '@aws-sdk/client-s3'
import { codeOf, statusOf } from './bucket-error.ts'
import { type BucketPlace, type Client, openClient, type Sdk } from './client.ts'

/** What the store says of an object. */
export type Head = {
  readonly size: number
  readonly etag: string
  /** Where the file goes on behind this object; null when it does not. See {@link StoredFile}. */
  readonly epoch: string | null
}

/** What has to be so for a write to be carried out: the object is still the one with this ETag, or there is none. */
export type Condition = { readonly etag: string } | 'absent'

export type PutOptions = { readonly epoch?: string | null; readonly condition?: Condition | null }

/** Thrown when an object is not, or no longer, what a write was to replace. */
export class Conflict extends Error {}

// The least part that S3 takes is 5 MiB; whatever is longer than this goes up in parts.
const PART_BYTES = 8 << 20
const MAX_PARTS = 10_000
const PARTS_AT_ONCE = 3
// Bodies that break off half-way are asked for again.
const BODY_ATTEMPTS = 4

/**
 * The requests that a data set needs, with names relative to its prefix. A write whose answer was lost is sent again by
 * the SDK, so every object carries a mark of the write that made it: by that mark a conditional write knows its own.
 */
export class Bucket {
  readonly #place: BucketPlace
  #client: Promise<Client> | null = null

  constructor(place: BucketPlace) {
    this.#place = place
  }

  async head(name: string): Promise<Head | null> {
    return (await this.#look(name))?.head ?? null
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

  /** A whole object, and what the store says of it; null when there is none. */
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
        return await this.#send(async ({ sdk, s3 }) => {
          const answer = await s3.send(
            new sdk.GetObjectCommand({
              ...this.#object(name),
              ...(range === null ? {} : { Range: `bytes=${range[0]}-${range[1] - 1}` }),
              ...(etag === null ? {} : { IfMatch: etag }),
            }),
          )
          const bytes = new Uint8Array((await answer.Body?.transformToByteArray()) ?? [])
          const { [EPOCH]: epoch = null } = answer.Metadata ?? {}
          return { bytes, head: { size: bytes.byteLength, etag: answer.ETag ?? '', epoch } }
        })
      } catch (error) {
        if (isMissing(error)) return null
        if (isConflict(error)) throw new Conflict(name)
        // Nothing lies in the range.
        if (error instanceof Error && statusOf(error) === 416)
          return { bytes: new Uint8Array(), head: { size: 0, etag: '', epoch: null } }
        // What the SDK itself gave up has been tried often enough; it does not look after bodies.
        if (attempt === BODY_ATTEMPTS || !isBrokenBody(error)) throw error
      }
    }
  }

  /** @returns its ETag @throws Conflict when the condition does not hold */
  async put(name: string, body: Uint8Array, options: PutOptions = {}): Promise<string> {
    const mark = newMark()
    const put = (): Promise<string> =>
      this.#send(async ({ sdk, s3 }) => {
        const { ETag = '' } = await s3.send(
          new sdk.PutObjectCommand({
            ...this.#object(name),
            Body: body,
            ContentType: contentType(name),
            Metadata: metadata(mark, options.epoch ?? null),
            ...conditionOf(options.condition ?? null),
          }),
        )
        return ETag
      })
    return this.#conditionally(name, mark, put)
  }

  /**
   * Gives `to` the content of an object of at most 5 GiB, in one step on the server; by way of here where the store does
   * not know how.
   * @param epoch that of the copy; undefined: as it is with the original
   * @returns false when there is no such object
   */
  async copy(from: string, to: string, epoch?: string | null): Promise<boolean> {
    try {
      await this.#send(({ sdk, s3 }) =>
        s3.send(
          new sdk.CopyObjectCommand({
            ...this.#object(to),
            CopySource: `${this.#place.bucket}/${this.#key(from).split('/').map(encodeURIComponent).join('/')}`,
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
      await this.upload(to, [found.bytes], { epoch: epoch === undefined ? found.head.epoch : epoch })
      return true
    }
  }

  /**
   * Makes an object out of chunks, in parts: nothing is seen of it until the last step. Where that step finds the upload
   * ended by somebody else, it fails.
   * @param options.size bytes in all; where it is not known there is room for 80 GB
   * @throws Conflict when the condition does not hold, or the upload was taken away
   */
  async upload(
    name: string,
    chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    options: PutOptions & { readonly size?: number } = {},
  ): Promise<string> {
    const mark = newMark()
    const partBytes = Math.max(PART_BYTES, Math.ceil((options.size ?? 0) / MAX_PARTS))
    const id = await this.#send(async ({ sdk, s3 }) => {
      const { UploadId } = await s3.send(
        new sdk.CreateMultipartUploadCommand({
          ...this.#object(name),
          ContentType: contentType(name),
          Metadata: metadata(mark, options.epoch ?? null),
        }),
      )
      if (UploadId === undefined) throw new Error('an upload without id')
      return UploadId
    })
    try {
      const parts = await this.#sendParts(name, id, blocks(chunks, partBytes))
      const complete = (): Promise<string> =>
        this.#send(async ({ sdk, s3 }) => {
          const { ETag = '' } = await s3.send(
            new sdk.CompleteMultipartUploadCommand({
              ...this.#object(name),
              UploadId: id,
              MultipartUpload: { Parts: parts },
              ...conditionOf(options.condition ?? null),
            }),
          )
          return ETag
        })
      return await this.#conditionally(name, mark, complete)
    } catch (error) {
      await this.#abort(this.#key(name), id).catch(() => {})
      throw error
    }
  }

  async remove(name: string): Promise<void> {
    await this.#send(({ sdk, s3 }) => s3.send(new sdk.DeleteObjectCommand(this.#object(name))))
  }

  /** Every object whose name begins so, in order. */
  async *objects(start: string): AsyncGenerator<{ readonly name: string; readonly size: number }> {
    const cut = this.#key('').length
    for (let token: string | undefined; ; ) {
      const page = await this.#send(({ sdk, s3 }) =>
        s3.send(
          new sdk.ListObjectsV2Command({
            Bucket: this.#place.bucket,
            Prefix: this.#key(start),
            ContinuationToken: token,
          }),
        ),
      )
      for (const { Key = '', Size = 0 } of page.Contents ?? []) yield { name: Key.slice(cut), size: Size }
      token = page.NextContinuationToken
      if (token === undefined || page.IsTruncated !== true) return
    }
  }

  /** What lies directly in a folder: objects and folders, by their last names. */
  async *names(folder: string): AsyncGenerator<string> {
    const prefix = this.#key(folder === '' ? '' : `${folder}/`)
    for (let token: string | undefined; ; ) {
      const page = await this.#send(({ sdk, s3 }) =>
        s3.send(
          new sdk.ListObjectsV2Command({
            Bucket: this.#place.bucket,
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

  /** Ends every upload that is under way below the names given: what a killed process left, or a late one still holds. */
  async abortUploads(isOurs: (name: string) => boolean): Promise<void> {
    try {
      await this.#abortUploads(isOurs)
    } catch (error) {
      // Some stores can't tell; a rule of theirs may end what is left.
      if (!isUnknownThere(error)) throw error
    }
  }

  async #abortUploads(isOurs: (name: string) => boolean): Promise<void> {
    const start = this.#key('')
    for (let from: { KeyMarker?: string; UploadIdMarker?: string } = {}; ; ) {
      const page = await this.#send(({ sdk, s3 }) =>
        s3.send(new sdk.ListMultipartUploadsCommand({ Bucket: this.#place.bucket, Prefix: start, ...from })),
      )
      for (const { Key = '', UploadId = '' } of page.Uploads ?? []) {
        if (isOurs(Key.slice(start.length))) await this.#abort(Key, UploadId)
      }
      if (page.IsTruncated !== true || page.NextKeyMarker === undefined) return
      from = {
        KeyMarker: page.NextKeyMarker,
        ...(page.NextUploadIdMarker === undefined ? {} : { UploadIdMarker: page.NextUploadIdMarker }),
      }
    }
  }

  async #sendParts(
    name: string,
    id: string,
    bodies: AsyncGenerator<readonly [number: number, body: Uint8Array]>,
  ): Promise<{ PartNumber: number; ETag: string }[]> {
    const parts: { PartNumber: number; ETag: string }[] = []
    const lane = async (): Promise<void> => {
      for await (const [PartNumber, Body] of {
        [Symbol.asyncIterator]: () => ({ next: () => bodies.next() }),
      }) {
        const { ETag = '' } = await this.#send(({ sdk, s3 }) =>
          s3.send(new sdk.UploadPartCommand({ ...this.#object(name), UploadId: id, PartNumber, Body })),
        )
        parts.push({ PartNumber, ETag })
      }
    }
    const results = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE }, lane))
    for (const result of results) if (result.status === 'rejected') throw result.reason
    return parts.sort((a, b) => a.PartNumber - b.PartNumber)
  }

  async #abort(Key: string, UploadId: string): Promise<void> {
    try {
      await this.#send(({ sdk, s3 }) =>
        s3.send(new sdk.AbortMultipartUploadCommand({ Bucket: this.#place.bucket, Key, UploadId })),
      )
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }

  /** Carries out a conditional write, again where another one of the same object was under way. */
  async #conditionally(name: string, mark: string, write: () => Promise<string>): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await write()
      } catch (error) {
        if (!isConflict(error) && !isMissing(error)) throw error
        // Carried out, and only the answer was lost.
        const found = await this.#look(name)
        if (found?.mark === mark) return found.head.etag
        const isRace = error instanceof Error && statusOf(error) === 409
        if (!isRace || attempt === 3) throw new Conflict(name)
      }
    }
  }

  async #look(name: string): Promise<{ head: Head; mark: string | null } | null> {
    try {
      return await this.#send(async ({ sdk, s3 }) => {
        const found = await s3.send(new sdk.HeadObjectCommand(this.#object(name)))
        const { [EPOCH]: epoch = null, [MARK]: mark = null } = found.Metadata ?? {}
        return { head: { size: found.ContentLength ?? 0, etag: found.ETag ?? '', epoch }, mark }
      })
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  async #send<T>(work: (client: { sdk: Sdk; s3: S3Client }) => Promise<T>): Promise<T> {
    this.#client ??= openClient(this.#place)
    return work(await this.#client)
  }

  #object(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#place.bucket, Key: this.#key(name) }
  }

  #key(name: string): string {
    const { prefix } = this.#place
    return prefix === '' ? name : `${prefix}/${name}`
  }
}

const EPOCH = 'spillway-epoch'
const MARK = 'spillway-write'

function metadata(mark: string, epoch: string | null): Record<string, string> {
  return { [MARK]: mark, ...(epoch === null ? {} : { [EPOCH]: epoch }) }
}

function newMark(): string {
  return randomBytes(8).toString('hex')
}

function conditionOf(condition: Condition | null): { IfMatch?: string; IfNoneMatch?: string } {
  if (condition === null) return {}
  return condition === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: condition.etag }
}

const CONTENT_TYPES: Record<string, string> = {
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  html: 'text/html; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  gz: 'application/gzip',
  parquet: 'application/vnd.apache.parquet',
}

function contentType(name: string): string {
  return CONTENT_TYPES[/\.([a-z]+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream'
}

function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return code === 'NoSuchKey' || code === 'NotFound' || code === 'NoSuchUpload'
}

function isConflict(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return statusOf(error) === 412 || statusOf(error) === 409
}

/** Whether the store does not know a request at all. */
function isUnknownThere(error: unknown): boolean {
  return error instanceof Error && (statusOf(error) === 501 || statusOf(error) === 405)
}

function isBrokenBody(error: unknown): boolean {
  return error instanceof Error && statusOf(error) === null && codeOf(error) !== null
}

/** Chunks put together and cut, numbered: all blocks but the last are of one size; one empty block for nothing at all. */
async function* blocks(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<readonly [number: number, body: Uint8Array]> {
  let held: Uint8Array[] = []
  let size = 0
  let number = 1
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; ) {
      const taken = chunk.subarray(at, at + bytes - size)
      held.push(taken)
      size += taken.byteLength
      at += taken.byteLength
      if (size < bytes) continue
      yield [number++, Buffer.concat(held)]
      held = []
      size = 0
    }
  }
  if (size > 0 || number === 1) yield [number, Buffer.concat(held)]
}
