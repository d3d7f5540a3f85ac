import { createHash } from 'node:crypto'
import { decodeRecordBatches } from './encode/decode-record-batches.ts'
import type { ShardEncoder, WrittenRowGroup } from './encode/encoder.ts'

/** Encodes shards. */
export type ShardCoder = {
  begin(): ShardCoding | Promise<ShardCoding>
}

/** One shard while it is encoded: its row groups, its footer and its SHA-256. */
export type ShardCoding = {
  /**
   * Encodes rows as the next row group. The parts are valid until the next call for any shard of the coder.
   */
  encode(recordBatches: readonly Uint8Array[]): Promise<EncodedRows>
  /** Ends the shard. */
  end(): Promise<ShardEnd>
}

/** The next bytes of a shard. */
export type EncodedRows = {
  readonly parts: readonly Uint8Array[]
  readonly rows: number
}

/** Its last bytes. */
export type ShardEnd = { readonly parts: readonly Uint8Array[]; readonly sha256: string }

export function shardCoder(encoder: ShardEncoder): { begin(): ShardCoding } {
  return {
    begin() {
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
