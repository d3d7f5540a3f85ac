import type { S3Client } from '@aws-sdk/client-s3'
import { isConflict, isMissing, statusOf } from './bucket-error.ts'
import { type BucketLocation, type Client, openClient, type Sdk } from './client.ts'
import { Conflict, EPOCH, type Head, MARK } from './object.ts'

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
