import { crc32 } from 'node:zlib'
import {
  type BlobRef,
  type BufferPool,
  ExportError,
  type JournalEntry,
  type Store,
} from '../../core/index.ts'
import { LineWriter, NEWLINE, parseLine } from './lines.ts'
import { parseEntry } from './parse-entry.ts'

/** The end of the log: the number of the last commit, and its checksum, which the next commit continues. */
export type LogPosition = { readonly sequence: number; readonly checksum: number }

export const LOG_START: LogPosition = { sequence: 0, checksum: 0 }

export const LOG_FOLDER = '_state/log'

/** `_state/log/0000000000000042` */
export function commitPath(sequence: number): string {
  return `${LOG_FOLDER}/${String(sequence).padStart(16, '0')}`
}

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
 */
export function encodeCommit(
  { sequence, checksum }: LogPosition,
  parts: readonly CommitPart[],
): {
  readonly chunks: readonly Uint8Array[]
  readonly parts: readonly CommittedPart[]
  readonly position: LogPosition
} {
  const writer = new LineWriter(checksum)
  const sums = parts.map(({ blobs }) => blobs.map((blob) => [blob.byteLength, crc32(blob)] as const))
  const line = writer.line({
    sequence: sequence + 1,
    parts: parts.map(({ entries }, i) => ({ entries, ...(sums[i]!.length === 0 ? {} : { blobs: sums[i] }) })),
  })
  return {
    chunks: [line, ...parts.flatMap(({ blobs }) => blobs)],
    parts: located(
      sequence + 1,
      line.byteLength,
      parts.map(({ entries }, i) => ({ entries, blobs: sums[i]! })),
    ),
    position: { sequence: sequence + 1, checksum: writer.checksum },
  }
}

type UnlocatedPart = {
  readonly entries: readonly JournalEntry[]
  readonly blobs: readonly (readonly [bytes: number, crc: number])[]
}

function located(sequence: number, start: number, parts: readonly UnlocatedPart[]): CommittedPart[] {
  let offset = start
  return parts.map(({ entries, blobs }) => ({
    entries,
    blobs: blobs.map(([bytes, crc]) => {
      const blob = { sequence, offset, bytes, crc }
      offset += bytes
      return blob
    }),
  }))
}

// Most lines are shorter; a page over a thousand windows takes 150 kB.
const FIRST_READ = 16 << 10
const READS_AT_ONCE = 16

/** The numbers of the commits in the log, ascending. */
export async function listCommits(store: Store): Promise<readonly number[]> {
  const names = await store.list(LOG_FOLDER)
  return names.flatMap((name) => (/^\d{16}$/.test(name) ? [Number(name)] : [])).sort((a, b) => a - b)
}

/**
 * Reads the commits after a position, without the bytes behind their lines.
 * @param sequences of all objects in the log
 * @returns false when one is missing that has others after it
 * @throws ExportError `damaged` if one is not valid, or does not follow the commit before it
 */
export async function readLog(
  store: Store,
  from: LogPosition,
  sequences: readonly number[],
  visit: (parts: readonly CommittedPart[], position: LogPosition, bytes: number) => void,
): Promise<boolean> {
  // A list that is made during commits may lack one and have the next, so only its last counts.
  const last = sequences.at(-1) ?? 0
  let { sequence, checksum } = from
  while (sequence < last) {
    const start = sequence
    const count = Math.min(READS_AT_ONCE, last - start)
    const some = Array.from({ length: count }, (_, i) => readLine(store, commitPath(start + i + 1)))
    for (const line of await Promise.all(some)) {
      if (line === null) return false
      const commit = parseCommit(line, ++sequence, checksum)
      checksum = commit.checksum
      visit(commit.parts, { sequence, checksum }, line.length)
    }
  }
  return true
}

function parseCommit(
  line: Buffer,
  sequence: number,
  previous: number,
): { readonly parts: readonly CommittedPart[]; readonly checksum: number } {
  const path = commitPath(sequence)
  const parsed = line.length === 0 ? null : parseLine(line, previous)
  if (parsed === null) throw damaged('The commit does not match its checksum', path)
  if (!parsed.follows) throw damaged('The commit does not follow the commit before it', path)
  const parts = partsOf(parsed.value)
  if (parts === null) throw damaged('The commit holds an entry that is not known', path)
  return { parts: located(sequence, line.length + 1, parts), checksum: parsed.checksum }
}

/** The first line; empty: the file has none; null: there is no file. */
async function readLine(store: Store, path: string): Promise<Buffer | null> {
  for (let size = FIRST_READ; ; size *= 8) {
    const bytes = await store.read(path, 0, size)
    if (bytes === null) return null
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const end = buffer.indexOf(NEWLINE)
    if (end >= 0) return buffer.subarray(0, end)
    if (bytes.byteLength < size) return Buffer.alloc(0)
  }
}

function partsOf(value: unknown): UnlocatedPart[] | null {
  const { parts } = value as { readonly parts: readonly { entries: unknown[]; blobs?: [number, number][] }[] }
  if (!Array.isArray(parts)) return null
  const read: UnlocatedPart[] = []
  for (const { entries, blobs = [] } of parts) {
    const parsed = (entries as unknown[]).map(parseEntry).filter((entry) => entry !== null)
    if (parsed.length < entries.length) return null
    read.push({ entries: parsed, blobs })
  }
  return read
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
