/** Below this, the call costs more than it saves. */
const SHORT_COPY = 256

/**
 * Copies bytes to a place in others, which must not be their own. Where memory is shared, `set` of a typed array may
 * go byte by byte, and takes ten times as long then; `fill` with as many bytes as there are to fill is one plain copy.
 */
export function copyBytes(from: Uint8Array, to: Uint8Array, at: number): void {
  const { length } = from
  if (length < SHORT_COPY) to.set(from, at)
  else Buffer.prototype.fill.call(to, from, at, at + length)
}
