import type { Span } from '../rows/index.ts'
import type { BlobTuple, JournalEntry } from './journal-entry.ts'

/** Bytes of a commit: number of their file in the log, offset and length in bytes, CRC-32. */
export type BlobRef = {
  readonly file: number
  readonly offset: number
  readonly bytes: number
  readonly crc: number
}

export function blobTuple({ file, offset, bytes, crc }: BlobRef): BlobTuple {
  return [file, offset, bytes, crc]
}

export function blobRef([file, offset, bytes, crc]: BlobTuple): BlobRef {
  return { file, offset, bytes, crc }
}

export type CommitLog = {
  /** Commits entries and the bytes that they refer to by index, all or none, durably. @returns where the blobs are */
  commit(entries: readonly JournalEntry[], blobs?: readonly Uint8Array[]): Promise<readonly BlobRef[]>
  /** Committed bytes; null: they are lost or changed. */
  read(ref: BlobRef): Promise<Uint8Array | null>
}

export type ShardIdentity = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** Number of its schema. */
  readonly schema: number
}

export type FoldedShard = ShardIdentity & {
  readonly partitions: ReadonlySet<string>
  readonly importedAt: Span | null
  readonly batches: readonly BatchRef[]
}

/** A record batch in the log. */
export type BatchRef = { readonly rows: number; readonly at: BlobRef }
