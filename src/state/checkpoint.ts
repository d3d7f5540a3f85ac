import { ExportError, type Store, unlessSecret } from '../core/index.ts'
import { addCounts, type CheckpointState, type Folding, foldLines } from './checkpoint-state.ts'
import {
  flushJournal,
  JOURNAL_START,
  type JournalEnd,
  lineSealer,
  openJournal,
  readJournal,
} from './journal.ts'
import { type HeaderLine, type Line, parseLine } from './lines.ts'
import type { SealedShard } from './shard-list.ts'

export const CHECKPOINT_PATH = '_state/checkpoint.jsonl'
/** How every checkpoint begins. */
export const CHECKPOINT_START = '{"kind":"header","version":'

/** The checkpoint of a run: what is durable, and the way to make more so. */
export type Checkpoint = {
  readonly state: CheckpointState
  /** Appends lines in one write; once it resolves they are on stable storage and in `state`. */
  append(lines: readonly Line[]): Promise<void>
  close(): Promise<void>
}

/**
 * Opens a data set's checkpoint for a run, or begins one with the header given; compacts it when it has
 * grown far beyond what it says.
 * @param accept gets what was found (null: no checkpoint) before the journal is touched; refuses it by throwing
 * @param onShard gets every finished shard while the checkpoint is still being read
 * @throws ExportError `damaged` when lines can't be read, `config` when another version wrote it
 */
export async function openCheckpoint(
  store: Store,
  header: HeaderLine,
  accept: (found: CheckpointState | null) => void | Promise<void>,
  onShard?: (shard: SealedShard) => void,
): Promise<Checkpoint> {
  let found = await fold(store, onShard)
  // Shards are about to get the names that its lines give them: those lines must not be lost any more.
  if (found !== null) await flushJournal(store, CHECKPOINT_PATH)
  await accept(found?.folding.state ?? null)
  if (found !== null && isOvergrown(found.folding.state)) {
    await compact(store, found.folding.state)
    found = await fold(store)
  }
  const { folding, end } = found ?? (await begin(store, header))
  const journal = await openJournal(store, CHECKPOINT_PATH, end)
  return {
    state: folding.state,
    async append(given) {
      const lines = given.map(withoutSecret)
      await journal.append(lines)
      for (const line of lines) folding.apply(line)
    },
    close: () => journal.close(),
  }
}

/** The one text in a line that others may have had a hand in. */
function withoutSecret(line: Line): Line {
  if (line.kind !== 'failed') return line
  return { ...line, error: { ...line.error, message: unlessSecret(line.error.message, 'long') } }
}

type Found = { readonly folding: Folding; readonly end: JournalEnd }

/** In one step, so that whatever lacks a whole first line is known to be none of ours. */
async function begin(store: Store, header: HeaderLine): Promise<Found> {
  await store.writeWhole(CHECKPOINT_PATH, [lineSealer(JOURNAL_START.checksum)(header, 0)])
  const begun = await fold(store)
  if (begun === null) throw noCheckpoint()
  return begun
}

/**
 * Reads a checkpoint without touching it, also while a run is at work; null when there is none.
 * @param onShard gets every finished shard while the checkpoint is still being read
 */
export async function readCheckpoint(
  store: Store,
  onShard?: (shard: SealedShard) => void,
): Promise<CheckpointState | null> {
  return (await fold(store, onShard))?.folding.state ?? null
}

/** What a crash left of a rewrite is written over by the next one. */
const REWRITE_PATH = '_state/open/checkpoint.jsonl'

/**
 * Rewrites the journal in one step: the lines that `keep` returns, then those of `extra`. They pass through: cursors
 * may be long, and all those of a long chain are more than fits into memory.
 */
export async function rewriteCheckpoint(
  store: Store,
  keep: (line: Line) => Line | null,
  extra: () => Iterable<Line> = () => [],
): Promise<void> {
  const seal = lineSealer(JOURNAL_START.checksum)
  let written = 0
  let kept: Uint8Array[] = []
  const add = (line: Line): void => {
    // The file gets its name when it is whole and flushed, so of each line all that is before it is.
    const bytes = seal(line, written)
    written += bytes.byteLength
    kept.push(bytes)
  }
  const log = await store.openLog(REWRITE_PATH, 0)
  const writeOut = async (): Promise<void> => {
    const bytes = Buffer.concat(kept)
    kept = []
    await log.append([bytes])
  }
  const visit = (line: Line): void => {
    const result = keep(line)
    if (result !== null) add(result)
  }
  try {
    await eachLine(store, visit, writeOut)
    for (const line of extra()) {
      add(line)
      if (kept.length >= EXTRA_AT_ONCE) await writeOut()
    }
    await writeOut()
    await log.flush()
  } finally {
    await log.close()
  }
  await store.publish(REWRITE_PATH, CHECKPOINT_PATH)
}

