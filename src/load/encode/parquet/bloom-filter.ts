import { hashParquetValue } from 'hyparquet/src/bloom.js'
import { optimalNumBytes, sbbfInsert, writeBloomFilter } from 'hyparquet-writer/src/bloom.js'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import type { TextVector } from '../../../rows/index.ts'

/** False positives: one lookup in a hundred. */
const FALSE_POSITIVES = 0.01
const MAX_BYTES = 1 << 20

/** A bloom filter of the values, with its header. */
export function bloomFilter(values: Float64Array | BigInt64Array | TextVector): Uint8Array {
  const count = 'offsets' in values ? values.offsets.length - 1 : values.length
  const blocks = new Uint32Array(Math.min(optimalNumBytes(count, FALSE_POSITIVES), MAX_BYTES) / 4)
  for (let i = 0; i < count; i++) {
    const hash =
      'offsets' in values
        ? hashParquetValue(values.bytes.subarray(values.offsets[i], values.offsets[i + 1]), BYTES)
        : hashParquetValue(BigInt(values[i]!), INTEGER)
    sbbfInsert(blocks, hash!)
  }
  const writer = new ByteWriter(blocks.byteLength + 64)
  writeBloomFilter(writer, blocks)
  return writer.getBytes()
}

const BYTES = { name: '', type: 'BYTE_ARRAY' } as const
const INTEGER = { name: '', type: 'INT64' } as const
