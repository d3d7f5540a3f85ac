/** HMAC-SHA256 keys shorter than the digest weaken it (RFC 2104, section 3). */
export const MIN_MASK_KEY_BYTES = 32

/** What is wrong with a mask key, as the end of a sentence that begins with the key; null: nothing. */
export function maskKeyFault(key: Uint8Array): string | null {
  if (key.byteLength < MIN_MASK_KEY_BYTES)
    return `has ${key.byteLength} ${key.byteLength === 1 ? 'byte' : 'bytes'}`
  return key.every(isBlank) ? 'consists of blanks only' : null
}

/** Blank in ASCII: the space, and tab, line feed, vertical tab, form feed, carriage return. */
export function isBlank(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)
}

/** Printable ASCII only: anything else could end an HTTP header and begin another. */
export function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text)
}
