import { createHmac, createSecretKey } from 'node:crypto'

/** Characters of a digest: SHA-256 in hex. */
export const DIGEST_LENGTH = 64

/** Values kept in each of the two generations. At most some 20 MB with both full of the longest values. */
const MAX_CACHED = 32_768
/** Longer values are rarely repeated, and would make the cache large. */
const MAX_CACHED_LENGTH = 128

/**
 * HMAC-SHA256 in hex of the bytes at [start, end). Passwords and identities repeat, and a digest costs far
 * more than a look-up, so digests are cached in two generations: when the younger is full it becomes the
 * older, and what is still in use moves over at its next look-up. That needs no bookkeeping per hit.
 */
export function keyedDigest(key: Uint8Array): (bytes: Buffer, start: number, end: number) => string {
  const secretKey = createSecretKey(key)
  let young = new Map<string, string>()
  let old = new Map<string, string>()

  const compute = (bytes: Uint8Array): string => createHmac('sha256', secretKey).update(bytes).digest('hex')

  return (bytes, start, end) => {
    if (end - start > MAX_CACHED_LENGTH) return compute(bytes.subarray(start, end))
    // One character per byte: cheaper to make than decoded text, and just as distinct.
    const value = bytes.toString('latin1', start, end)
    const known = young.get(value)
    if (known !== undefined) return known
    const digest = old.get(value) ?? compute(bytes.subarray(start, end))
    if (young.size >= MAX_CACHED) {
      old = young
      young = new Map()
    }
    young.set(value, digest)
    return digest
  }
}
