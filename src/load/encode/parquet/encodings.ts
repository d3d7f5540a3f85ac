import type { TextVector } from '../../../rows/index.ts'
import type { ByteBuffer } from '../byte-buffer.ts'

const TWO_32 = 2 ** 32

/** Integers as little-endian INT64. Those in doubles may be any that a double holds exactly. */
export function writePlainInt64(out: ByteBuffer, values: Float64Array | BigInt64Array): void {
  if (values instanceof BigInt64Array) {
    out.append(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
    return
  }
  out.reserve(values.length * 8)
  const { bytes } = out
  let at = out.length
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!
    const high = Math.floor(value / TWO_32)
    at = bytes.writeUInt32LE(value - high * TWO_32, at)
    at = bytes.writeInt32LE(high, at)
  }
  out.length = at
}

/** Booleans as bits, the first in the lowest bit. The values are 0 or 1. */
export function writePlainBoolean(out: ByteBuffer, values: Uint8Array): void {
  const length = Math.ceil(values.length / 8)
  out.reserve(length)
  const { bytes } = out
  bytes.fill(0, out.length, out.length + length)
  for (let i = 0; i < values.length; i++) {
    const byte = out.length + (i >>> 3)
    bytes[byte] = bytes[byte]! | (values[i]! << (i & 7))
  }
  out.length += length
}

/** Strings, each after its length. */
export function writePlainTexts(out: ByteBuffer, { offsets, bytes: source }: TextVector): void {
  const count = offsets.length - 1
  out.reserve(offsets[count]! - offsets[0]! + count * 4)
  const { bytes } = out
  let at = out.length
  for (let i = 0; i < count; i++) {
    const start = offsets[i]!
    const end = offsets[i + 1]!
    const length = end - start
    bytes[at] = length
    bytes[at + 1] = length >>> 8
    bytes[at + 2] = length >>> 16
    bytes[at + 3] = length >>> 24
    at += 4
    // For some tens of bytes, a loop is faster than a call.
    if (length > 100) {
      bytes.set(source.subarray(start, end), at)
      at += length
    } else for (let j = start; j < end; j++) bytes[at++] = source[j]!
  }
  out.length = at
}

/** Parquet's RLE/bit-packing hybrid: eight or more equal values become a run. @param bitWidth 1..24 */
export function writeHybrid(out: ByteBuffer, values: Uint8Array | Uint32Array, bitWidth: number): void {
  const to = values.length
  let at = 0
  while (at < to) {
    const run = runLength(values, at, to)
    if (run >= 8) {
      writeRun(out, values[at]!, run, bitWidth)
      at += run
      continue
    }
    let end = at + 8
    while (end < to && runLength(values, end, Math.min(end + 8, to)) < 8) end += 8
    writePacked(out, values, bitWidth, at, Math.min(end, to))
    at = end
  }
}

export function writeRun(out: ByteBuffer, value: number, count: number, bitWidth: number): void {
  out.appendVarint(count * 2)
  out.reserve(4)
  for (let bits = 0; bits < bitWidth; bits += 8) out.bytes[out.length++] = value >>> bits
}

function runLength(values: Uint8Array | Uint32Array, from: number, to: number): number {
  const first = values[from]
  let at = from + 1
  while (at < to && values[at] === first) at++
  return at - from
}

/** `values[from..to)`, at least one, bit-packed without runs. */
export function writePacked(
  out: ByteBuffer,
  values: Uint8Array | Uint32Array,
  bitWidth: number,
  from = 0,
  to = values.length,
): void {
  const groups = Math.ceil((to - from) / 8)
  out.appendVarint(groups * 2 + 1)
  out.reserve(groups * bitWidth + 4)
  const bytes = out.bytes
  const end = out.length + groups * bitWidth
  let at = out.length
  let pending = 0
  let bits = 0
  for (let i = from; i < to; i++) {
    pending |= values[i]! << bits
    bits += bitWidth
    while (bits >= 8) {
      bytes[at++] = pending
      pending >>>= 8
      bits -= 8
    }
  }
  if (bits > 0) bytes[at++] = pending
  // The last group is filled up with zeros.
  bytes.fill(0, at, end)
  out.length = end
}

