import { createEncoder, type EncodeSettings, type ShardCoding, shardCoder } from '../../load/index.ts'
import type { DecodeSettings, PageContext } from '../../rows/index.ts'
import { owned, serve } from '../../threads/index.ts'
import { createDecoder, type Decoder } from '../../transform/index.ts'

type Run = { readonly decode: Decoder; readonly shards: Map<number, ShardCoding>; begin(): ShardCoding }

/** The runs that share the thread, by number. */
const runs = new Map<number, Run>()

serve({
  async open(run: number, decodeSettings: DecodeSettings, encodeSettings: EncodeSettings) {
    const decode = createDecoder(decodeSettings)
    runs.set(run, { decode, shards: new Map(), begin: shardCoder(createEncoder(encodeSettings)).begin })
    return { value: null }
  },
  async decode(run: number, body: Uint8Array, context: PageContext) {
    const page = runs.get(run)!.decode(body, context)
    const { recordBatch, ids } = page
    const rows = recordBatch === null ? [] : owned(recordBatch.buffer)
    return { value: page, transfer: [...rows, ids.rows.buffer, ids.rejected.buffer] }
  },
  async encode(run: number, shard: number, recordBatches: readonly Uint8Array[]) {
    const value = await codingOf(run, shard).encode(recordBatches)
    return { value, transfer: value.parts.flatMap(({ buffer }) => owned(buffer)) }
  },
  async end(run: number, shard: number) {
    const value = await codingOf(run, shard).end()
    runs.get(run)!.shards.delete(shard)
    return { value }
  },
  /** Frees what is kept of its shards, ended or not. */
  async close(run: number) {
    return { value: runs.delete(run) }
  },
})

/** It begins with its first rows. */
function codingOf(run: number, shard: number): ShardCoding {
  const { shards, begin } = runs.get(run)!
  const coding = shards.get(shard) ?? begin()
  shards.set(shard, coding)
  return coding
}
