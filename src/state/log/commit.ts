import { crc32 } from 'node:zlib'
import type * as z from 'zod'
import { ExportError, type Store } from '../../core/index.ts'
import { type BlobTuple, ENTRY_SCHEMAS, type JournalEntry } from '../journal-entry.ts'
import { encodeLine, parseLine } from './lines.ts'

/** Where a commit ends: its file, the bytes of it so far, and the checksum that the next commit continues. */
export type LogEnd = { readonly file: number; readonly bytes: number; readonly checksum: number }

export const LOG_START: LogEnd = { file: 0, bytes: 0, checksum: 0 }

export const LOG_FOLDER = '_state/log'

/** Numbers of files of each owner. The first of them has its claim. */
const FILES_OF_OWNER = 10 ** 8

/** Which claim a file of the log comes after, counted from 1. */
export function claimOf(file: number): number {
  return Math.floor(file / FILES_OF_OWNER)
}

export function claimFile(claim: number): number {
  return claim * FILES_OF_OWNER
}

/** `_state/log/0000000300000042`: the number of the claim, then that of the file after it, in eight digits each. */
export function commitPath(file: number): string {
  return `${LOG_FOLDER}/${String(file).padStart(16, '0')}`
}

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

/** Entries that are committed together, and the bytes that they refer to by index. */
type Part<Blob> = { readonly entries: readonly JournalEntry[]; readonly blobs: readonly Blob[] }
export type CommitPart = Part<Uint8Array>
export type CommittedPart = Part<BlobRef>
export type UnlocatedPart = Part<readonly [bytes: number, crc: number]>

/** A line of JSON: entries, length and CRC-32 of each blob; then the blobs. Its checksum continues the last one. */
export function encodeCommit(before: LogEnd, parts: readonly CommitPart[], file: number) {
  const summed = parts.map(({ entries, blobs }) => ({
    entries,
    blobs: blobs.map((blob) => [blob.byteLength, crc32(blob)] as const),
  }))
  const listed = summed.map(({ entries, blobs }) => ({
    entries,
    blobs: blobs.length > 0 ? blobs : undefined,
  }))
  const { line, checksum } = encodeLine({ parts: listed }, before.checksum)
  const start = (file === before.file ? before.bytes : 0) + line.byteLength
  const placed = located(file, start, summed)
  return {
    chunks: [line, ...parts.flatMap(({ blobs }) => blobs)],
    parts: placed.parts,
    end: { file, bytes: placed.bytes, checksum },
  }
}

/** The bytes of a commit, one after the other from `start` on in a file, and where they end. */
export function located(
  file: number,
  start: number,
  parts: readonly UnlocatedPart[],
): { readonly parts: readonly CommittedPart[]; readonly bytes: number } {
  let offset = start
  const placed = parts.map(({ entries, blobs }) => ({
    entries,
    blobs: blobs.map(([bytes, crc]) => {
      const blob = { file, offset, bytes, crc }
      offset += bytes
      return blob
    }),
  }))
  return { parts: placed, bytes: offset }
}

export type Commit = {
  readonly parts: readonly CommittedPart[]
  readonly end: LogEnd
  readonly lineBytes: number
}

/** @param line of entries @returns null: none that follows this end; `unknown`: of another version */
export function parseCommit(line: Buffer, { file, bytes, checksum }: LogEnd): Commit | 'unknown' | null {
  const parsed = parseLine(line, checksum)
  if (parsed === null || !parsed.follows) return null
  const parts = partsOf(parsed.value)
  if (parts === null) return 'unknown'
  const lineBytes = line.length + 1
  const placed = located(file, bytes + lineBytes, parts)
  return { parts: placed.parts, end: { file, bytes: placed.bytes, checksum: parsed.checksum }, lineBytes }
}

export function partsOf(value: unknown): readonly UnlocatedPart[] | null {
  const { parts } = (value ?? {}) as {
    readonly parts?: readonly { entries: unknown[]; blobs?: [number, number][] }[]
  }
  if (!Array.isArray(parts)) return null
  const read: UnlocatedPart[] = []
  for (const { entries, blobs = [] } of parts) {
    const parsed = (entries as unknown[]).map(parseEntry).filter((entry) => entry !== null)
    if (parsed.length < entries.length) return null
    read.push({ entries: parsed, blobs })
  }
  return read
}

function parseEntry(entry: unknown): JournalEntry | null {
  const { kind } = (entry ?? {}) as { readonly kind?: unknown }
  const result = schemaOf(kind)?.safeParse(entry)
  return result?.success === true ? ({ kind, ...result.data } as JournalEntry) : null
}

/** null: the kind is not known, as a newer version may have more. */
function schemaOf(kind: unknown): z.ZodType<object> | null {
  if (typeof kind !== 'string' || !Object.hasOwn(ENTRY_SCHEMAS, kind)) return null
  return ENTRY_SCHEMAS[kind as keyof typeof ENTRY_SCHEMAS]
}

/** Checks that readers accept an entry. One invalid entry would make the whole data set unusable. */
export function requireReadable(entry: JournalEntry): void {
  // Every page has these, and with counts alone they match their schemas: to ask zod takes a twentieth of a small page.
  if ((entry.kind === 'page' || entry.kind === 'measured') && hasCountsAlone(entry)) return
  const issue = ENTRY_SCHEMAS[entry.kind].safeParse(entry).error?.issues[0]
  if (issue === undefined) return
  throw new ExportError({
    kind: 'data',
    what: `The journal entry "${entry.kind}" could not be read again: ${issue.path.join('.')} is out of range`,
    where: LOG_FOLDER,
    next: 'The entry was not written, and committed data is unchanged. Report this error with the name of the field.',
  })
}

function hasCountsAlone(value: unknown): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0
  return typeof value !== 'object' || value === null || Object.values(value).every(hasCountsAlone)
}

/** Bytes of a commit; null: they are lost or changed. */
export async function readBlob(
  store: Store,
  { file, offset, bytes, crc }: BlobRef,
): Promise<Uint8Array | null> {
  if (bytes === 0) return new Uint8Array()
  const found = await store.read(commitPath(file), offset, offset + bytes)
  return found === null || found.byteLength < bytes || crc32(found) !== crc ? null : found
}

/** The cheapest first: of the manifest a data set is opened without a request for what is exported. */
export const REMEDIES =
  'Restore _state from a backup, or move _state/checkpoint.jsonl away: the next command goes on from the manifest, and requests only what is not exported. `--fresh` would request everything again.'

export function damaged(what: string, where: string): ExportError {
  const next = `${REMEDIES} Nothing was changed.`
  return new ExportError({ kind: 'damaged', what, where, next })
}
