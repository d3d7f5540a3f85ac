import { createHash } from 'node:crypto'
import { ExportError } from '../core/index.ts'

/**
 * The cursors that a chain has met, as 48 bits of hash each: enough to tell apart the pages of one
 * chain (one chance in 50,000 of a false alarm among 100,000), and small enough for every checkpoint.
 */
export type SeenCursors = {
  has(cursor: string): boolean
  add(cursor: string): void
  /** Base64 of six bytes a cursor; `seenCursors` reads it back. */
  toJSON(): string
}

const HASH_BYTES = 6

/** @throws ExportError `damaged` when the text is no such list */
export function seenCursors(serialised = ''): SeenCursors {
  const hashes = parseHashes(serialised)
  return {
    has: (cursor) => hashes.has(hashOf(cursor)),
    add: (cursor) => {
      hashes.add(hashOf(cursor))
    },
    toJSON() {
      const bytes = Buffer.alloc(hashes.size * HASH_BYTES)
      let at = 0
      for (const hash of hashes) at = bytes.writeUIntBE(hash, at, HASH_BYTES)
      return bytes.toString('base64')
    },
  }
}

function parseHashes(serialised: string): Set<number> {
  const bytes = Buffer.from(serialised, 'base64')
  if (bytes.length % HASH_BYTES !== 0 || bytes.toString('base64') !== serialised) {
    throw new ExportError(
      'damaged',
      'The list of cursors already met cannot be read',
      'checkpoint',
      'Start this pipeline again with --fresh.',
    )
  }
  const hashes = new Set<number>()
  for (let at = 0; at < bytes.length; at += HASH_BYTES) hashes.add(bytes.readUIntBE(at, HASH_BYTES))
  return hashes
}

function hashOf(cursor: string): number {
  return createHash('sha1').update(cursor).digest().readUIntBE(0, HASH_BYTES)
}
