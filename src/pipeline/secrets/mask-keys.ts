/** HMAC-SHA256 keys shorter than the digest weaken it (RFC 2104, section 3). */
export const MIN_MASK_KEY_BYTES = 32

/** What is wrong with a mask key, as the predicate of a sentence about the key; null: the key is valid. */
export function maskKeyFault(key: Uint8Array): string | null {
  if (key.byteLength < MIN_MASK_KEY_BYTES)
    return `has ${key.byteLength} ${key.byteLength === 1 ? 'byte' : 'bytes'}`
  return key.every(isBlank) ? 'consists of blanks only' : null
}

/** ASCII white space: space, tab, line feed, vertical tab, form feed, carriage return. */
function isBlank(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}
