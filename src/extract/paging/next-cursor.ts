// Cursors are some hundred characters at most; a longer tail is not worth looking through.
const TAIL_BYTES = 8192

/** `next` as the last member of the outermost object, a plain ASCII string without escapes. */
const LAST_MEMBER = /"next"\s*:\s*"([ !#-[\]-~]+)"\s*\}\s*$/

/**
 * The cursor that an answer ends with, read off its last bytes long before the whole is decoded. In valid JSON the
 * last brace closes the outermost object, and a key and a string right before it can be nothing but its last member,
 * which is the one that counts if the key comes twice. So it is the cursor, or the answer is no JSON at all.
 * @returns null when it does not end so: it may still have a cursor
 */
export function nextAtEnd(body: Uint8Array): string | null {
  const tail = Buffer.from(body.buffer, body.byteOffset, body.byteLength).subarray(-TAIL_BYTES)
  return LAST_MEMBER.exec(tail.toString('latin1'))?.[1] ?? null
}
