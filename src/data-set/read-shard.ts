import { ExportError, type Format, isExportError, plainError, type Store } from '../core/index.ts'
import type { ShardReader, Wanted } from '../load/index.ts'
import type { ColumnSpec, RowBatch } from '../rows/index.ts'

export type ShardFile = { readonly path: string; readonly bytes: number }

/** Reads the contents of a shard. Errors of these get its path. */
export async function readShard<T>(
  store: Store,
  shard: ShardFile,
  read: (reader: ShardReader) => Promise<T>,
  wholeBytes?: number,
): Promise<T> {
  try {
    return await read(shardReader(store, shard, wholeBytes))
  } catch (error) {
    throw namingShard(shard, error)
  }
}

export const BATCH_ROWS = 10_000

type Reading = { readonly batchRows?: number | undefined; readonly wanted?: Wanted | null }

/** The rows of a shard. Errors of its contents get its path. */
export async function* shardBatches(
  store: Store,
  shard: ShardFile,
  format: Format,
  columns: readonly ColumnSpec[],
  { batchRows = BATCH_ROWS, wanted = null }: Reading = {},
): AsyncGenerator<RowBatch> {
  // Loaded here, so that other commands start faster.
  const { readBatches } = await import('../load/inspect/index.ts')
  try {
    yield* readBatches(shardReader(store, shard), format, columns, batchRows, wanted)
  } catch (error) {
    throw namingShard(shard, error)
  }
}

export function namingShard({ path }: ShardFile, error: unknown): unknown {
  if (!isExportError(error) || error.where !== '') return error
  return new ExportError({ ...plainError(error), where: path, cause: error })
}

/** Shards up to this size are read at once, others in ranges: each is a request to a bucket, and opens a file. */
const WHOLE_BYTES = 4 << 20

export function shardReader(store: Store, { path, bytes }: ShardFile, wholeBytes = WHOLE_BYTES): ShardReader {
  if (bytes > wholeBytes)
    return {
      size: bytes,
      slice: async (start, end) => (await store.read(path, start, end)) ?? new Uint8Array(),
      stream: () => store.stream(path),
    }
  let read: Promise<Uint8Array | null> | null = null
  const whole = async (): Promise<Uint8Array> => {
    // With a byte that it should not have.
    read ??= store.read(path, 0, bytes + 1)
    return (await read) ?? new Uint8Array()
  }
  return {
    size: bytes,
    slice: async (start, end) => (await whole()).subarray(start, end),
    async *stream() {
      yield await whole()
    },
  }
}
