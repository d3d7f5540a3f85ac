import { createHash } from 'node:crypto'
import { ExportError, getOrInsert, type OwnedStore, serial } from '../core/index.ts'
import type { SealEntry, ShardIdentity } from '../state/index.ts'
import { decodeRecordBatches } from './encode/decode-record-batches.ts'
import type { ShardEncoder, WrittenRowGroup } from './encode/encoder.ts'
import { sealedPath, shardPath } from './layout.ts'
import { rowGroups } from './row-groups.ts'

type ShardWriterOptions = {
  readonly store: OwnedStore
  /** Asked for when there is something to write. @param schema number of the shard's */
  readonly encoderOf: (schema: number) => Promise<ShardEncoder>
  readonly extension: string
  readonly rowGroupRows: number
}

export type WrittenShard = Pick<SealEntry, 'shard' | 'path' | 'rows' | 'bytes' | 'sha256' | 'schema'>

/**
 * Writes a sealed shard of record batches; after a crash nothing of it is left. Commit the entry, then publish it. One
 * row group at a time is in memory, of whichever shard.
 */
export type ShardWriter = (
  shard: ShardIdentity,
  batches: AsyncIterable<Uint8Array>,
  /** How many rows are committed; left out: the batches are made of other shards. */
  committed?: number,
) => Promise<WrittenShard>

export function shardWriter({ store, encoderOf, extension, rowGroupRows }: ShardWriterOptions): ShardWriter {
  const encoders = new Map<number, Promise<ShardEncoder>>()
  const encoding = serial()
  return async ({ shard, folder, part, schema }, batches, committed) => {
    const { header, encode, footer } = await getOrInsert(encoders, schema, () => encoderOf(schema))
    const hash = createHash('sha256')
    const written: WrittenRowGroup[] = []
    let rows = 0
    let bytes = 0
    let sha256 = ''
    let memory = new Uint8Array()
    const next = (chunk: Uint8Array): Uint8Array => {
      hash.update(chunk)
      bytes += chunk.byteLength
      return chunk
    }
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield next(header())
      const groups = rowGroups(decodeRecordBatches(batches), rowGroupRows)
      for (;;) {
        const encoded = await encoding(async () => {
          const group = await groups.next()
          if (group.done === true) return null
          const { bytes, ...counts } = await encode(group.value)
          // The next one, of any shard, is encoded in the same memory.
          if (memory.byteLength < bytes.byteLength) memory = new Uint8Array(bytes.byteLength)
          memory.set(bytes)
          return { chunk: memory.subarray(0, bytes.byteLength), ...counts }
        })
        if (encoded === null) break
        written.push({ offset: bytes, rows: encoded.rows, chunks: encoded.chunks })
        rows += encoded.rows
        yield next(encoded.chunk)
      }
      if (committed !== undefined && rows !== committed)
        throw new ExportError({
          kind: 'damaged',
          what: `The shard would hold ${rows} rows, but ${committed} are committed`,
          where: `${folder}, part ${part}`,
          next: 'Run again: its rows are read from the log anew. Report this error if it comes again.',
        })
      yield next(await footer(written))
    }
    await store.build(chunks(), () => {
      sha256 = hash.digest('hex')
      return sealedPath(shard, sha256)
    })
    const path = shardPath(folder, part, extension)
    return { shard, path, rows, bytes, sha256, schema: schema || undefined }
  }
}
