import type { ExportError, OwnedStore, Store } from '../../core/index.ts'
import {
  type Commit,
  type CommittedPart,
  claimFile,
  claimOf,
  commitPath,
  damaged,
  LOG_FOLDER,
  type LogEnd,
  parseCommit,
  partsOf,
  readBlob,
} from './commit.ts'
import { NEWLINE, parseLine } from './lines.ts'

// Most lines are shorter; a page over a thousand windows takes 150 kB.
const FIRST_READ = 16 << 10
const READS_AT_ONCE = 16

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

/** Removes all commits. Until a new log goes on after it, an empty file keeps former owners out of the next claim. */
export async function emptyLog(store: OwnedStore, last: number): Promise<void> {
  const files = await listLog(store)
  const end = Math.max(last, ...files.slice(-1))
  if (end === 0) return
  await store.replace(commitPath(claimFile(claimOf(end) + 1)), [])
  for (const file of files) await store.remove(commitPath(file))
}

type Visit = (parts: readonly CommittedPart[], end: LogEnd, lineBytes: number) => void

/**
 * Reads the commits after `from`, without their blobs. Each claim says where the log of former owners ends. Behind the
 * last whole commit of the last file is what a crash has left.
 * @throws ExportError `damaged` if a commit is missing, not valid, or does not follow the one before it
 */
export async function readLog(
  store: Store,
  from: LogEnd,
  files: readonly number[],
  visit: Visit,
): Promise<void> {
  const after = files.filter((file) => file > from.file)
  const [first, last] = [claimOf(from.file), claimOf(after.at(-1) ?? from.file)]
  const claims = await Promise.all(
    Array.from({ length: last - first }, (_, i) => readClaim(store, claimFile(first + i + 1))),
  )
  let end = from
  for (const [i, next] of [...claims, null].entries()) {
    const claim = first + i
    const begin = i === 0 ? from.file + 1 : claimFile(claim)
    const stop = next ?? { file: after.findLast((file) => claimOf(file) === claim) ?? 0, bytes: null }
    const firstLine = linesAhead(store, begin, stop.file)
    for (let file = begin; file <= stop.file; file++) {
      const until = file < stop.file ? 'end' : stop.bytes
      end = await readFile(store, { file, line: await firstLine(file), end, until }, visit)
    }
    if (next !== null && (end.file !== next.file || end.bytes !== next.bytes))
      throw damaged('A claim does not follow the commits before it', commitPath(claimFile(claim + 1)))
  }
}

/** Where the log ends that a claim follows. */
async function readClaim(store: Store, file: number): Promise<Pick<LogEnd, 'file' | 'bytes'>> {
  const line = await readLine(store, commitPath(file), 0)
  const parts = typeof line === 'string' ? null : partsOf(parseLine(line, 0)?.value)
  const [entry] = parts?.[0]?.entries ?? []
  if (entry?.kind !== 'claim') throw invalid(file, line)
  const [last, bytes] = entry.after
  return { file: last, bytes }
}

function linesAhead(store: Store, first: number, last: number): (file: number) => Promise<Line> {
  const ahead: Promise<Line>[] = []
  let next = first
  return (file) => {
    for (; next <= Math.min(last, file + READS_AT_ONCE); next++) {
      const line = readLine(store, commitPath(next), 0)
      // It is awaited in its turn, or not at all.
      line.catch(() => {})
      ahead.push(line)
    }
    return ahead.shift()!
  }
}

type FileToRead = {
  readonly file: number
  /** Its first one. */
  readonly line: Line
  /** Of the commit before. */
  readonly end: LogEnd
  /** Where its commits end; `end`: with the file; null: with the last whole one. */
  readonly until: number | 'end' | null
}

async function readFile(
  store: Store,
  { file, line: first, end: before, until }: FileToRead,
  visit: Visit,
): Promise<LogEnd> {
  let end: LogEnd = { file, bytes: 0, checksum: before.checksum }
  let commit = commitIn(first, end)
  if (commit === null) throw invalid(file, first)
  for (;;) {
    const isLast = commit.end.bytes === until
    const line = isLast ? 'end' : await readLine(store, commitPath(file), commit.end.bytes)
    const next = commitIn(line, commit.end)
    const mayEnd = isLast || until === null || (until === 'end' && line === 'end')
    if (line === 'missing' || (next === null && !mayEnd)) throw invalid(file, line)
    // A file gets its name with its first commit, which is whole. A crash may have cut the last one.
    const mayBeCut = next === null && until === null && end.bytes > 0
    if (mayBeCut && !(await areWhole(store, commit.parts))) return end
    visit(commit.parts, commit.end, commit.lineBytes)
    end = commit.end
    if (next === null) return end
    commit = next
  }
}

async function areWhole(store: Store, parts: readonly CommittedPart[]): Promise<boolean> {
  for (const ref of parts.flatMap(({ blobs }) => blobs))
    if ((await readBlob(store, ref)) === null) return false
  return true
}

/** @returns null: no commit that follows this end */
function commitIn(line: Line, end: LogEnd): Commit | null {
  const commit = typeof line === 'string' ? null : parseCommit(line, end)
  if (commit === 'unknown') throw damaged('The commit holds an entry that is not known', commitPath(end.file))
  return commit
}

/** What begins at a byte; `end`: the file ends there; `cut`: before, or before the end of the line. */
type Line = Buffer | 'end' | 'cut' | 'missing'

async function readLine(store: Store, path: string, start: number): Promise<Line> {
  // The byte before shows that what precedes the line is there.
  const before = Math.min(start, 1)
  for (let size = FIRST_READ; ; size *= 8) {
    const bytes = await store.read(path, start - before, start + size)
    if (bytes === null) return 'missing'
    if (bytes.byteLength <= before) return bytes.byteLength === before ? 'end' : 'cut'
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset + before, bytes.byteLength - before)
    const end = buffer.indexOf(NEWLINE)
    if (end >= 0) return buffer.subarray(0, end)
    if (buffer.byteLength < size) return 'cut'
  }
}

function invalid(file: number, line: Line): ExportError {
  return line === 'missing'
    ? damaged(`File ${file} of the log is missing, and there are later ones`, LOG_FOLDER)
    : damaged('A commit is not what was written', commitPath(file))
}