const BLOCK = 128
const MINIBLOCK = 32

/** The widest range of integers whose deltas a double holds exactly. */
const MAX_RANGE = 2 ** 52

const deltas = new Float64Array(BLOCK)

/** Whether {@link writeDeltaBinaryPacked} is exact for values between these two. */
export function fitsDelta(min: number, max: number): boolean {
  return max - min <= MAX_RANGE
}

/**
 * Parquet's DELTA_BINARY_PACKED, computed in doubles: the values must satisfy {@link fitsDelta}.
 * @param base added to each value; deltas do not depend on it
 */
export function writeDeltaBinaryPacked(out: ByteBuffer, values: Float64Array, base = 0n): void {
  const count = values.length
  out.appendVarint(BLOCK)
  out.appendVarint(BLOCK / MINIBLOCK)
  out.appendVarint(count)
  writeZigzagBigInt(out, count === 0 ? 0n : base + BigInt(values[0]!))
  // At most 64 bits per value; per block, 10 bytes for the least delta and 4 for the bit widths.
  out.reserve(Math.ceil(count / BLOCK) * (BLOCK * 8 + 14))
  for (let at = 1; at < count; at += BLOCK) writeBlock(out, values, at, Math.min(at + BLOCK, count))
}

function writeBlock(out: ByteBuffer, values: Float64Array, from: number, to: number): void {
  let previous = values[from - 1]!
  let least = Number.POSITIVE_INFINITY
  for (let i = from; i < to; i++) {
    const value = values[i]!
    const delta = value - previous
    deltas[i - from] = delta
    if (delta < least) least = delta
    previous = value
  }
  const count = to - from
  for (let i = 0; i < count; i++) deltas[i] = deltas[i]! - least
  deltas.fill(0, count)
  out.appendVarint(least >= 0 ? least * 2 : least * -2 - 1)
  const widths = out.length
  out.length += BLOCK / MINIBLOCK
  for (let miniblock = 0; miniblock < BLOCK / MINIBLOCK; miniblock++) {
    const start = miniblock * MINIBLOCK
    const bitWidth = start < count ? widestBits(start) : 0
    out.bytes[widths + miniblock] = bitWidth
    if (bitWidth > 0) packMiniblock(out, start, bitWidth)
  }
}

function widestBits(start: number): number {
  let most = 0
  for (let i = start; i < start + MINIBLOCK; i++) if (deltas[i]! > most) most = deltas[i]!
  return most < TWO_32 ? 32 - Math.clz32(most) : 64 - Math.clz32(Math.floor(most / TWO_32))
}

function packMiniblock(out: ByteBuffer, start: number, bitWidth: number): void {
  const bytes = out.bytes
  let at = out.length
  let pending = 0
  let bits = 0
  for (let i = start; i < start + MINIBLOCK; i++) {
    let rest = deltas[i]!
    // `pending` has up to 7 bits, so 32-bit arithmetic has room for 24 more.
    for (let width = bitWidth; width > 0; width -= 24) {
      if (width > 24) {
        const high = Math.floor(rest / 0x1000000)
        pending |= (rest - high * 0x1000000) << bits
        rest = high
        bits += 24
      } else {
        pending |= rest << bits
        bits += width
      }
      while (bits >= 8) {
        bytes[at++] = pending
        pending >>>= 8
        bits -= 8
      }
    }
  }
  out.length = at
}

function writeZigzagBigInt(out: ByteBuffer, value: bigint): void {
  let zigzag = value >= 0n ? value * 2n : value * -2n - 1n
  out.reserve(10)
  while (zigzag >= 0x80n) {
    out.bytes[out.length++] = Number(zigzag & 0x7fn) | 0x80
    zigzag >>= 7n
  }
  out.bytes[out.length++] = Number(zigzag)
}
