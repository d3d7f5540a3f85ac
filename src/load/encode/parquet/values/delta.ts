import type { ByteBuffer } from '../../byte-buffer.ts'

const BLOCK = 128
const MINIBLOCK = 32
const TWO_32 = 2 ** 32

/** Whole numbers whose range is no wider than this have deltas that a double holds exactly. */
const MAX_RANGE = 2 ** 52

const deltas = new Float64Array(BLOCK)

/** Whether {@link writeDeltaBinaryPacked} is exact for values between these two. */
export function fitsDelta(min: number, max: number): boolean {
  return max - min <= MAX_RANGE
}

/**
 * Parquet's DELTA_BINARY_PACKED over the integers `values[from..to)`, in doubles throughout: blocks
 * of 128 deltas, each less the block's least one, packed by four with a bit width of their own.
 * The values must satisfy {@link fitsDelta}.
 * @param base what the values are less by than the numbers that are meant: deltas do not depend on it
 */
export function writeDeltaBinaryPacked(
  out: ByteBuffer,
  values: Float64Array,
  from: number,
  to: number,
  base = 0n,
): void {
  const count = to - from
  out.appendVarint(BLOCK)
  out.appendVarint(BLOCK / MINIBLOCK)
  out.appendVarint(count)
  writeZigzagBigInt(out, count === 0 ? 0n : base + BigInt(values[from]!))
  // 64 bits a value, and 10 bytes of least delta and 4 widths a block.
  out.reserve(Math.ceil(count / BLOCK) * (BLOCK * 8 + 14))
  for (let at = from + 1; at < to; at += BLOCK) writeBlock(out, values, at, Math.min(at + BLOCK, to))
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
    // Up to 7 bits wait in `pending`, so 24 more are what 32-bit arithmetic has room for.
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
