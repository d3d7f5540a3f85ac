import zlib from 'node:zlib'
import type { CompressionCodec } from 'hyparquet'
import type { Compression } from '../../../core/index.ts'

export type Codec = {
  readonly name: CompressionCodec
  /** The result is valid until the next call, or while the page is. */
  readonly compress: (page: Uint8Array) => Uint8Array
}

/** The levels are low: the next higher level makes files a few per cent smaller and takes twice as long. */
export function codec(compression: Compression): Codec {
  switch (compression) {
    case 'none':
      return { name: 'UNCOMPRESSED', compress: (page) => page }
    case 'snappy':
      return { name: 'SNAPPY', compress: snappyCompress }
    case 'gzip':
      return { name: 'GZIP', compress: (page) => zlib.gzipSync(page, { level: 3 }) }
    case 'zstd':
      return {
        name: 'ZSTD',
        compress: (page) => zstdCompressSync!(page, { params: { [ZSTD_COMPRESSION_LEVEL]: 3 } }),
      }
  }
}

type ZstdCompress = (input: Uint8Array, options: { params: Record<number, number> }) => Uint8Array
const ZSTD_COMPRESSION_LEVEL = 100

// The types of the oldest supported Node.js lack it; the configuration refuses zstd there.
const { zstdCompressSync } = zlib as { zstdCompressSync?: ZstdCompress }

/** Offsets of earlier words, by their hash. Scratch space, cleared for every input. */
const table = new Int32Array(1 << 14)

/** Memory of the output. It is reused, since it would be a megabyte of garbage for every page of a column. */
let room = new Uint8Array(0)
const MAX_KEPT_BYTES = 1 << 23

/** The offset of a copy has two bytes. */
const MAX_DISTANCE = 0xffff

/** A copy from a smaller distance takes two bytes, others take three. */
const NEAR = 2048
/** Shorter copies from a distance of `NEAR` on save little and take ten times as long: hex digests have many. */
const MIN_FAR_COPY = 6

/**
 * Snappy's raw format, 1.5 to about 100 times as fast as the implementations on npm (decision 2).
 * Source: google/snappy, format_description.txt.
 * @returns a view that the next call overwrites
 */
export function snappyCompress(input: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = input.length
  // Snappy's bound of the compressed size.
  const most = 32 + length + Math.ceil(length / 6)
  const out = most <= room.length ? room : new Uint8Array(most)
  if (most <= MAX_KEPT_BYTES) room = out
  const view = new DataView(input.buffer, input.byteOffset, length)
  const tableBits = Math.min(14, Math.max(8, 32 - Math.clz32(length)))
  const shift = 32 - tableBits
  table.fill(0, 0, 1 << tableBits)
  const lastWord = length - 4
  let at = writeVarint(out, length)
  let done = 0
  let position = 1
  // The longer nothing matches, the larger the steps: incompressible input is skipped quickly.
  let patience = 32
  while (position <= lastWord) {
    const word = view.getInt32(position, true)
    const slot = Math.imul(word, 0x9e3779b1) >>> shift
    const candidate = table[slot]!
    table[slot] = position
    if (position - candidate > MAX_DISTANCE || view.getInt32(candidate, true) !== word) {
      position += patience++ >>> 5
      continue
    }
    let end = position + 4
    const distance = position - candidate
    while (end < length && input[end] === input[end - distance]) end++
    if (end - position < MIN_FAR_COPY && distance >= NEAR) {
      position += patience++ >>> 5
      continue
    }
    at = writeLiteral(out, at, input, done, position)
    at = writeCopy(out, at, distance, end - position)
    done = end
    position = end
    patience = 32
  }
  return out.subarray(0, writeLiteral(out, at, input, done, length))
}

function writeVarint(out: Uint8Array, value: number): number {
  let at = 0
  for (; value >= 0x80; value >>>= 7) out[at++] = (value & 0x7f) | 0x80
  out[at++] = value
  return at
}

function writeLiteral(out: Uint8Array, at: number, input: Uint8Array, from: number, to: number): number {
  const length = to - from
  if (length === 0) return at
  if (length <= 60) {
    out[at++] = (length - 1) << 2
    for (let i = from; i < to; i++) out[at++] = input[i]!
    return at
  }
  let rest = length - 1
  const tag = at++
  for (; rest > 0; rest >>>= 8) out[at++] = rest
  out[tag] = (59 + at - tag - 1) << 2
  out.set(input.subarray(from, to), at)
  return at + length
}

function writeCopy(out: Uint8Array, at: number, distance: number, length: number): number {
  while (length > 0) {
    if (length < 12 && length >= 4 && distance < NEAR) {
      out[at++] = 1 | ((length - 4) << 2) | ((distance >>> 8) << 5)
      out[at++] = distance
      return at
    }
    const part = Math.min(length, 64)
    out[at++] = 2 | ((part - 1) << 2)
    out[at++] = distance
    out[at++] = distance >>> 8
    length -= part
  }
  return at
}
