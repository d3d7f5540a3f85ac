import { createHash } from 'node:crypto'
import { ExportError, getOrInsert, type OwnedStore, serial } from '../core/index.ts'
import type { Group, RecordBatch, TextVector, Vector } from '../rows/index.ts'
import type { SealEntry, ShardIdentity } from '../state/index.ts'
import { decodeRecordBatches } from './encode/decode-record-batches.ts'
import type { ShardEncoder, WrittenRowGroup } from './encode/encoder.ts'
import { sealedPath, shardPath } from './layout.ts'
import { takeRows } from './take-rows.ts'

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

// Limits memory when values are long. Usual rows take 450 bytes, most of them for descriptions of sources.
const MAX_BYTES = 64 << 20
/** A row group that is full by bytes ends at a multiple of this number of rows. */
const STEP_ROWS = 1000

/**
 * Divides record batches into those of each row group. Its rows alone decide, not how batches divide them or represent
 * what they have in common.
 */
export async function* rowGroups(
  batches: AsyncIterable<RecordBatch>,
  maxRows: number,
): AsyncGenerator<readonly RecordBatch[]> {
  let group: RecordBatch[] = []
  let rows = 0
  let bytes = 0
  // It is not kept here while it is encoded, and others after it.
  const ended = (): readonly RecordBatch[] => {
    const full = group
    group = []
    rows = 0
    bytes = 0
    return full
  }
  for await (const batch of batches) {
    const sizes = byteSizes(batch)
    for (let from = 0, to = 0; from < batch.rows; from = to) {
      let isFull = false
      for (; to < batch.rows && !isFull; to++) {
        bytes += sizes[to]!
        rows++
        isFull = rows === maxRows || (rows % STEP_ROWS === 0 && bytes >= MAX_BYTES)
      }
      group.push(to - from === batch.rows ? batch : takeRows(batch, { from, to }))
      if (isFull) yield ended()
    }
  }
  if (group.length > 0) yield ended()
}

/** Bytes of the strings of each row, as if it were alone. */
function byteSizes({ rows, groups, columns }: RecordBatch): Float64Array {
  const ofRow = new Float64Array(rows)
  const ofEntries = new Map<Group, Float64Array>()
  for (const { group, values } of columns) {
    if (values.kind !== 'text' && values.kind !== 'list') continue
    const table = group === null ? null : groups[group]!
    const sizes = table === null ? ofRow : getOrInsert(ofEntries, table, () => new Float64Array(table.size))
    for (let i = 0; i < sizes.length; i++) sizes[i]! += bytesOf(values, i)
  }
  for (const [{ indices }, sizes] of ofEntries) {
    for (let row = 0; row < rows; row++) ofRow[row]! += sizes[indices === null ? 0 : indices[row]!]!
  }
  return ofRow
}

function bytesOf(texts: TextVector | Extract<Vector, { kind: 'list' }>, at: number): number {
  if (texts.kind === 'text') return texts.offsets[at + 1]! - texts.offsets[at]!
  const { offsets, items } = texts
  return items.offsets[offsets[at + 1]!]! - items.offsets[offsets[at]!]!
}
