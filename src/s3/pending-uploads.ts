import * as z from 'zod'
import { serial } from '../core/index.ts'
import type { Bucket } from './requests/bucket.ts'

/** A multipart upload that an owner is about to begin, or has begun. */
export const pendingUpload = z.object({
  name: z.string(),
  /** Ids of earlier uploads to the same name, which belong to others. */
  others: z.array(z.string()),
})
export type PendingUpload = z.infer<typeof pendingUpload>

/**
 * The multipart uploads of one owner that are under way. Each is saved before it begins, so that a later owner can abort it
 * without aborting uploads of others: the store does not tell them apart.
 */
export class PendingUploads {
  readonly #bucket: Bucket
  readonly #save: (uploads: readonly PendingUpload[]) => Promise<void>
  readonly #pending = new Set<PendingUpload>()
  /** Whether there was ever one. */
  hasAny = false
  readonly #inTurn = serial()
  /** The next save, which has not begun. */
  #nextSave: Promise<void> | null = null

  /** @param save makes them durable; rejects with `locked` when another owner took over */
  constructor(bucket: Bucket, save: (uploads: readonly PendingUpload[]) => Promise<void>) {
    this.#bucket = bucket
    this.#save = save
  }

  /** @param upload calls `unsure` when an upload may be left whose id it does not know */
  async track<T>(name: string, upload: (unsure: () => void) => Promise<T>): Promise<T> {
    const pending = { name, others: [...(await this.#bucket.uploadsTo(name))] }
    this.hasAny = true
    this.#pending.add(pending)
    let isSure = true
    try {
      await this.#saveAll()
      return await upload(() => {
        isSure = false
      })
    } finally {
      if (isSure) this.#pending.delete(pending)
    }
  }

  /** Resolves when nothing is being saved. */
  get saved(): Promise<void> {
    return this.#inTurn(async () => {})
  }

  /** Aborts uploads that may be left. */
  async end(): Promise<void> {
    await this.saved
    await abortUploads(this.#bucket, this.#pending)
    this.#pending.clear()
  }

  /** Uploads that begin at the same time share a save. */
  #saveAll(): Promise<void> {
    this.#nextSave ??= this.#inTurn(() => {
      this.#nextSave = null
      return this.#save([...this.#pending])
    })
    return this.#nextSave
  }
}

/** Aborts uploads that are still under way. */
export async function abortUploads(bucket: Bucket, uploads: Iterable<PendingUpload>): Promise<void> {
  for (const { name, others } of uploads) {
    for (const id of await bucket.uploadsTo(name)) {
      if (!others.includes(id)) await bucket.abortUpload(name, id)
    }
  }
}
