import { createHash } from 'node:crypto'
import { getOrInsert } from '../core/index.ts'
import { decodeRecordBatches } from './encode/decode-record-batches.ts'
import type { ShardEncoder, WrittenRowGroup } from './encode/encoder.ts'

export type ShardCoder = {
  /** @param schema number of the shard's */
  begin(schema: number): ShardCoding
}

export type ShardCoding = {
  /** Encodes the next row group. The parts are valid until the next call for any shard of the coder. */
  encode(recordBatches: readonly Uint8Array[]): Promise<EncodedRows>
  end(): Promise<{ readonly parts: readonly Uint8Array[]; readonly sha256: string }>
}

export type EncodedRows = { readonly parts: readonly Uint8Array[]; readonly rows: number }

export function shardCoder(encoderOf: (schema: number) => ShardEncoder): ShardCoder {
  const encoders = new Map<number, ShardEncoder>()
  return {
    begin(schema) {
      const encoder = getOrInsert(encoders, schema, () => encoderOf(schema))
      const hash = createHash('sha256')
      const rowGroups: WrittenRowGroup[] = []
      let offset = 0
      const next = (bytes: Uint8Array): readonly Uint8Array[] => {
        const parts = offset === 0 ? [encoder.header(), bytes] : [bytes]
        for (const part of parts) {
          hash.update(part)
          offset += part.byteLength
        }
        return parts
      }
      return {
        async encode(recordBatches) {
          const decoded = decodeRecordBatches(recordBatches)
          const { bytes, rows, chunks } = await encoder.encode(decoded)
          const parts = next(bytes)
          rowGroups.push({ offset: offset - bytes.byteLength, rows, chunks })
          return { parts, rows }
        },
        async end() {
          const parts = next(await encoder.footer(rowGroups))
          return { parts, sha256: hash.digest('hex') }
        },
      }
    },
  }
}
