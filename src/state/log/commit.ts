import { crc32 } from 'node:zlib'
import { type BufferPool, ExportError, type Store } from '../../core/index.ts'
import type { BlobRef } from '../commit-log.ts'
import type { JournalEntry } from '../journal-entry.ts'
import { LineWriter } from './lines.ts'

/** The end of the log: the number of the last commit, and its checksum, which the next commit continues. */
export type LogPosition = { readonly sequence: number; readonly checksum: number }

export const LOG_START: LogPosition = { sequence: 0, checksum: 0 }

export const LOG_FOLDER = '_state/log'

/** `_state/log/0000000000000042`. @param first number of the first commit in the file */
export function commitPath(first: number): string {
  return `${LOG_FOLDER}/${String(first).padStart(16, '0')}`
}

/** The end of a file of the log: its number, which is that of its first commit, and its size. */
export type LogFile = { readonly first: number; readonly bytes: number }

/** Entries that are committed together, and the bytes that they refer to by index. */
export type CommitPart = {
  readonly entries: readonly JournalEntry[]
  readonly blobs: readonly Uint8Array[]
}

/** The same as read or written: the bytes are in the log. */
export type CommittedPart = { readonly entries: readonly JournalEntry[]; readonly blobs: readonly BlobRef[] }

/**
 * One commit: a line of JSON with the entries of each part and length and CRC-32 of its bytes, then these bytes. The
 * line has a checksum that continues that of the commit before it.
 * @param file where the commit goes; null: to a file of its own
 */
export function encodeCommit(
  { sequence, checksum }: LogPosition,
  parts: readonly CommitPart[],
  file: LogFile | null = null,
): {
  readonly chunks: readonly Uint8Array[]
  readonly parts: readonly CommittedPart[]
  readonly position: LogPosition
  readonly file: LogFile
} {
  const { first, bytes } = file ?? { first: sequence + 1, bytes: 0 }
  const writer = new LineWriter(checksum)
  const sums = parts.map(({ blobs }) => blobs.map((blob) => [blob.byteLength, crc32(blob)] as const))
  const line = writer.line({
    sequence: sequence + 1,
    parts: parts.map(({ entries }, i) => ({ entries, ...(sums[i]!.length === 0 ? {} : { blobs: sums[i] }) })),
  })
  const unlocated = parts.map(({ entries }, i) => ({ entries, blobs: sums[i]! }))
  const placed = located({ first, bytes: bytes + line.byteLength }, unlocated)
  return {
    chunks: [line, ...parts.flatMap(({ blobs }) => blobs)],
    ...placed,
    position: { sequence: sequence + 1, checksum: writer.checksum },
  }
}

export type UnlocatedPart = {
  readonly entries: readonly JournalEntry[]
  readonly blobs: readonly (readonly [bytes: number, crc: number])[]
}

/** The bytes of a commit, one after the other from the end of a file on, and the file with them. */
export function located(
  { first, bytes: start }: LogFile,
  parts: readonly UnlocatedPart[],
): { readonly parts: readonly CommittedPart[]; readonly file: LogFile } {
  let offset = start
  const placed = parts.map(({ entries, blobs }) => ({
    entries,
    blobs: blobs.map(([bytes, crc]) => {
      const blob = { sequence: first, offset, bytes, crc }
      offset += bytes
      return blob
    }),
  }))
  return { parts: placed, file: { first, bytes: offset } }
}

/** Bytes of a commit; null: they are lost or changed. */
export async function readBlob(
  store: Store,
  { sequence, offset, bytes, crc }: BlobRef,
  memory?: BufferPool,
): Promise<Uint8Array | null> {
  if (bytes === 0) return new Uint8Array()
  const found = await store.read(commitPath(sequence), offset, offset + bytes, memory)
  return found === null || found.byteLength < bytes || crc32(found) !== crc ? null : found
}

export function damaged(what: string, where: string): ExportError {
  const thing = where === LOG_FOLDER ? 'folder' : 'file'
  const next = `Restore the ${thing} from a backup, or start over with --fresh; nothing was changed.`
  return new ExportError({ kind: 'damaged', what, where, next })
}
