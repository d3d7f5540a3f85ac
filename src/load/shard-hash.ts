import { createHash } from 'node:crypto'

/** SHA-256 over the bytes of a shard, which come in order. */
export type ShardHash = {
  /** The bytes may be overwritten by the next call of the coder that they come from. */
  update(bytes: Uint8Array): void
  /** In hex, once. */
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

/** A thread that hashes. It works in the order of the calls. */
export type HashThread = {
  /** Adds bytes to a hash, or begins it with them. */
  update(pieces: readonly Uint8Array[]): Promise<unknown>
  /** Adds bytes to a hash that has begun, and ends it. */
  digest(pieces: readonly Uint8Array[]): Promise<string>
}

/** Fewer bytes are hashed in less time than a request to another thread takes. */
const MIN_SENT_BYTES = 64 << 10

/** Hashes in the thread that encodes, unless the shard is small. Bytes in shared memory are not copied. */
export function shardHashIn(thread: HashThread): ShardHash {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let hasBegun = false
  const take = (): Uint8Array[] => {
    const pieces = held
    held = []
    heldBytes = 0
    return pieces
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