const EXTRA_AT_ONCE = 10_000

async function fold(store: Store, onShard?: (shard: SealedShard) => void): Promise<Found | null> {
  let folding: Folding | null = null
  const end = await eachLine(store, (line, number) => {
    if (line.kind === 'seal') onShard?.(line)
    if (folding !== null) folding.apply(line)
    else if (line.kind === 'header') folding = foldLines(line)
    else throw unreadable(number)
  })
  if (end === null) return null
  if (folding === null) throw noCheckpoint()
  return { folding, end }
}

async function eachLine(
  store: Store,
  visit: (line: Line, number: number) => void,
  pause?: () => Promise<void>,
): Promise<JournalEnd | null> {
  const parse = (raw: unknown, number: number): void => {
    const line = parseLine(raw)
    if (line === null) throw number === 1 ? otherVersion() : unreadable(number)
    visit(line, number)
  }
  return readJournal(store, CHECKPOINT_PATH, parse, pause)
}

/** Keeps what runs that never ended have sent, whatever becomes of the lines that say so. */
export function* cutRuns({ runs }: CheckpointState): Generator<Line> {
  for (const { run, finished_at, requests } of runs) {
    if (finished_at === null && requests > 0) yield { kind: 'cut', run, requests }
  }
}

// A rewrite reads and writes the whole file, so it waits until most of a large file is history.
const COMPACT_FROM_LINES = 20_000

function isOvergrown(state: CheckpointState): boolean {
  if (state.lines < COMPACT_FROM_LINES) return false
  let alive = state.shards.length + 2 * state.runs.length
  for (const [, record] of state.partitions) alive += record.state === 'done' ? 1 : record.pages
  for (const shard of state.openShards.values()) alive += shard.pages.length + shard.chunks.length
  return state.lines > 3 * alive
}

/**
 * Puts one line in place of all the lines of each finished partition. Partitions that are half-way, or
 * that have rows in an open shard, keep their lines: recovery may have to go back on them.
 */
async function compact(store: Store, state: CheckpointState): Promise<void> {
  const open = new Set<string>()
  for (const shard of state.openShards.values()) for (const page of shard.pages) open.add(page.partition)
  const settled = (key: string) => state.partitions.get(key)?.state === 'done' && !open.has(key)
  const unknown = new Map<string, number>()
  const forget = (fields: Readonly<Record<string, number>> = {}): void => addCounts(unknown, fields)
  await rewriteCheckpoint(
    store,
    (line) => {
      switch (line.kind) {
        case 'page':
          if (!settled(line.partition)) return line
          forget(line.unknown_fields)
          return null
        case 'seal': {
          if (line.page === undefined || !settled(line.page.partition)) return line
          forget(line.page.unknown_fields)
          const { page: _, ...shard } = line
          return shard
        }
        case 'open':
        case 'chunk':
          return state.openShards.has(line.shard) ? line : null
        case 'failed':
        case 'restart':
        case 'done':
          return settled(line.partition) ? null : line
        case 'unknown':
          forget(line.fields)
          return null
        // Their files went when the run took the data set up.
        case 'given-up':
        case 'cut':
          return null
        case 'header':
        case 'secret':
        case 'query':
        case 'run':
        case 'end':
          return line
      }
    },
    function* () {
      for (const [partition, { rows, pages, requests, quarantined, repeated }] of state.partitions) {
        if (settled(partition))
          yield { kind: 'done', partition, rows, pages, requests, quarantined, repeated }
      }
      if (unknown.size > 0) yield { kind: 'unknown', fields: Object.fromEntries(unknown) }
      yield* cutRuns(state)
    },
  )
}

function otherVersion(): ExportError {
  return new ExportError(
    'config',
    'The checkpoint was written by another version of spillway',
    CHECKPOINT_PATH,
    'Run it with the version that wrote it, choose another load.path, or start over with --fresh.',
  )
}

/** Somebody else's file, which is never written over, or what a disk made of ours. */
function noCheckpoint(): ExportError {
  return new ExportError(
    'damaged',
    'The file is no checkpoint of spillway: its first line says nothing',
    CHECKPOINT_PATH,
    'Move it away if it is yours; else restore it from a backup, choose another load.path, or start over with --fresh.',
  )
}

function unreadable(line: number): ExportError {
  return new ExportError(
    'damaged',
    `Line ${line} of the checkpoint makes no sense`,
    CHECKPOINT_PATH,
    'Restore the file from a backup, or start over with --fresh; nothing was changed.',
  )
}
