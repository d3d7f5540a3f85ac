import type { PageIds } from '../../core/index.ts'

/** The ids of a page for the log: the number of words of rows, then the words of rows and of rejected items. */
export function encodeIds({ rows, refused }: PageIds): Uint8Array {
  const words = new Int32Array(1 + rows.length + refused.length)
  words[0] = rows.length
  words.set(rows, 1)
  words.set(refused, 1 + rows.length)
  return new Uint8Array(words.buffer)
}

export function decodeIds(bytes: Uint8Array): PageIds {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2)
  const end = 1 + words[0]!
  return { rows: words.slice(1, end), refused: words.slice(end) }
}
