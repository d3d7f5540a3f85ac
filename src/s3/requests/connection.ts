import { randomBytes } from 'node:crypto'
import type { S3Client } from '@aws-sdk/client-s3'
import { isConflict, isMissing, statusOf } from './bucket-error.ts'
import { type BucketLocation, type Client, openClient, type Sdk } from './client.ts'

/** Metadata of an object. */
export type Head = {
  readonly size: number
  readonly etag: string
  /** The epoch of the file's segments; null: it has none. See {@link StoredFile}. */
  readonly epoch: string | null
}

/** The condition of a write: the object still has this ETag, or does not exist. */
export type Condition = { readonly etag: string } | 'absent'

export type PutOptions = { readonly epoch?: string | null; readonly condition?: Condition | null }

/** Thrown when the condition of a write does not hold. */
export class Conflict extends Error {}

// Metadata of every object: the epoch of its file's segments, and the write that made it.
export const EPOCH = 'spillway-epoch'
const MARK = 'spillway-write'

export function metadata(mark: string, epoch: string | null): Record<string, string> {
  return { [MARK]: mark, ...(epoch === null ? {} : { [EPOCH]: epoch }) }
}

export function newMark(): string {
  return randomBytes(8).toString('hex')
}

export function conditionOf(condition: Condition | null): { IfMatch?: string; IfNoneMatch?: string } {
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

export function contentType(name: string): string {
  return CONTENT_TYPES[/\.([a-z]+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream'
}

/** A connection to a bucket, opened with the first request. Names are relative to the data set's prefix. */
export class Connection {
  readonly #location: BucketLocation
  #client: Promise<Client> | null = null

  constructor(location: BucketLocation) {
    this.#location = location
  }

  get bucket(): string {
    return this.#location.bucket
  }

  async send<T>(work: (client: { sdk: Sdk; s3: S3Client }) => Promise<T>): Promise<T> {
    this.#client ??= openClient(this.#location)
    return work(await this.#client)
  }

  object(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.bucket, Key: this.key(name) }
  }

  key(name: string): string {
    const { prefix } = this.#location
    return prefix === '' ? name : `${prefix}/${name}`
  }

  /** Metadata of an object, and the mark of the write that made it; null when there is none. */
  async head(name: string): Promise<{ head: Head; mark: string | null } | null> {
    try {
      return await this.send(async ({ sdk, s3 }) => {
        const found = await s3.send(new sdk.HeadObjectCommand(this.object(name)))
        const { [EPOCH]: epoch = null, [MARK]: mark = null } = found.Metadata ?? {}
        return { head: { size: found.ContentLength ?? 0, etag: found.ETag ?? '', epoch }, mark }
      })
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  /**
   * Carries out a conditional write. Repeats it when another write of the same object was under way.
   * @throws Conflict when its condition does not hold
   */
  async conditionally(name: string, mark: string, write: () => Promise<string>): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await write()
      } catch (error) {
        if (!isConflict(error) && !isMissing(error)) throw error
        // The write was carried out, and only the response was lost.
        const found = await this.head(name)
        if (found?.mark === mark) return found.head.etag
        const isRace = error instanceof Error && statusOf(error) === 409
        if (!isRace || attempt === 3) throw new Conflict(name)
      }
    }
  }
}
