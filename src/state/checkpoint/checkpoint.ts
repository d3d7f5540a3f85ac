import { ExportError, type OwnedStore, type Store } from '../../core/index.ts'
import type { HeaderEntry, JournalEntry } from '../journal-entry.ts'
import { damaged, LOG_FOLDER, LOG_START, type LogPosition } from '../log/commit.ts'
import { LineWriter, linesOf, parseLine } from '../log/lines.ts'
import { parseEntry, requireReadable } from '../log/parse-entry.ts'
import { type LogEnd, listLog, readLog } from '../log/read-log.ts'
import { type CheckpointState, snapshot } from './checkpoint-state.ts'
import type { SealedShard } from './compact-collections.ts'
import { JournalFold } from './fold-journal.ts'

export const CHECKPOINT_PATH = '_state/checkpoint.jsonl'
/** First characters of every checkpoint. */
export const CHECKPOINT_START = '{"kind":"header","version":'

/** A checkpoint and the commits after it, as one state. */
export type Found = {
  readonly fold: JournalFold
  /** The last commit that the file covers, and its size. */
  readonly saved: { readonly sequence: number; readonly bytes: number }
  /** Bytes of the commits after it. */
  readonly entryBytes: number
  readonly blobBytes: number
  /** Numbers of all files in the log. */
  readonly files: ReadonlySet<number>
  readonly end: LogEnd
}

/**
 * Reads the state of a data set without changing it, also during a run; null: there is no checkpoint.
 * @param onShard gets every sealed shard while the checkpoint is read
 * @throws ExportError `damaged` if something is missing or not valid, `config` if another version wrote it
 */
export async function readCheckpoint(
  store: Store,
  onShard?: (shard: SealedShard) => void,
): Promise<CheckpointState | null> {
  return (await findCheckpoint(store, onShard))?.fold.state ?? null
}

export async function findCheckpoint(
  store: Store,
  onShard?: (shard: SealedShard) => void,
): Promise<Found | null> {
  for (let last = -1; ; ) {
    const saved = await readSaved(store, onShard)
    if (saved === null) return null
    const { fold, bytes } = saved
    const from = fold.state.position
    const files = await listLog(store)
    let [entryBytes, blobBytes] = [0, 0]
    const end = await readLog(store, from, files, (parts, position, lineBytes) => {
      entryBytes += lineBytes
      for (const { entries, blobs } of parts) {
        if (onShard !== undefined) tellShards(entries, onShard)
        fold.apply(entries, position, blobs)
        for (const { bytes } of blobs) blobBytes += bytes
      }
    })
    if (end !== null) {
      const saved = { sequence: from.sequence, bytes }
      return { fold, saved, entryBytes, blobBytes, files: new Set(files), end }
    }
    // A run removes commits once a newer checkpoint covers them.
    if (from.sequence === last) throw missingCommit(fold.state.position)
    last = from.sequence
  }
}

function tellShards(entries: readonly JournalEntry[], onShard: (shard: SealedShard) => void): void {
  for (const entry of entries) {
    if (entry.kind === 'seal') onShard(entry)
    if (entry.kind === 'forget')
      for (const { by } of entry.changes?.shards ?? []) if (by !== null) onShard(by)
  }
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
  const sequence = (await listLog(store)).at(-1) ?? 0
  await writeEntries(store, [header], { ...LOG_START, sequence })
}

/** Replaces the checkpoint by the state as of its last commit. @returns its size in bytes */
export function saveCheckpoint(store: OwnedStore, state: CheckpointState): Promise<number> {
  return writeEntries(store, snapshot(state), state.position)
}

async function writeEntries(
  store: OwnedStore,
  entries: Iterable<JournalEntry>,
  { sequence, checksum }: LogPosition,
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
  add({ kind: POSITION, sequence, checksum })
  await store.replace(CHECKPOINT_PATH, [...chunks, ...lines])
  return bytes
}

const LINES_AT_ONCE = 10_000

/** The kind of the last line. Without it, the file is cut. */
const POSITION = 'position'

async function readSaved(
  store: Store,
  onShard?: (shard: SealedShard) => void,
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
    const position = positionOf(parsed.value)
    if (position !== null && fold !== null) {
      fold.apply([], position, [])
      isEnded = true
      continue
    }
    const entry = parseEntry(parsed.value)
    if (entry === null) throw number === 1 ? otherVersion() : damagedLine(number, 'is not a known entry')
    if (onShard !== undefined) tellShards([entry], onShard)
    if (fold !== null) fold.apply([entry], LOG_START, [])
    else if (entry.kind === 'header') fold = new JournalFold(entry)
    else throw noCheckpoint()
  }
  if (fold === null) throw noCheckpoint()
  if (!isEnded) throw damagedLine(number, 'is followed by nothing: the rest of the file is missing')
  return { fold, bytes }
}

function positionOf(value: unknown): LogPosition | null {
  const { kind, sequence, checksum } = value as { kind?: unknown; sequence: number; checksum: number }
  return kind === POSITION ? { sequence, checksum } : null
}

function otherVersion(): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The checkpoint was written by another version of spillway',
    where: CHECKPOINT_PATH,
    next: 'Run it with the version that wrote it, choose another load.path, or start over with --fresh.',
  })
}

/** The error for a file of another program, which is never overwritten, or a damaged checkpoint. */
function noCheckpoint(): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'The file is not a checkpoint of spillway: its first line is not valid',
    where: CHECKPOINT_PATH,
    next: 'If another program wrote it, move it away. Otherwise restore it from a backup, choose another load.path, or start over with --fresh.',
  })
}

function damagedLine(line: number, how: string): ExportError {
  return damaged(`Line ${line} of the checkpoint ${how}`, CHECKPOINT_PATH)
}

function missingCommit({ sequence }: LogPosition): ExportError {
  return damaged(`Commit ${sequence + 1} of the log is missing, and there are later ones`, LOG_FOLDER)
}
