import type { BlobRef } from '../commit-log.ts'

/** Bytes of the log in memory, the last ones that were committed: for a store where each read is a request. */
export class RecentBlobs {
  readonly #blobs = new Map<string, Uint8Array>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(ref: BlobRef): Uint8Array | undefined {
    return this.#blobs.get(placeOf(ref))
  }

  /** Takes a copy of what was committed, in place of the oldest. */
  committed(ref: BlobRef, blob: Uint8Array): void {
    if (ref.bytes > this.#maxBytes) return
    for (const [place, { byteLength }] of this.#blobs) {
      if (this.#bytes + ref.bytes <= this.#maxBytes) break
      this.#blobs.delete(place)
      this.#bytes -= byteLength
    }
    this.#add(ref, new Uint8Array(blob))
  }

  /** Takes what was read, if there is room. */
  read(ref: BlobRef, blob: Uint8Array): void {
    if (this.#bytes + ref.bytes <= this.#maxBytes) this.#add(ref, blob)
  }

  #add(ref: BlobRef, blob: Uint8Array): void {
    if (this.#blobs.has(placeOf(ref))) return
    this.#blobs.set(placeOf(ref), blob)
    this.#bytes += blob.byteLength
  }
}

/** The same for the same bytes only. */
export function placeOf({ file, offset }: BlobRef): string {
  return `${file} ${offset}`
}
