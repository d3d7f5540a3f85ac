/** What of a message to another thread changes hands; shared memory stays with both. */
export function owned(buffer: ArrayBufferLike): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer ? [buffer] : []
}
