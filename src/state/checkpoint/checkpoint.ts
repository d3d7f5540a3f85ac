import {
  ExportError,
  type HeaderEntry,
  type JournalEntry,
  type Store,
  unlessSecret,
} from '../../core/index.ts'
import {
  fsyncJournal,
  JOURNAL_START,
  type JournalEnd,
  lineWriter,
  openJournal,
  readFirstLine,
  readJournal,
} from '../journal/journal.ts'
import { faultyField, type JournalLine, parseJournalLine } from '../journal/journal-line.ts'
import { type CheckpointState, type Omission, snapshot } from './checkpoint-state.ts'
import type { SealedShard } from './compact-collections.ts'
import { type Folding, foldJournal } from './fold-journal.ts'

export const CHECKPOINT_PATH = '_state/checkpoint.jsonl'
/** First characters of every checkpoint. */
export const CHECKPOINT_START = '{"kind":"header","version":'

/** The open checkpoint of a run. */
export type Checkpoint = {
  readonly state: CheckpointState
  /** Commits entries, all of them or none. They are fsynced and in `state` when it resolves. */
  append(entries: readonly JournalEntry[]): Promise<void>
  close(): Promise<void>
}

/**
 * Opens a data set's checkpoint for a run, or creates it with this header. Compacts it if most of its lines are
 * superseded.
 * @param accept gets the state (null: no checkpoint) before the journal is changed; it throws to reject the state
 * @param onShard gets every finished shard while the checkpoint is read
 * @throws ExportError `damaged` if lines are invalid, `config` if another version wrote it
 */
export async function openCheckpoint(
  store: Store,
  header: HeaderEntry,
  accept: (found: CheckpointState | null) => void | Promise<void>,
  onShard?: (shard: SealedShard) => void,
): Promise<Checkpoint> {
  let found = await fold(store, onShard)
  // Shards will be renamed according to these entries, so the entries must be on the disk first.
  if (found !== null) await fsyncJournal(store, CHECKPOINT_PATH)
  await accept(found?.folding.state ?? null)
  if (found !== null && isOvergrown(found.folding.state)) {
    await rewriteCheckpoint(store, found.folding.state)
    found = await fold(store)
  }
  const { folding, end } = found ?? (await begin(store, header))
  const journal = await openJournal(store, CHECKPOINT_PATH, end)
  return {
    state: folding.state,
    async append(entries) {
      const line = lineOf(entries)
      if (line === null) return
      await journal.append([line])
      folding.apply(line)
    },
    close: () => journal.close(),
  }
}

/**
 * One line for all entries.
 * @returns null if there are none
 * @throws ExportError `data` if a reader would reject them
 */
function lineOf(given: readonly JournalEntry[]): JournalLine | null {
  const entries = given.map(withoutSecret)
  const [only] = entries
  if (only === undefined) return null
  return readable(entries.length === 1 ? only : { kind: 'transaction', entries })
}

/** Checks that readers accept the line. One invalid line would make the whole data set unusable. */
function readable<L extends JournalLine>(line: L): L {
  const field = faultyField(line)
  if (field === null) return line
  throw new ExportError(
    'data',
    `The journal entry "${line.kind}" could not be read again: ${field} is out of range`,
    CHECKPOINT_PATH,
    'The entry was not written, and committed data is unchanged. Report this error with the name of the field.',
  )
}

/** Removes secrets from error messages, the only strings in entries that may quote a response. */
function withoutSecret(entry: JournalEntry): JournalEntry {
  if (entry.kind !== 'failed') return entry
  return { ...entry, error: { ...entry.error, message: unlessSecret(entry.error.message, 'long') } }
}

type Found = { readonly folding: Folding; readonly end: JournalEnd }

/** Writes the first line atomically. So a file without a valid first line is not a checkpoint of Spillway. */
async function begin(store: Store, header: HeaderEntry): Promise<Found> {
  await store.writeWhole(CHECKPOINT_PATH, [lineWriter(JOURNAL_START.checksum)(readable(header), 0)])
  const begun = await fold(store)
  if (begun === null) throw noCheckpoint()
  return begun
}

/**
 * Reads a checkpoint without changing it, also during a run; null: the file does not exist.
 * @param onShard gets every finished shard while the checkpoint is read
 */
