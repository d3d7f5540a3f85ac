import { createHash, randomBytes } from 'node:crypto'
import { S3Error } from './errors.ts'

export type StoredObject = {
  readonly key: string
  readonly bytes: Buffer
  /** In double quotes, as it goes over the wire. */
  readonly etag: string
  readonly modifiedMs: number
  /** The response headers of the object: `content-type` and `x-amz-meta-*`. */
  readonly headers: Readonly<Record<string, string>>
}

export type Part = { readonly number: number; readonly bytes: Buffer; readonly etag: string }

/** A multipart upload that is neither completed nor aborted. */
export type Upload = {
  readonly id: string
  readonly key: string
  readonly initiatedMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly parts: Map<number, Part>
}

/** The conditions of a write or a delete. */
export type Condition = { readonly ifMatch: string | null; readonly ifNoneMatch: string | null }

export class Bucket {
  readonly objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, Upload>()
  #keys: readonly string[] | null = null

  constructor(readonly name: string) {}

  /** In the order of their bytes, as S3 lists them. */
  get keys(): readonly string[] {
    // Tests add and remove objects as well.
    if (this.#keys?.length !== this.objects.size) this.#keys = inOrder(this.objects.keys())
    return this.#keys
  }

  /** @throws S3Error `NoSuchKey` */
  object(key: string): StoredObject {
    const found = this.objects.get(key)
    if (found === undefined) throw new S3Error('NoSuchKey')
    return found
  }

  /** @throws S3Error `NoSuchUpload` */
  upload(id: string, key: string): Upload {
    const found = this.uploads.get(id)
    if (found === undefined || found.key !== key) throw new S3Error('NoSuchUpload')
    return found
  }

  /**
   * Stores an object, or with null removes it.
   * @throws S3Error `PreconditionFailed` or `NoSuchKey` when the condition does not hold
   */
  change(key: string, { ifMatch, ifNoneMatch }: Condition, object: StoredObject | null): void {
    const before = this.objects.get(key)
    if (ifMatch !== null && !isEtag(ifMatch, this.object(key).etag)) throw new S3Error('PreconditionFailed')
    if (ifNoneMatch !== null && before !== undefined) throw new S3Error('PreconditionFailed')
    if ((object === null) === (before !== undefined)) this.#keys = null
    if (object === null) this.objects.delete(key)
    else this.objects.set(key, object)
  }

  begin(key: string, nowMs: number, headers: Readonly<Record<string, string>>): Upload {
    const id = randomBytes(24).toString('base64url')
    const upload: Upload = { id, key, initiatedMs: nowMs, headers, parts: new Map() }
    this.uploads.set(id, upload)
    return upload
  }
}

/** The entity tag of an object that was uploaded in one request. */
export function plainEtag(bytes: Uint8Array): string {
  return `"${md5(bytes).toString('hex')}"`
}

/** That of an object that was uploaded in parts: a digest of the parts' digests, and their number. */
export function multipartEtag(parts: readonly Part[]): string {
  const digests = parts.map(({ bytes }) => md5(bytes))
  return `"${md5(Buffer.concat(digests)).toString('hex')}-${parts.length}"`
}

/** Whether an entity tag is that of a condition, with or without its quotes. */
export function isEtag(named: string, etag: string): boolean {
  return named === '*' || named.replaceAll('"', '') === etag.replaceAll('"', '')
}

export function inOrder(keys: Iterable<string>): string[] {
  return [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

const md5 = (bytes: Uint8Array): Buffer => createHash('md5').update(bytes).digest()
