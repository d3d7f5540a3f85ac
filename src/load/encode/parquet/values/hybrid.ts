import type { ByteBuffer } from '../../byte-buffer.ts'

/**
 * Parquet's RLE/bit-packing hybrid over `values[from..to)`: levels and dictionary indices.
 * Eight or more equal values in a row become a run; everything between runs is packed in groups of 8.
 * @param bitWidth 1..24
 */
export function writeHybrid(
  out: ByteBuffer,
  values: Uint8Array | Uint32Array,
  from: number,
  to: number,
  bitWidth: number,
): void {
  let at = from
  while (at < to) {
    const run = runLength(values, at, to)
    if (run >= 8) {
      writeRun(out, values[at]!, run, bitWidth)
      at += run
      continue
    }
    let end = at + 8
    while (end < to && runLength(values, end, Math.min(end + 8, to)) < 8) end += 8
    writePacked(out, values, at, Math.min(end, to), bitWidth)
    at = end
  }
}

/** One run of the same value. */
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

/** `values[from..to)`, of which there is at least one, without runs. */
export function writePacked(
  out: ByteBuffer,
  values: Uint8Array | Uint32Array,
  from: number,
  to: number,
  bitWidth: number,
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
