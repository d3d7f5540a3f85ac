import type { Credentials, IncludeValue } from './credentials.ts'

/**
 * Writes a search response with these credentials into one buffer. Strings would have to be glued,
 * flattened and encoded: three copies of six megabytes for a full page.
 * @param tail what follows the items, as JSON text: `,"next":null`
 */
export function renderPage(
  data: Credentials,
  positions: readonly number[],
  include: ReadonlySet<IncludeValue>,
  tail: string,
): Buffer {
  let target = Buffer.allocUnsafe(1024 + positions.length * TYPICAL_BYTES)
  let at = target.write('{"items":[', 'latin1')
  for (let i = 0; i < positions.length; i++) {
    const { head, ascii, tail: source } = data.text(positions[i]!, include)
    const most = head.length * (ascii ? 1 : 3) + source.bytes.length + tail.length + 16
    if (at + most > target.length) target = grown(target, at, most)
    if (i > 0) target[at++] = COMMA
    at += ascii ? target.write(head, at, 'latin1') : target.write(head, at)
    target.set(source.bytes, at)
    at += source.bytes.length
  }
  at += target.write(`]${tail}}`, at)
  return target.subarray(0, at)
}

const COMMA = 0x2c
/** About what a credential measures with its source. */
const TYPICAL_BYTES = 700

function grown(old: Buffer, used: number, more: number): Buffer<ArrayBuffer> {
  const next = Buffer.allocUnsafe(old.length * 2 + more)
  old.copy(next, 0, 0, used)
  return next
}
