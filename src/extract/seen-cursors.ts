import { createHash } from 'node:crypto'

/**
 * The cursors that a chain has met, as 48 bits of hash each: enough to tell apart the pages of one chain
 * (one chance in 50,000 of a false alarm among 100,000), and small enough for chains of any length.
 */
export type SeenCursors = {
  has(cursor: string): boolean
  add(cursor: string): void
}

/** @param cursors those of the chain so far */
export function seenCursors(cursors: Iterable<string> = []): SeenCursors {
  const hashes = new Set<number>()
  for (const cursor of cursors) hashes.add(hashOf(cursor))
  return {
    has: (cursor) => hashes.has(hashOf(cursor)),
    add: (cursor) => {
      hashes.add(hashOf(cursor))
    },
  }
}

const HASH_BYTES = 6

function hashOf(cursor: string): number {
  return createHash('sha1').update(cursor).digest().readUIntBE(0, HASH_BYTES)
}
