import { randomBytes } from 'node:crypto'
import type { Algorithm, Checksum } from './checksums.ts'
import { md5 } from './checksums.ts'
import { S3Error } from './errors.ts'

export type StoredObject = {
  readonly key: string
  readonly bytes: Buffer
  /** In double quotes, as it goes over the wire. */
  readonly etag: string
  readonly modifiedMs: number
  /** The response headers of the object: `content-type` and others, and `x-amz-meta-*`. */
  readonly headers: Readonly<Record<string, string>>
  readonly checksum: Checksum | null
}

export type Part = {
  readonly number: number
  readonly bytes: Buffer
  readonly etag: string
  readonly modifiedMs: number
  readonly checksum: Checksum | null
}

/** A multipart upload that is neither completed nor aborted. */
export type Upload = {
  readonly id: string
  readonly key: string
  readonly initiatedMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly algorithm: Algorithm | null
  readonly parts: Map<number, Part>
}

/** The conditions of a write or a delete. */
export type Condition = { readonly ifMatch: string | null; readonly ifNoneMatch: string | null }

/** Objects and uploads of one bucket. Others see a change in one step, or not at all. */
export class Bucket {
  readonly objects = new Map<string, StoredObject>()
  readonly uploads = new Map<string, Upload>()
  readonly #pending = new Map<string, number>()
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
    if (found === undefined) throw new S3Error('NoSuchKey', undefined, { Key: key })
    return found
  }

  /** @throws S3Error `NoSuchUpload` */
  upload(id: string, key: string): Upload {
    const found = this.uploads.get(id)
    if (found === undefined || found.key !== key)
      throw new S3Error('NoSuchUpload', undefined, { UploadId: id })
    return found
  }

  /**
   * Stores an object, or with null removes it.
   * @param pause called after the condition is checked and before others see the change
   * @throws S3Error `PreconditionFailed` or `NoSuchKey` when the condition does not hold, `ConditionalRequestConflict`
   *   when there is one and something else happened to the key meanwhile, or is still under way
   */
  async change(
    key: string,
    condition: Condition,
    pause: () => Promise<void> | null,
    object: StoredObject | null,
  ): Promise<void> {
    const before = this.objects.get(key)
    const isConditional = condition.ifMatch !== null || condition.ifNoneMatch !== null
    if (isConditional && this.#pending.has(key)) throw new S3Error('ConditionalRequestConflict')
    requireCondition(condition, before, key)
    const waiting = pause()
    if (waiting !== null) {
      this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1)
      try {
        await waiting
      } finally {
        const others = this.#pending.get(key)! - 1
        if (others === 0) this.#pending.delete(key)
        else this.#pending.set(key, others)
      }
      if (isConditional && this.objects.get(key) !== before) throw new S3Error('ConditionalRequestConflict')
    }
    if (object === null ? before !== undefined : before === undefined) this.#keys = null
    if (object === null) this.objects.delete(key)
    else this.objects.set(key, object)
  }

  begin(
    key: string,
    nowMs: number,
    headers: Readonly<Record<string, string>>,
    algorithm: Algorithm | null,
  ): Upload {
    const id = randomBytes(24).toString('base64url')
    const upload: Upload = { id, key, initiatedMs: nowMs, headers, algorithm, parts: new Map() }
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
  return [...keys]
    .map((key) => [key, Buffer.from(key)] as const)
    .sort((a, b) => Buffer.compare(a[1], b[1]))
    .map(([key]) => key)
}

function requireCondition(
  { ifMatch, ifNoneMatch }: Condition,
  there: StoredObject | undefined,
  key: string,
): void {
  if (ifMatch !== null) {
    if (there === undefined) throw new S3Error('NoSuchKey', undefined, { Key: key })
    if (!isEtag(ifMatch, there.etag))
      throw new S3Error('PreconditionFailed', undefined, { Condition: 'If-Match' })
  }
  if (ifNoneMatch !== null && there !== undefined)
    throw new S3Error('PreconditionFailed', undefined, { Condition: 'If-None-Match' })
}
