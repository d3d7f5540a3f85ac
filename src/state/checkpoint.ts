import { ExportError, type Store } from '../core/index.ts'
import { addCounts, type CheckpointState, type Folding, foldLines } from './checkpoint-state.ts'
import { JOURNAL_START, type JournalEnd, lineSealer, openJournal, readJournal } from './journal.ts'
import { type HeaderLine, type Line, parseLine } from './lines.ts'
import type { SealedShard } from './shard-list.ts'

export const CHECKPOINT_PATH = '_state/checkpoint.jsonl'

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
  await accept(found?.folding.state ?? null)
  if (found !== null && isOvergrown(found.folding.state)) {
    await compact(store, found.folding.state)
    found = await fold(store)
  }
  const folding = found?.folding ?? foldLines(header)
  const journal = await openJournal(store, CHECKPOINT_PATH, found?.end ?? JOURNAL_START)
  if (found === null) await journal.append([header])
  return {
    state: folding.state,
    async append(lines) {
      await journal.append(lines)
      for (const line of lines) folding.apply(line)
    },
    close: () => journal.close(),
  }
}

/** Reads a checkpoint without touching it, also while a run is at work; null when there is none. */
export async function readCheckpoint(store: Store): Promise<CheckpointState | null> {
  return (await fold(store))?.folding.state ?? null
}

/** Rewrites the journal in one step: the lines that `keep` returns, then those of `extra`. */
export async function rewriteCheckpoint(
  store: Store,
  keep: (line: Line) => Line | null,
  extra: () => Iterable<Line> = () => [],
): Promise<void> {
  const kept: Uint8Array[] = []
  const seal = lineSealer(JOURNAL_START.checksum)
  await eachLine(store, (line) => {
    const result = keep(line)
    if (result !== null) kept.push(seal(result))
  })
  for (const line of extra()) kept.push(seal(line))
  await store.writeWhole(CHECKPOINT_PATH, kept)
}

async function fold(
  store: Store,
  onShard?: (shard: SealedShard) => void,
): Promise<{ folding: Folding; end: JournalEnd } | null> {
  let folding: Folding | null = null
  const end = await eachLine(store, (line, number) => {
    if (line.kind === 'seal') onShard?.(line)
    if (folding !== null) folding.apply(line)
    else if (line.kind === 'header') folding = foldLines(line)
    else throw unreadable(number)
  })
  // Killed before its first line was whole: nothing had begun.
  return end === null || folding === null ? null : { folding, end }
}

async function eachLine(
  store: Store,
  visit: (line: Line, number: number) => void,
): Promise<JournalEnd | null> {
  return readJournal(store, CHECKPOINT_PATH, (raw, number) => {
    const line = parseLine(raw)
    if (line === null) throw number === 1 ? otherVersion() : unreadable(number)
    visit(line, number)
  })
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
        case 'header':
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

function unreadable(line: number): ExportError {
  return new ExportError(
    'damaged',
    `Line ${line} of the checkpoint makes no sense`,
    CHECKPOINT_PATH,
    'Restore the file from a backup, or start over with --fresh; nothing was changed.',
  )
}
