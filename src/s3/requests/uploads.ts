import { isMissing, isUnknownThere } from './bucket-error.ts'
import type { Connection } from './connection.ts'
import { conditionOf, contentType, metadata, newMark, type PutOptions } from './connection.ts'

// S3 takes parts of at least 5 MiB.
const PART_BYTES = 8 << 20
const MAX_PARTS = 10_000
const PARTS_AT_ONCE = 3

export type UploadOptions = PutOptions & {
  readonly size?: number
  /** Called when an upload may be left whose id is unknown, or that could not be aborted. */
  readonly unsure?: () => void
}

export type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/**
 * Makes an object by a multipart upload: it appears with the last step, which fails if the upload was aborted.
 * @param options.size bytes in all; where it is unknown, at most 80 GB
 * @throws Conflict when the condition does not hold, or the upload was aborted
 */
export async function upload(
  connection: Connection,
  name: string,
  chunks: Chunks,
  options: UploadOptions = {},
): Promise<string> {
  const { unsure = () => {} } = options
  const mark = newMark()
  const partBytes = Math.max(PART_BYTES, Math.ceil((options.size ?? 0) / MAX_PARTS))
  const id = await connection.send(async ({ sdk, s3 }) => {
    const { UploadId, $metadata } = await s3.send(
      new sdk.CreateMultipartUploadCommand({
        ...connection.object(name),
        ContentType: contentType(name),
        Metadata: metadata(mark, options.epoch ?? null),
      }),
    )
    // The id of an attempt whose response was lost is unknown.
    if (($metadata.attempts ?? 1) > 1) unsure()
    if (UploadId === undefined) throw new Error('an upload without id')
    return UploadId
  })
  try {
    const parts = await sendParts(connection, name, id, blocks(chunks, partBytes))
    const complete = (): Promise<string> =>
      connection.send(async ({ sdk, s3 }) => {
        const { ETag = '' } = await s3.send(
          new sdk.CompleteMultipartUploadCommand({
            ...connection.object(name),
            UploadId: id,
            MultipartUpload: { Parts: parts },
            ...conditionOf(options.condition ?? null),
          }),
        )
        return ETag
      })
    return await connection.conditionally(name, mark, complete)
  } catch (error) {
    await abortUpload(connection, name, id).catch(unsure)
    throw error
  }
}

/** Ids of the uploads to this name that are under way; none where the store can't tell. */
export async function uploadsTo(connection: Connection, name: string): Promise<readonly string[]> {
  const key = connection.key(name)
  const ids: string[] = []
  for (let from: { KeyMarker?: string; UploadIdMarker?: string } = {}; ; ) {
    const page = await connection
      .send(({ sdk, s3 }) =>
        s3.send(new sdk.ListMultipartUploadsCommand({ Bucket: connection.bucket, Prefix: key, ...from })),
      )
      .catch((error: unknown) => {
        // Lifecycle rules of the bucket may abort what is left.
        if (isUnknownThere(error)) return null
        throw error
      })
    for (const { Key, UploadId } of page?.Uploads ?? []) {
      if (Key === key && UploadId !== undefined) ids.push(UploadId)
    }
    if (page?.IsTruncated !== true || page.NextKeyMarker === undefined) return ids
    from = {
      KeyMarker: page.NextKeyMarker,
      ...(page.NextUploadIdMarker === undefined ? {} : { UploadIdMarker: page.NextUploadIdMarker }),
    }
  }
}

async function sendParts(
  connection: Connection,
  name: string,
  id: string,
  bodies: AsyncGenerator<readonly [number: number, body: Uint8Array]>,
): Promise<{ PartNumber: number; ETag: string }[]> {
  const parts: { PartNumber: number; ETag: string }[] = []
  const slot = async (): Promise<void> => {
    for await (const [PartNumber, Body] of {
      [Symbol.asyncIterator]: () => ({ next: () => bodies.next() }),
    }) {
      const { ETag = '' } = await connection.send(({ sdk, s3 }) =>
        s3.send(new sdk.UploadPartCommand({ ...connection.object(name), UploadId: id, PartNumber, Body })),
      )
      parts.push({ PartNumber, ETag })
    }
  }
  const results = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE }, slot))
  for (const result of results) if (result.status === 'rejected') throw result.reason
  return parts.sort((a, b) => a.PartNumber - b.PartNumber)
}

export async function abortUpload(connection: Connection, name: string, UploadId: string): Promise<void> {
  try {
    await connection.send(({ sdk, s3 }) =>
      s3.send(new sdk.AbortMultipartUploadCommand({ ...connection.object(name), UploadId })),
    )
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

/** Cuts chunks into numbered blocks of one size; the last may be smaller. No chunks give one empty block. */
async function* blocks(
  chunks: Chunks,
  bytes: number,
): AsyncGenerator<readonly [number: number, body: Uint8Array]> {
  let held: Uint8Array[] = []
  let size = 0
  let number = 1
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.byteLength; ) {
      const taken = chunk.subarray(start, start + bytes - size)
      held.push(taken)
      size += taken.byteLength
      start += taken.byteLength
      if (size < bytes) continue
      yield [number++, Buffer.concat(held)]
      held = []
      size = 0
    }
  }
  if (size > 0 || number === 1) yield [number, Buffer.concat(held)]
}

type Beginning = {
  readonly beginning: readonly Uint8Array[]
  /** Bytes of it; not more than the limit when that is all. */
  readonly size: number
  readonly rest: AsyncIterable<Uint8Array>
}

/** Reads chunks until they are more than `limit` bytes. */
export async function firstBytes(chunks: Chunks, limit: number): Promise<Beginning> {
  const from = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
  const beginning: Uint8Array[] = []
  let size = 0
  while (size <= limit) {
    const next = await from.next()
    if (next.done === true) break
    beginning.push(next.value)
    size += next.value.byteLength
  }
  const rest = { [Symbol.asyncIterator]: () => ({ next: async () => from.next() }) }
  return { beginning, size, rest }
}
