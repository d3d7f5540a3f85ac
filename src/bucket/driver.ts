import { ExportError, settleAll } from '../core/index.ts'

type Head = {
  readonly size: number
  readonly etag: string
  /** The write that made it. A copy keeps it. */
  readonly mark: string | null
}

/** The condition of a write: the object still has this ETag, or does not exist. */
export type Condition = { readonly etag: string } | 'absent'

/** @property mark kept in the object's metadata */
export type Write = { readonly mark: string; readonly condition: Condition }

/** An object, or a folder: its name ends with `/`. */
export type Listed = { readonly name: string; readonly size: number }

export type Upload = { readonly name: string; abort(): Promise<void> }

export type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Names are relative to the data set's prefix. Temporary errors are repeated. `error` translates those of the SDK. */
export type Driver = {
  /** For messages, such as `s3://bucket/prefix`. */
  readonly address: string
  head(name: string): Promise<Head | null>
  /** @param range `[start, end)`; null: all @param etag null: any @returns null: none @throws Conflict: another ETag */
  get(
    name: string,
    range: readonly [start: number, end: number] | null,
    etag: string | null,
  ): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly etag: string } | null>
  /** @returns the ETag @throws Conflict when the condition does not hold, also because of this very write, repeated */
  put(name: string, body: Uint8Array, write: Write): Promise<string>
  /** The same in parts. The object appears with the last step, for which the condition must hold. */
  upload(name: string, chunks: Chunks, write: Write): Promise<string>
  /** Copies an object on the server, with its mark. */
  copy(from: string, to: string): Promise<void>
  /** Removes an object, if there is one. */
  remove(name: string): Promise<void>
  /** Objects whose names begin with `start`, in order; those below a further `/` as a folder unless `isDeep`. */
  list(start: string, isDeep: boolean): AsyncIterable<Listed>
  /** Uploads that are under way to names that begin with `start`; none where they end by themselves. */
  uploads(start: string): AsyncIterable<Upload>
  /** Turns an error of the SDK into an ExportError with this path and an advice. Others stay as they are. */
  error(error: unknown, path: string): unknown
}

/** Thrown when the condition of a request does not hold. */
export class Conflict extends Error {}

const CONTENT_TYPES: Record<string, string> = {
  json: 'application/json',
  jsonl: 'application/x-ndjson',
  html: 'text/html; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  gz: 'application/gzip',
  parquet: 'application/vnd.apache.parquet',
}

export function contentType(name: string): string {
  return CONTENT_TYPES[/\.([a-z]+)$/.exec(name)?.[1] ?? ''] ?? 'application/octet-stream'
}

export function unfit(address: string, what: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The store ${what}, so two runs could write over each other without knowing`,
    where: address,
    next: 'Write to a store that honours conditional writes: AWS S3, MinIO, R2, Ceph and others do, some in their latest versions only.',
  })
}

// S3 takes parts of at least 5 MiB.
export const PART_BYTES = 8 << 20
const PARTS_AT_ONCE = 3

/** Sends chunks in numbered parts of one size, some at a time. @returns the results in their order */
export async function inParts<T>(
  chunks: Chunks,
  send: (number: number, body: Uint8Array) => Promise<T>,
): Promise<readonly T[]> {
  const parts = blocks(chunks)
  const results: T[] = []
  const slot = async (): Promise<void> => {
    for (;;) {
      const next = await parts.next()
      if (next.done === true) return
      const [number, body] = next.value
      results[number - 1] = await send(number, body)
    }
  }
  await settleAll(Array.from({ length: PARTS_AT_ONCE }, slot))
  return results
}

/** No chunks give one empty block. */
async function* blocks(chunks: Chunks): AsyncGenerator<readonly [number: number, body: Uint8Array]> {
  let held: Uint8Array[] = []
  let size = 0
  let number = 1
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.byteLength; ) {
      const taken = chunk.subarray(start, start + PART_BYTES - size)
      held.push(taken)
      size += taken.byteLength
      start += taken.byteLength
      if (size < PART_BYTES) continue
      yield [number++, Buffer.concat(held)]
      held = []
      size = 0
    }
  }
  if (size > 0 || number === 1) yield [number, Buffer.concat(held)]
}
