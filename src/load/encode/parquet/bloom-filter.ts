import { optimalNumBytes, writeBloomFilter } from 'hyparquet-writer/src/bloom.js'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import type { TextVector } from '../../../core/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import { writePlainInt64 } from './encodings.ts'
import { xxhash64 } from './xxhash64.ts'

/** False positives: one lookup in a hundred. */
const FALSE_POSITIVES = 0.01
const MAX_BYTES = 1 << 20

/** Salts of the split-block bloom filter. Source: apache/parquet-format, BloomFilter.md. */
// biome-ignore format: one word per bit
const SALT = Int32Array.of(
  0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
)

/** A bloom filter of the values, with its header. */
export function bloomFilter(values: Float64Array | BigInt64Array | TextVector): Uint8Array {
  const count = 'offsets' in values ? values.offsets.length - 1 : values.length
  const words = new Uint32Array(Math.min(optimalNumBytes(count, FALSE_POSITIVES), MAX_BYTES) / 4)
  if ('offsets' in values) addTexts(words, values)
  else addNumbers(words, values)
  const writer = new ByteWriter(words.byteLength + 64)
  writeBloomFilter(writer, words)
  return writer.getBytes()
}

function addNumbers(words: Uint32Array, values: Float64Array | BigInt64Array): void {
  const plain = new ByteBuffer(values.length * 8)
  writePlainInt64(plain, values, 0, values.length)
  const { buffer, byteOffset, byteLength } = plain.view()
  const view = new DataView(buffer, byteOffset, byteLength)
  for (let at = 0; at < byteLength; at += 8) add(words, view, at, at + 8)
}

function addTexts(words: Uint32Array, { offsets, bytes }: TextVector): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let i = 0; i + 1 < offsets.length; i++) add(words, view, offsets[i]!, offsets[i + 1]!)
}

/** Sets one bit in each of the eight words of the block that the hash selects. */
function add(words: Uint32Array, view: DataView, from: number, to: number): void {
  const { high, low } = xxhash64(view, from, to)
  const block = Math.floor((high * (words.length / 8)) / 2 ** 32) * 8
  for (let i = 0; i < 8; i++) {
    words[block + i] = words[block + i]! | (1 << (Math.imul(low, SALT[i]!) >>> 27))
  }
}
