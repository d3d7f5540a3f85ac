import { createHmac, createSecretKey } from 'node:crypto'

/** Characters of a digest: SHA-256 in hex. */
export const DIGEST_LENGTH = 64

/** Writes a digest over the text that begins at `start`, and returns where it ends. */
export type KeyedDigest = (bytes: Buffer, start: number, end: number) => number

/**
 * HMAC-SHA256 in hex, in place of the text.
 * @param prefix goes before every text, in ASCII: what has different ones never compares
 */
export function keyedDigest(key: Uint8Array, prefix: string): KeyedDigest {
  // Made once: to take over the bytes of a key costs as much as a short digest.
  const secretKey = createSecretKey(key)
  return (bytes, start, end) => {
    const hmac = createHmac('sha256', secretKey)
    if (prefix !== '') hmac.update(prefix, 'latin1')
    return start + bytes.write(hmac.update(bytes.subarray(start, end)).digest('hex'), start, 'latin1')
  }
}
