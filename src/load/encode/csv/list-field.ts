import type { TextVector } from '../../../core/index.ts'
import type { ByteBuffer } from '../byte-buffer.ts'
import { quoteField } from './field.ts'
import { REPLACED_NUL } from './nuls.ts'

const NULL = Buffer.from('null')

/** How JSON.stringify writes each byte inside a string; undefined: as it is. A NUL is replaced, as in texts. */
const JSON_ESCAPES: readonly (Buffer | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return undefined
  if (byte === 0) return REPLACED_NUL
  const json = JSON.stringify(String.fromCharCode(byte)).slice(1, -1)
  return json.length === 1 ? undefined : Buffer.from(json)
})

/** Appends the items `[from, to)` as a JSON array in one CSV field: the text of JSON.stringify to the byte. */
export function writeListField(out: ByteBuffer, items: TextVector, from: number, to: number): void {
  const { offsets, bytes, valid } = items
  // A byte becomes `\u00ff` at most, and quotes are doubled afterwards.
  out.reserve((offsets[to]! - offsets[from]!) * 7 + (to - from) * 10 + 4)
  const target = out.bytes
  const start = out.length
  let at = start
  target[at++] = 0x5b
  for (let item = from; item < to; item++) {
    if (item > from) target[at++] = 0x2c
    if (valid !== null && valid[item] === 0) {
      target.set(NULL, at)
      at += NULL.length
      continue
    }
    target[at++] = 0x22
    for (let i = offsets[item]!; i < offsets[item + 1]!; i++) {
      const byte = bytes[i]!
      const escaped = JSON_ESCAPES[byte]
      if (escaped === undefined) target[at++] = byte
      else {
        target.set(escaped, at)
        at += escaped.length
      }
    }
    target[at++] = 0x22
  }
  target[at++] = 0x5d
  // Without a quote or a comma in it this is `[]` or `[null]`.
  const plain = to === from || (to === from + 1 && valid !== null && valid[from] === 0)
  out.length = plain ? at : quoteField(target, start, at)
}
