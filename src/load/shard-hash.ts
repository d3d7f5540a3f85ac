import { createHash } from 'node:crypto'

/** SHA-256 over the bytes of a shard, added in order. */
export type ShardHash = {
  /** The next call of the coder may overwrite the bytes that its last call returned. */
  update(bytes: Uint8Array): void
  /** The digest in hex. Call it once. */
  digest(): Promise<string>
}

/** Hashes in the calling thread. */
export function shardHash(): ShardHash {
  const hash = createHash('sha256')
  return {
    update: (bytes) => void hash.update(bytes),
    digest: async () => hash.digest('hex'),
  }
}

/** A thread that hashes. It serves calls in their order. */
export type HashThread = {
  /** Adds bytes to the hash; the first call begins it. */
  update(segments: readonly Uint8Array[]): Promise<unknown>
  /** Adds bytes to a hash that has begun, and ends it. */
  digest(segments: readonly Uint8Array[]): Promise<string>
}

/** Hashing fewer bytes takes less time than a request to another thread. */
const MIN_SENT_BYTES = 64 << 10

/** Hashes in the encoding thread, unless the shard is small. Bytes in shared memory are not copied. */
export function shardHashIn(thread: HashThread): ShardHash {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let hasBegun = false
  const take = (): Uint8Array[] => {
    const segments = held
    held = []
    heldBytes = 0
    return segments
  }
  return {
    update(bytes) {
      const isLarge = bytes.byteLength >= MIN_SENT_BYTES
      held.push(isLarge ? bytes : new Uint8Array(bytes))
      heldBytes += bytes.byteLength
      if (heldBytes < MIN_SENT_BYTES) return
      hasBegun = true
      // If the thread has ended, the digest fails as well.
      thread.update(take()).catch(() => {})
    },
    digest() {
      if (hasBegun) return thread.digest(take())
      const hash = shardHash()
      for (const bytes of take()) hash.update(bytes)
      return hash.digest()
    },
  }
}
