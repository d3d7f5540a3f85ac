import { ExportError, isExportError, type OwnedStore, type Store } from '../../core/index.ts'
import type { HeaderEntry, JournalEntry } from '../journal-entry.ts'
import { damaged, LOG_START, type LogEnd, REMEDIES } from '../log/commit.ts'
import { LineWriter, linesOf, parseLine } from '../log/lines.ts'
import { parseEntry, requireReadable } from '../log/parse-entry.ts'
import { listLog, readLog } from '../log/read-log.ts'
import { type CheckpointState, snapshot } from './checkpoint-state.ts'
import { JournalFold } from './fold-journal.ts'

export const CHECKPOINT_PATH = '_state/checkpoint.jsonl'
export const CHECKPOINT_START = '{"kind":"header","version":'

/** A checkpoint and the commits after it, as one state. */
export type Found = {
  readonly fold: JournalFold
  /** The last file of the log that the checkpoint covers, and its own size. */
  readonly saved: { readonly file: number; readonly bytes: number }
  /** Bytes of the commits after it. */
  readonly entryBytes: number
  readonly blobBytes: number
  /** Numbers of all files in the log. */
  readonly files: readonly number[]
}

/** The state of a data set, also during a run; null: none. @throws ExportError `damaged`, or `config`: other version */
export async function readCheckpoint(store: Store): Promise<CheckpointState | null> {
  return (await findCheckpoint(store))?.fold.state ?? null
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
  const { logEnd } = fold.state
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
  return { fold, saved: { file: logEnd.file, bytes }, entryBytes, blobBytes, files }
}

/** The first entry alone; null: no checkpoint. */
export async function readHeader(store: Store): Promise<HeaderEntry | null> {
  if ((await store.size(CHECKPOINT_PATH)) === null) return null
  for await (const line of linesOf(store.stream(CHECKPOINT_PATH))) {
    const entry = line === null ? null : parseEntry(parseLine(line, 0)?.value)
    return entry?.kind === 'header' ? entry : null
  }
  return null
}

/** Writes the first checkpoint of a data set. Its log goes on after the files that an earlier data set has left. */
export async function beginCheckpoint(store: OwnedStore, header: HeaderEntry): Promise<void> {
  const file = (await listLog(store)).at(-1) ?? 0
  await writeEntries(store, [header], { ...LOG_START, file })
}

/** Replaces the checkpoint by the state as of its last commit. @returns its size in bytes */
export function saveCheckpoint(store: OwnedStore, state: CheckpointState): Promise<number> {
  return writeEntries(store, snapshot(state), state.logEnd)
}

async function writeEntries(
  store: OwnedStore,
  entries: Iterable<JournalEntry>,
  end: LogEnd,
): Promise<number> {
  const writer = new LineWriter(0)
  const chunks: Buffer[] = []
  let lines: Buffer[] = []
  let bytes = 0
  const add = (entry: object): void => {
    const line = writer.line(entry)
    bytes += line.byteLength
    if (lines.push(line) < LINES_AT_ONCE) return
    chunks.push(Buffer.concat(lines))
    lines = []
  }
  for (const entry of entries) {
    requireReadable(entry)
    add(entry)
  }
  add({ kind: END, ...end })
  await store.replace(CHECKPOINT_PATH, [...chunks, ...lines])
  return bytes
}

const LINES_AT_ONCE = 10_000

/** The kind of the last line, which tells where the log goes on. Without it, the file is cut. */
const END = 'end_of_log'

async function readSaved(
  store: Store,
): Promise<{ readonly fold: JournalFold; readonly bytes: number } | null> {
  if ((await store.size(CHECKPOINT_PATH)) === null) return null
  let fold: JournalFold | null = null
  let [number, bytes, checksum, isEnded] = [0, 0, 0, false]
  for await (const line of linesOf(store.stream(CHECKPOINT_PATH))) {
    number++
    const parsed = line === null ? null : parseLine(line, checksum)
    if (parsed === null || !parsed.follows) {
      if (number === 1) throw noCheckpoint()
      throw damagedLine(
        number,
        parsed === null ? 'does not match its checksum' : 'does not follow from the one before it',
      )
    }
    bytes += line!.length + 1
    checksum = parsed.checksum
    if (isEnded) throw damagedLine(number, 'comes after the last')
    const end = endOf(parsed.value)
    if (end !== null && fold !== null) {
      fold.apply([], end, [])
      isEnded = true
      continue
    }
    const entry = parseEntry(parsed.value)
    if (entry === null) throw number === 1 ? otherVersion() : damagedLine(number, 'is not a known entry')
    if (fold !== null) fold.apply([entry], LOG_START, [])
    else if (entry.kind === 'header') fold = new JournalFold(entry)
    else throw noCheckpoint()
  }
  if (fold === null) throw noCheckpoint()
  if (!isEnded) throw damagedLine(number, 'is followed by nothing: the rest of the file is missing')
  return { fold, bytes }
}

function endOf(value: unknown): LogEnd | null {
  const { kind, file, bytes, checksum } = value as { kind?: unknown } & LogEnd
  return kind === END ? { file, bytes, checksum } : null
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
