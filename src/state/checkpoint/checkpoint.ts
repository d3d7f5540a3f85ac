import { ExportError, isExportError, type OwnedStore, type Store } from '../../core/index.ts'
import type { HeaderEntry, JournalEntry } from '../journal-entry.ts'
import {
  type Commit,
  damaged,
  encodeCommit,
  LOG_START,
  parseCommit,
  REMEDIES,
  requireReadable,
} from '../log/commit.ts'
import { linesOf } from '../log/lines.ts'
import { listLog, readLog } from '../log/read-log.ts'
import { type CheckpointState, JournalFold } from './fold-journal.ts'
import { snapshot } from './snapshot.ts'

export const CHECKPOINT_PATH = '_state/checkpoint.jsonl'
export const CHECKPOINT_START = '{"parts":[{"entries":[{"kind":"header","version":'

/** A checkpoint and the commits after it, as one state. */
export type Found = {
  readonly fold: JournalFold
  /** The last file of the log that the checkpoint covers, and its own size. */
  readonly saved: { readonly file: number; readonly bytes: number }
  /** Bytes of the commits after it. */
  readonly entryBytes: number
  readonly blobBytes: number
}

/** The state of a data set, also during a run; null: none. @throws ExportError `damaged`, or `config`: other version */
export async function readCheckpoint(store: Store): Promise<CheckpointState | null> {
  return (await findCheckpoint(store))?.fold ?? null
}

export async function findCheckpoint(store: Store): Promise<Found | null> {
  for (let before: string | null = null; ; ) {
    let seen = ''
    try {
      return await find(store, (what) => (seen = what))
    } catch (error) {
      // An owner replaces the checkpoint, and removes what that covers, while this is read. Damage is what stays.
      if (!isExportError(error, 'damaged', 'locked') || seen === before) throw error
      before = seen
    }
  }
}

/** @param onSeen is told by what to know whether an owner has changed something since */
async function find(store: Store, onSeen: (what: string) => void): Promise<Found | null> {
  const saved = await readSaved(store)
  if (saved === null) return null
  const { fold, bytes } = saved
  const { logEnd } = fold
  const files = await listLog(store)
  onSeen(`${logEnd.file} ${logEnd.checksum} ${files.at(-1)}`)
  let [entryBytes, blobBytes] = [0, 0]
  await readLog(store, logEnd, files, (parts, end, lineBytes) => {
    entryBytes += lineBytes
    for (const { entries, blobs } of parts) {
      fold.apply(entries, end, blobs)
      for (const { bytes } of blobs) blobBytes += bytes
    }
  })
  return { fold, saved: { file: logEnd.file, bytes }, entryBytes, blobBytes }
}

/** The first entry alone; null: no checkpoint. @throws ExportError as {@link readCheckpoint} */
export async function readHeader(store: Store): Promise<HeaderEntry | null> {
  for await (const { parts } of commitsIn(store)) return headerOf(parts)
  return null
}

/** Writes the first checkpoint of a data set. Its log goes on after the files that an earlier data set has left. */
export async function beginCheckpoint(store: OwnedStore, header: HeaderEntry): Promise<void> {
  const file = (await listLog(store)).at(-1) ?? 0
  await writeCommits(store, [header, { kind: 'end_of_log', ...LOG_START, file }])
}

/** Replaces the checkpoint by the state as of its last commit. @returns its size in bytes */
export function saveCheckpoint(store: OwnedStore, state: CheckpointState): Promise<number> {
  return writeCommits(store, snapshot(state))
}

/** One entry each, so that a line that is damaged can be named. */
async function writeCommits(store: OwnedStore, entries: Iterable<JournalEntry>): Promise<number> {
  const chunks: Uint8Array[] = []
  let end = LOG_START
  for (const entry of entries) {
    requireReadable(entry)
    const commit = encodeCommit(end, [{ entries: [entry], blobs: [] }], 0)
    chunks.push(...commit.chunks)
    end = commit.end
  }
  await store.replace(CHECKPOINT_PATH, chunks)
  return end.bytes
}

async function readSaved(
  store: Store,
): Promise<{ readonly fold: JournalFold; readonly bytes: number } | null> {
  let fold: JournalFold | null = null
  let bytes = 0
  for await (const { parts, end } of commitsIn(store)) {
    fold ??= new JournalFold(headerOf(parts))
    for (const { entries } of parts) fold.apply(entries, LOG_START, [])
    bytes = end.bytes
  }
  if (fold?.logEnd === LOG_START)
    throw damaged(
      'The last line of the checkpoint is followed by nothing: the rest is missing',
      CHECKPOINT_PATH,
    )
  return fold === null ? null : { fold, bytes }
}

async function* commitsIn(store: Store): AsyncGenerator<Commit> {
  if ((await store.size(CHECKPOINT_PATH)) === null) return
  let end = LOG_START
  let number = 0
  for await (const line of linesOf(store.stream(CHECKPOINT_PATH))) {
    number++
    const commit = line === null ? null : parseCommit(line, end)
    if (commit === 'unknown')
      throw number === 1 ? otherVersion() : damagedLine(number, 'is not a known entry')
    if (commit === null)
      throw number === 1
        ? noCheckpoint()
        : damagedLine(number, 'was changed, or does not follow from the one before it')
    yield commit
    end = commit.end
  }
  if (number === 0) throw noCheckpoint()
}

function headerOf([part]: Commit['parts']): HeaderEntry {
  const entry = part?.entries[0]
  if (entry?.kind !== 'header') throw noCheckpoint()
  return entry
}

function otherVersion(): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The checkpoint was written by another version of spillway',
    where: CHECKPOINT_PATH,
    next: `Run it with the version that wrote it, or: ${REMEDIES}`,
  })
}

/** The error for a file of another program, which is never overwritten, or a damaged checkpoint. */
function noCheckpoint(): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'The file is not a checkpoint of spillway: its first line is not valid',
    where: CHECKPOINT_PATH,
    next: REMEDIES,
  })
}

function damagedLine(line: number, how: string): ExportError {
  return damaged(`Line ${line} of the checkpoint ${how}`, CHECKPOINT_PATH)
}
