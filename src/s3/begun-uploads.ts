import { z } from 'zod'
import { serial } from '../core/index.ts'
import type { Bucket } from './requests/index.ts'

/** An upload in parts that an owner is about to begin, or has begun. */
export const begunUpload = z.object({
  name: z.string(),
  /** Ids of uploads to the same name that were there before: they are somebody else's. */
  others: z.array(z.string()),
})
export type BegunUpload = z.infer<typeof begunUpload>

/**
 * The uploads in parts that one owner has in hand. Each is on record before it begins, so that whoever takes over can end
 * it, and ends no upload that anybody else began: the store does not tell them apart.
 */
export class BegunUploads {
  readonly #bucket: Bucket
  readonly #save: (uploads: readonly BegunUpload[]) => Promise<void>
  readonly #inHand = new Set<BegunUpload>()
  /** Whether there ever was one. */
  hasBegun = false
  readonly #inTurn = serial()
  /** Saves what was added until it begins. */
  #next: Promise<void> | null = null

  /** @param save makes it durable; rejects with `locked` when the owner is none any more */
  constructor(bucket: Bucket, save: (uploads: readonly BegunUpload[]) => Promise<void>) {
    this.#bucket = bucket
    this.#save = save
  }

  /** @param upload calls `unsure` when there may be an upload left of which it does not know the id */
  async run<T>(name: string, upload: (unsure: () => void) => Promise<T>): Promise<T> {
    const begun = { name, others: [...(await this.#bucket.uploadsTo(name))] }
    this.hasBegun = true
    this.#inHand.add(begun)
    let isSure = true
    try {
      await this.#record()
      return await upload(() => {
        isSure = false
      })
    } finally {
      if (isSure) this.#inHand.delete(begun)
    }
  }

  /** Resolves when nothing is being saved. */
  get saved(): Promise<void> {
    return this.#inTurn(async () => {})
  }

  /** Ends what may be left. */
  async end(): Promise<void> {
    await this.saved
    await abortUploads(this.#bucket, this.#inHand)
    this.#inHand.clear()
  }

  /** Uploads that begin side by side share a save. */
  #record(): Promise<void> {
    this.#next ??= this.#inTurn(() => {
      this.#next = null
      return this.#save([...this.#inHand])
    })
    return this.#next
  }
}

/** Ends uploads, where they are still under way. */
export async function abortUploads(bucket: Bucket, uploads: Iterable<BegunUpload>): Promise<void> {
  for (const { name, others } of uploads) {
    for (const id of await bucket.uploadsTo(name)) {
      if (!others.includes(id)) await bucket.abortUpload(name, id)
    }
  }
}
