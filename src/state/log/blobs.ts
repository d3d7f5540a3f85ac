import { inGroups, sideBySide } from '../../core/index.ts'
import type { CheckpointState } from '../checkpoint/fold-journal.ts'
import type { BlobRef } from './commit.ts'

/** Bytes of the log in memory, the last ones that were committed: for a store where each read is a request. */
export class RecentBlobs {
  readonly #blobs = new Map<string, Uint8Array>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(ref: BlobRef): Uint8Array | undefined {
    return this.#blobs.get(blobKey(ref))
  }

  /** Takes a copy of what was committed, in place of the oldest. */
  committed(ref: BlobRef, blob: Uint8Array): void {
    if (ref.bytes > this.#maxBytes) return
    for (const [place, { byteLength }] of this.#blobs) {
      if (this.#bytes + ref.bytes <= this.#maxBytes) break
      this.#blobs.delete(place)
      this.#bytes -= byteLength
    }
    this.read(ref, new Uint8Array(blob))
  }

  /** Takes what was read, if there is room. */
  read(ref: BlobRef, blob: Uint8Array): void {
    if (this.#bytes + ref.bytes > this.#maxBytes || this.#blobs.has(blobKey(ref))) return
    this.#blobs.set(blobKey(ref), blob)
    this.#bytes += blob.byteLength
  }
}

/** The same for the same bytes only. No bytes lie where the next ones do. */
export function blobKey({ file, offset, bytes }: BlobRef): string {
  return `${file} ${offset} ${bytes}`
}

/** Bytes of the log that are still needed: rows of open shards, ids of chains, and rejected items. */
export function* blobsNeeded({ openShards, chains, rejected, redo }: CheckpointState): Generator<BlobRef> {
  for (const { batches } of openShards.values()) for (const { at } of batches) yield at
  for (const { ids } of chains.values()) yield* ids
  for (const each of [rejected, redo.rejected]) for (const blobs of each.values()) yield* blobs
}

/** As many small files stay where they are. A feed leaves one with each page of each run, for ever. */
const MAX_FILES = 4
/** A file is small when fewer of its bytes than these are still needed. */
const SMALL_BYTES = 64 << 10
const COMMIT_BYTES = 8 << 20

/** Small files whose bytes move into one, unless they are few: a resume reads each file from a bucket. */
export function smallFiles(state: CheckpointState): ReadonlySet<number> {
  const needed = new Map<number, number>()
  for (const { file, bytes } of blobsNeeded(state)) needed.set(file, (needed.get(file) ?? 0) + bytes)
  const small = new Set([...needed].flatMap(([file, bytes]) => (bytes < SMALL_BYTES ? file : [])))
  return small.size <= MAX_FILES ? new Set() : small
}

/** Bytes that are still needed of some files, and where they are, as much at a time as a commit takes. */
export async function* blobsToMove(
  state: CheckpointState,
  isMoving: (file: number) => boolean,
  read: (ref: BlobRef) => Promise<Uint8Array | null>,
): AsyncGenerator<ReadonlyMap<BlobRef, Uint8Array>> {
  const moving = Array.from(blobsNeeded(state)).filter(({ file }) => isMoving(file))
  for (const some of inGroups(moving, COMMIT_BYTES, ({ bytes }) => bytes)) yield await found(some, read)
}

async function found(
  refs: readonly BlobRef[],
  read: (ref: BlobRef) => Promise<Uint8Array | null>,
): Promise<ReadonlyMap<BlobRef, Uint8Array>> {
  const blobs = new Map<BlobRef, Uint8Array>()
  await sideBySide(refs, async (ref) => {
    const blob = await read(ref)
    // What is lost or changed stays where it is: the next resume invalidates what depends on it.
    if (blob !== null) blobs.set(ref, blob)
  })
  return blobs
}
