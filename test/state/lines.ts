import {
  type Aggregates,
  type Counts,
  type HeaderEntry,
  type JournalEntry,
  type OpenShardRecord,
  type PageEntry,
  parseInstant,
  partitionKey,
  type SealEntry,
  type Store,
  type Window,
  WindowRun,
} from '../../src/core/index.ts'
import {
  CHECKPOINT_PATH,
  type ChainRecord,
  type CheckpointState,
  chainEntry,
  readCheckpoint,
} from '../../src/state/index.ts'
import { JOURNAL_START, openJournal } from '../../src/state/journal/journal.ts'
import type { JournalLine } from '../../src/state/journal/journal-line.ts'

export const HEADER: HeaderEntry = {
  kind: 'header',
  version: 3,
  pipeline: 'acme',
  data_set_id: '0b5bd4f5-6a3c-4c0e-9d0e-6a1f1c2d3e4f',
  created_at: '2024-07-01T00:00:00.000Z',
  settings: { 'extract.order': 'asc' },
}

export function seal(shard: number, path: string, over: Partial<SealEntry> = {}): SealEntry {
  return {
    kind: 'seal',
    shard,
    path,
    rows: 1,
    bytes: 10,
    sha256: 'ab'.repeat(32),
    partitions: ['domain.acme.com/all'],
    imported_at: { min: 1, max: 2 },
    ...over,
  }
}

/** One that asks for all of a query at once. */
export function chainOfAll(chain: number, query: string): JournalEntry {
  return chainEntry(chain, query, new WindowRun('asc', null))
}

export function page(over: Partial<PageEntry> = {}): PageEntry {
  return { kind: 'page', chain: 0, next: 'n', requests: 1, ...over }
}

export const DAY = 86_400_000_000

/** This many days from 2024-01-01 on. */
export function days(count: number, first = 0): Window[] {
  const from = parseInstant('2024-01-01')! + first * DAY
  return Array.from({ length: count }, (_, day) => ({
    from: from + day * DAY,
    until: from + (day + 1) * DAY,
  }))
}

/** Writes a journal from its beginning. @returns where each line ends */
export async function writeJournal(store: Store, path: string, lines: readonly object[]): Promise<number[]> {
  const journal = await openJournal(store, path, JOURNAL_START)
  const ends: number[] = []
  for (const line of lines) {
    await journal.append([line])
    ends.push(journal.size)
  }
  await journal.close()
  return ends
}

export async function writeCheckpoint(store: Store, lines: readonly JournalLine[]): Promise<void> {
  const journal = await openJournal(store, CHECKPOINT_PATH, JOURNAL_START)
  await journal.append(lines)
  await journal.close()
}

export async function stateIn(store: Store): Promise<CheckpointState> {
  const state = await readCheckpoint(store)
  if (state === null) throw new Error('no checkpoint')
  return state
}

/** The entries of lines, those of a transaction one by one. */
export function factsOf(lines: readonly JournalLine[]): readonly JournalEntry[] {
  return lines.flatMap((line) => (line.kind === 'transaction' ? line.entries : [line]))
}

/** The keys of a chain's partitions, in the order of the chain. */
export function keysOf({ query, windows }: Pick<ChainRecord, 'query' | 'windows'>): readonly string[] {
  return Array.from({ length: windows.count }, (_, index) => partitionKey(query, windows.at(index)))
}

/**
 * A state as plain values, less what a rewrite may change: how many lines it took, in which order, the files that have
 * gone since, and numbers of chains that have ended.
 */
export function plain(state: CheckpointState) {
  const byKey = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)
  const byNumber = ([a]: readonly [number, unknown], [b]: readonly [number, unknown]): number => a - b
  return {
    header: state.header,
    partitions: [...state.partitions].sort(byKey),
    chains: [...state.chains].sort(byNumber).map(([, chain]) => plainChain(chain)),
    shards: [...state.shards],
    openShards: [...state.openShards].sort(byNumber).map(([, shard]) => plainShard(shard)),
    held: [...state.held].sort(byNumber),
    redo: { ...state.redo, shards: [...state.redo.shards].sort((a, b) => a - b) },
    partsOf: [...state.partsOf].filter(([, parts]) => parts > 0).sort(byKey),
    goneFrom: [...state.goneFrom].sort(byKey),
    nextShard: state.nextShard,
    unknownFields: [...state.unknownFields].sort(byKey),
    sums: plainSums(state.aggregates()),
    runs: state.runs.map((run) => ({ ...run })),
    prunes: state.prunes.map((prune) => ({ ...prune })),
    searchesRemaining: state.searchesRemaining,
    service: state.service,
    secretChecks: [...state.secretChecks].sort(byKey),
    queries: [...state.queries].sort(byKey),
  }
}

/** In no order. */
export function plainSums({ rows, days, sources, hash_types, nulls }: Aggregates) {
  const counts = <Key>({ counts, others }: Counts<Key>) => ({ counts: new Map(counts), others })
  return { rows, days: counts(days), sources: counts(sources), hash_types: counts(hash_types), nulls }
}

/** Cursors by how many they are and, in no order, by their digests. */
export function plainChain({ windows, seen, ...chain }: ChainRecord) {
  const digests = seen === null ? [] : [...new BigUint64Array(new Uint8Array(seen.toBytes()).buffer)]
  return {
    ...chain,
    windows: { order: windows.order, bounds: windows.bounds === null ? null : [...windows.bounds] },
    seen: { size: seen?.size ?? 0, digests: digests.map(String).sort() },
  }
}

export function plainShard({ partitions, rowGroups, records, ...shard }: OpenShardRecord) {
  return { ...shard, partitions: [...partitions].sort(), rowGroups: [...rowGroups], records: [...records] }
}
