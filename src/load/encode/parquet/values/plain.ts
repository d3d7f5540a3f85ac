import type { TextVector } from '../../../../core/index.ts'
import type { ByteBuffer } from '../../byte-buffer.ts'

const TWO_32 = 2 ** 32

/** Whole numbers as little-endian INT64; those in doubles may be any that these hold exactly. */
export function writePlainInt64(
  out: ByteBuffer,
  values: Float64Array | BigInt64Array | readonly number[],
  from: number,
  to: number,
): void {
  if (values instanceof BigInt64Array) {
    const { buffer, byteOffset, byteLength } = values.subarray(from, to)
    out.append(new Uint8Array(buffer, byteOffset, byteLength))
    return
  }
  out.reserve((to - from) * 8)
  const { bytes } = out
  let at = out.length
  for (let i = from; i < to; i++) {
    const value = values[i]!
    const high = Math.floor(value / TWO_32)
    at = bytes.writeUInt32LE(value - high * TWO_32, at)
    at = bytes.writeInt32LE(high, at)
  }
  out.length = at
}

/** Booleans as single bits, the first in the lowest; the values are 0 or 1. */
export function writePlainBoolean(out: ByteBuffer, values: Uint8Array, from: number, to: number): void {
  const length = Math.ceil((to - from) / 8)
  out.reserve(length)
  const { bytes } = out
  bytes.fill(0, out.length, out.length + length)
  for (let i = from; i < to; i++) {
    const byte = out.length + ((i - from) >>> 3)
    bytes[byte] = bytes[byte]! | (values[i]! << ((i - from) & 7))
  }
  out.length += length
}

/** Texts `[from, to)` one by one, each behind its length. */
export function writePlainTexts(
  out: ByteBuffer,
  { offsets, bytes: source }: TextVector,
  from: number,
  to: number,
): void {
  out.reserve(offsets[to]! - offsets[from]! + (to - from) * 4)
  const { bytes } = out
  let at = out.length
  for (let i = from; i < to; i++) {
    const start = offsets[i]!
    const end = offsets[i + 1]!
    const length = end - start
    bytes[at] = length
    bytes[at + 1] = length >>> 8
    bytes[at + 2] = length >>> 16
    bytes[at + 3] = length >>> 24
    at += 4
    // Some tens of bytes are copied faster by a loop than by a call.
    if (length > 100) {
      bytes.set(source.subarray(start, end), at)
      at += length
    } else for (let j = start; j < end; j++) bytes[at++] = source[j]!
  }
  out.length = at
}
