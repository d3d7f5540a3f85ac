import type { OwnedStore, Store } from '../../core/index.ts'
import {
  type CommittedPart,
  commitPath,
  damaged,
  LOG_FOLDER,
  type LogFile,
  type LogPosition,
  located,
  readBlob,
  type UnlocatedPart,
} from './commit.ts'
import { NEWLINE, parseLine } from './lines.ts'
import { parseEntry } from './parse-entry.ts'

// Most lines are shorter; a page over a thousand windows takes 150 kB.
const FIRST_READ = 16 << 10
const READS_AT_ONCE = 16

/** The numbers of the files of the log, ascending: each that of its first commit. */
export async function listLog(store: Store): Promise<readonly number[]> {
  const names = await store.list(LOG_FOLDER)
  return names.flatMap((name) => (/^\d{16}$/.test(name) ? [Number(name)] : [])).sort((a, b) => a - b)
}

/** Whether there are commits. A data set that starts over has left an empty file. */
export async function hasCommits(store: Store): Promise<boolean> {
  const [first, ...others] = await listLog(store)
  if (first === undefined) return false
  return others.length > 0 || ((await store.size(commitPath(first))) ?? 0) > 0
}

/**
 * Removes all commits. An empty file stays until a new data set has begun, whose log goes on with the next number: a
 * former owner finds its own next number taken.
 * @param last number of the last commit, as far as it is known
 */
export async function emptyLog(store: OwnedStore, last: number): Promise<void> {
  const files = await listLog(store)
  const end = Math.max(last, ...files.slice(-1))
  if (end > 0) await store.replace(commitPath(end), [])
  for (const first of files) if (first < end) await store.remove(commitPath(first))
}

type Visit = (parts: readonly CommittedPart[], position: LogPosition, bytes: number) => void

export type LogEnd = {
  readonly position: LogPosition
  /** The bytes of the last commit, where it was appended: they may not be forced to the disk yet. */
  readonly appended: { readonly path: string; readonly start: number; readonly end: number } | null
}

/**
 * Reads the commits after a position, without the bytes behind their lines. The position is the last one of its file.
 * @param files the numbers of all files in the log
 * @returns null when a file is missing that has others after it, or was just removed
 * @throws ExportError `damaged` if a commit is not valid, or does not follow the one before it
 */
export async function readLog(
  store: Store,
  from: LogPosition,
  files: readonly number[],
  visit: Visit,
): Promise<LogEnd | null> {
  const known = new Set(files)
  const after = files.filter((first) => first > from.sequence)
  let end: LogEnd | null = { position: from, appended: null }
  for (let i = 0; i < after.length; i += READS_AT_ONCE) {
    const some = after.slice(i, i + READS_AT_ONCE)
    const lines = await Promise.all(some.map((first) => readLine(store, commitPath(first), 0)))
    const lineOf = new Map(lines.map((line, j) => [some[j]!, line]))
    while (end.position.sequence < some.at(-1)!) {
      // A list that is made during commits may lack a file and have the next.
      const first: number = end.position.sequence + 1
      const line: Buffer | null = lineOf.get(first) ?? (await readLine(store, commitPath(first), 0))
      if (line === null) return null
      end = await readFile(store, { line, end, known }, visit)
      if (end === null) return null
    }
  }
  return end
}

/** Reads the commits of a file. @returns the end of the last; null: the file was just removed */
async function readFile(
  store: Store,
  start: { readonly line: Buffer; readonly end: LogEnd; readonly known: ReadonlySet<number> },
  visit: Visit,
): Promise<LogEnd | null> {
  const first = start.end.position.sequence + 1
  const path = commitPath(first)
  let { line, end } = start
  for (let bytes = 0; ; ) {
    const commit = parseCommit(line, end.position, { first, bytes })
    // Another owner has gone on from here. What a former one has appended does not count.
    const isFollowed = start.known.has(commit.position.sequence + 1)
    const next = isFollowed ? AT_END : await readLine(store, path, commit.file.bytes)
    if (next === null) return null
    // What was not written reads as zeros after a crash.
    const isOver = next.length === 0 || next.includes(0)
    if (isOver && next !== AT_END) await refuseMore(store, path, bytes + line.length + 1)
    // A file gets its name with its first commit, which is whole. A crash may have cut the last one.
    if (bytes > 0 && isOver && !isFollowed && (next === CUT || !(await isWhole(store, commit.parts))))
      return end
    const appended = bytes > 0 ? { path, start: bytes, end: commit.file.bytes } : null
    end = { position: commit.position, appended }
    visit(commit.parts, end.position, line.length)
    if (isOver) return end
    line = next
    bytes = commit.file.bytes
  }
}

/** A crash cuts the last commit alone. @throws ExportError `damaged` if there is another behind these bytes */
async function refuseMore(store: Store, path: string, start: number): Promise<void> {
  const rest = Buffer.from((await store.read(path, start)) ?? [])
  for (let at = 0, stop = rest.indexOf(NEWLINE); stop >= 0; at = stop + 1, stop = rest.indexOf(NEWLINE, at)) {
    const bytes = rest.subarray(at, stop)
    // A line comes right behind the bytes of the commit before.
    const begin = Math.max(0, bytes.lastIndexOf('{"sequence":'))
    if (parseLine(bytes.subarray(begin), 0) !== null)
      throw damaged('The commit does not match its checksum', path)
  }
}

async function isWhole(store: Store, parts: readonly CommittedPart[]): Promise<boolean> {
  for (const ref of parts.flatMap(({ blobs }) => blobs))
    if ((await readBlob(store, ref)) === null) return false
  return true
}

/**
 * Gives the last commit a file of its own, if it was appended: the owner may have ended before it was forced to the disk,
 * and no other may go on from there.
 * @returns whether it did
 */
export async function secureEnd(store: OwnedStore, { position, appended }: LogEnd): Promise<boolean> {
  if (appended === null) return false
  const bytes = await store.read(appended.path, appended.start, appended.end)
  return bytes !== null && store.create(commitPath(position.sequence), [bytes])
}

function parseCommit(line: Buffer, { sequence, checksum }: LogPosition, { first, bytes }: LogFile) {
  const path = commitPath(first)
  const parsed = line.length === 0 ? null : parseLine(line, checksum)
  if (parsed === null) throw damaged('The commit does not match its checksum', path)
  if (!parsed.follows) throw damaged('The commit does not follow the commit before it', path)
  const parts = partsOf(parsed.value)
  if (parts === null) throw damaged('The commit holds an entry that is not known', path)
  const placed = located({ first, bytes: bytes + line.length + 1 }, parts)
  return { ...placed, position: { sequence: sequence + 1, checksum: parsed.checksum } }
}

/** In place of a line: the file ends there, */
const AT_END = Buffer.alloc(0)
/** or before, */
const CUT = Buffer.alloc(0)
/** or in the middle of it. */
const BEGUN = Buffer.alloc(0)

/** The line that begins at a byte, or what is there instead; null: there is no such file. */
async function readLine(store: Store, path: string, start: number): Promise<Buffer | null> {
  // The byte before shows that what precedes the line is there.
  const before = Math.min(start, 1)
  for (let size = FIRST_READ; ; size *= 8) {
    const bytes = await store.read(path, start - before, start + size)
    if (bytes === null) return null
    if (bytes.byteLength < before) return CUT
    if (bytes.byteLength === before) return AT_END
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset + before, bytes.byteLength - before)
    const end = buffer.indexOf(NEWLINE)
    if (end > 0) return buffer.subarray(0, end)
    if (end === 0 || buffer.byteLength < size) return BEGUN
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