export async function readCheckpoint(
  store: Store,
  onShard?: (shard: SealedShard) => void,
): Promise<CheckpointState | null> {
  return (await fold(store, onShard))?.folding.state ?? null
}

/** The first entry alone; null: no checkpoint. */
export async function readHeader(store: Store): Promise<HeaderEntry | null> {
  const line = parseJournalLine(await readFirstLine(store, CHECKPOINT_PATH))
  return line?.kind === 'header' ? line : null
}

/** The identity of the data set; null: no checkpoint. */
export async function readDataSetId(store: Store): Promise<string | null> {
  return (await readHeader(store))?.data_set_id ?? null
}

/** Temporary file of a rewrite. After a crash the next rewrite overwrites it. */
const REWRITE_PATH = '_state/open/checkpoint.jsonl'

/**
 * Compacts the journal atomically: fewer entries for the same state.
 * @param pruned what to leave out
 * @param more entries that follow
 */
export async function rewriteCheckpoint(
  store: Store,
  state: CheckpointState,
  { pruned = null, more = [] }: Rewrite = {},
): Promise<void> {
  const encode = lineWriter(JOURNAL_START.checksum)
  const log = await store.openLog(REWRITE_PATH, 0)
  try {
    let written = 0
    let lines: Uint8Array[] = []
    for (const entry of concatenated(snapshot(state, pruned), more)) {
      // The file is renamed only after its fsync, so `flushed` covers all bytes before the line.
      const line = encode(readable(entry), written)
      written += line.byteLength
      if (lines.push(line) < LINES_AT_ONCE) continue
      await log.append([Buffer.concat(lines)])
      lines = []
    }
    await log.append([Buffer.concat(lines)])
    await log.fsync()
  } finally {
    await log.close()
  }
  await store.publish(REWRITE_PATH, CHECKPOINT_PATH)
}

type Rewrite = { readonly pruned?: Omission | null; readonly more?: readonly JournalEntry[] }

function* concatenated<T>(...all: Iterable<T>[]): Generator<T> {
  for (const each of all) yield* each
}

const LINES_AT_ONCE = 10_000

async function fold(store: Store, onShard?: (shard: SealedShard) => void): Promise<Found | null> {
  let folding: Folding | null = null
  const end = await readJournal(store, CHECKPOINT_PATH, (raw, number) => {
    const line = parseJournalLine(raw)
    if (line === null) throw number === 1 ? otherVersion() : unreadable(number)
    if (onShard !== undefined) {
      for (const entry of line.kind === 'transaction' ? line.entries : [line])
        if (entry.kind === 'seal') onShard(entry)
    }
    if (folding !== null) folding.apply(line)
    else if (line.kind === 'header') folding = foldJournal(line)
    else throw unreadable(number)
  })
  if (end === null) return null
  if (folding === null) throw noCheckpoint()
  return { folding, end }
}

// Compaction writes the whole file, so only a large file with mostly superseded lines is compacted.
const COMPACT_FROM_LINES = 20_000

function isOvergrown(state: CheckpointState): boolean {
  if (state.lines < COMPACT_FROM_LINES) return false
  let live = state.shards.length + 2 * state.runs.length + state.chains.size
  for (const windows of state.partitions.branches.values()) live += windows.size
  for (const shard of state.openShards.values()) live += 1 + shard.rowGroups.length
  return state.lines > 3 * live
}

function otherVersion(): ExportError {
  return new ExportError(
    'config',
    'The checkpoint was written by another version of spillway',
    CHECKPOINT_PATH,
    'Run it with the version that wrote it, choose another load.path, or start over with --fresh.',
  )
}

/** The error for a file of another program, which is never overwritten, or a damaged checkpoint. */
function noCheckpoint(): ExportError {
  return new ExportError(
    'damaged',
    'The file is not a checkpoint of spillway: its first line is not valid',
    CHECKPOINT_PATH,
    'If another program wrote it, move it away. Otherwise restore it from a backup, choose another load.path, or start over with --fresh.',
  )
}

function unreadable(line: number): ExportError {
  return new ExportError(
    'damaged',
    `Line ${line} of the checkpoint is not a known entry`,
    CHECKPOINT_PATH,
    'Restore the file from a backup, or start over with --fresh; nothing was changed.',
  )
}
