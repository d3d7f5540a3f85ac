import { randomBytes } from 'node:crypto'
import {
  type OwnedStore,
  parseInstant,
  partitionKey,
  type Store,
  type Window,
  WindowRun,
} from '../../src/core/index.ts'
import {
  type BlobRef,
  beginCheckpoint,
  CHECKPOINT_PATH,
  type CheckpointState,
  chainEntry,
  type FoldedChain,
  type FoldedShard,
  findCheckpoint,
  type HeaderEntry,
  Journal,
  type JournalEntry,
  type PageEntry,
  type Prune,
  readCheckpoint,
  type SealEntry,
} from '../../src/state/index.ts'
import { encodeLine } from '../../src/state/log/lines.ts'

/** What a run commits at once. */
export type JournalLine =
  | JournalEntry
  | { readonly kind: 'transaction'; readonly entries: readonly JournalEntry[] }

export const HEADER: HeaderEntry = {
  kind: 'header',
  version: 5,
  pipeline: 'acme',
  data_set_id: '0b5bd4f5-6a3c-4c0e-9d0e-6a1f1c2d3e4f',
  created_at: '2024-07-01T00:00:00.000Z',
  settings: { 'extract.order': 'asc' },
  schema: { include: [], columns: ['id', 'hash', 'imported_at'], extra_columns: [], secret_facts: null },
}

/** By whom a run is that asked no service. */
export const NOBODY = { organization: null, tenant: null, host: 'here' }

type Of<Kind extends JournalEntry['kind']> = Extract<JournalEntry, { kind: Kind }>

export function begun(run: string, over: Partial<Of<'run'>> = {}): Of<'run'> {
  return { kind: 'run', run, started_at: '2024-07-01T00:00:00.000Z', version: '1.0.0', by: NOBODY, ...over }
}

export function ended(run: string, over: Partial<Of<'end'>> = {}): Of<'end'> {
  const finished_at = '2024-07-01T00:01:00.000Z'
  return { kind: 'end', run, finished_at, status: 'complete', requests: 1, retries: 0, ...over }
}

export const PRUNE: Prune = {
  pruned_at: '2026-07-01T00:00:00.000Z',
  before: '2024-01-04T00:00:00Z',
  ...{ partitions: 1, rows: 1, quarantined: 1, removed: [], shards: [] },
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

/** Owns a store whose files do not grow. */
export async function own(store: Store): Promise<OwnedStore> {
  const { extend: _, fsync: __, ...owned } = await store.own(randomBytes(6).toString('hex'))
  return owned
}

/** Writes a checkpoint with any lines, those too that no reader takes. */
export async function writeLines(store: Store, lines: readonly object[]): Promise<void> {
  let checksum = 0
  const lineOf = (entry: object): Buffer => {
    const encoded = encodeLine({ parts: [{ entries: [entry] }] }, checksum)
    checksum = encoded.checksum
    return encoded.line
  }
  const end = { kind: 'end_of_log', file: 0, bytes: 0, checksum: 0 }
  await (await own(store)).replace(CHECKPOINT_PATH, [...lines, end].map(lineOf))
}

/** Opens the log of a data set, which begins with this if it is new. */
export async function openLog(store: Store, header: HeaderEntry = HEADER): Promise<Journal> {
  return openAs(await own(store), header)
}

/** The same for an owner. */
export async function openAs(owned: OwnedStore, header: HeaderEntry = HEADER): Promise<Journal> {
  if ((await findCheckpoint(owned)) === null) await beginCheckpoint(owned, header)
  const journal = await Journal.open(owned, (await findCheckpoint(owned))!)
  if (journal === null) throw new Error('another claim came first')
  return journal
}

export async function append(store: Store, ...entries: readonly JournalEntry[]): Promise<void> {
  const log = await openLog(store)
  await log.append(entries)
  await log.close()
}

/** Commits lines, the first of which is a header, one after the other. @returns the log, which is not saved */
export async function commitLines(store: Store, lines: readonly JournalLine[]): Promise<Journal> {
  const [header, ...others] = lines
  const log = await openLog(store, header as HeaderEntry)
  for (const line of others) await commitLine(log, line)
  return log
}

export async function commitLine(log: Journal, line: JournalLine): Promise<void> {
  const entries = factsOf([line])
  await log.commit(entries, blobsOf(entries))
}

/** Some bytes for each index that entries refer to. */
export function blobsOf(entries: readonly JournalEntry[]): Uint8Array[] {
  const indexes = entries.flatMap((entry) =>
    entry.kind !== 'page'
      ? []
      : [
          ...(entry.logged ?? []),
          ...(entry.quarantine ?? []),
          ...(entry.ids === undefined ? [] : [entry.ids]),
        ].map(({ blob }) => blob),
  )
  const text = JSON.stringify(entries)
  return Array.from({ length: 1 + Math.max(-1, ...indexes) }, (_, index) => Buffer.from(`${index}${text}`))
}

export async function stateIn(store: Store): Promise<CheckpointState> {
  const state = await readCheckpoint(store)
  if (state === null) throw new Error('no checkpoint')
  return state
}

export function factsOf(lines: readonly JournalLine[]): readonly JournalEntry[] {
  return lines.flatMap((line) => (line.kind === 'transaction' ? line.entries : [line]))
}

/** The keys of a chain's partitions, in the order of the chain. */
export function keysOf({ query, windows }: Pick<FoldedChain, 'query' | 'windows'>): readonly string[] {
  return Array.from({ length: windows.count }, (_, index) => partitionKey(query, windows.at(index)))
}

/**
 * A state as plain values, less what a save may change: the order, the files that have gone since, numbers of chains
 * that have ended, and where bytes are in the log.
 */
export function plain(state: CheckpointState) {
  const byKey = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)
  const byNumber = ([a]: readonly [number, unknown], [b]: readonly [number, unknown]): number => a - b
  return {
    header: state.header,
    scope: state.scope,
    partitions: [...state.partitions].sort(byKey),
    chains: [...state.chains].sort(byNumber).map(([, chain]) => plainChain(chain)),
    shards: [...state.shards],
    openShards: [...state.openShards].sort(byNumber).map(([, shard]) => plainShard(shard)),
    rejected: [...state.rejected].sort(byKey).map(([key, blobs]) => [key, blobs.map(contentOf)]),
    redo: {
      partitions: [...state.redo.partitions].sort(byKey),
      rejected: [...state.redo.rejected].sort(byKey).map(([key, blobs]) => [key, blobs.map(contentOf)]),
    },
    partsOf: [...state.partsOf].filter(([, parts]) => parts > 0).sort(byKey),
    goneFrom: [...state.goneFrom].sort(byKey),
    nextShard: state.nextShard,
    unknownFields: [...state.unknownFields].sort(byKey),
    runs: state.runs.map((run) => ({ ...run })),
    prunes: state.prunes.map((prune) => ({ ...prune })),
    erasures: state.erasures.map((erasure) => ({ ...erasure })),
    searchesRemaining: state.searchesRemaining,
    service: state.service,
    queries: [...state.queries].sort(byKey),
  }
}

/** Cursors by how many they are and, in no order, by their digests. */
export function plainChain({ windows, seen, ids, ...chain }: FoldedChain) {
  const digests = seen === null ? [] : [...new BigUint64Array(new Uint8Array(seen.toBytes()).buffer)]
  return {
    ...chain,
    ids: ids.map(contentOf),
    windows: { order: windows.order, bounds: windows.bounds === null ? null : [...windows.bounds] },
    seen: { size: seen?.size ?? 0, digests: digests.map(String).sort() },
  }
}

export function plainShard({ partitions, batches: records, ...shard }: FoldedShard) {
  const plainRecords = records.map(({ rows, at }) => ({ rows, ...contentOf(at) }))
  return { ...shard, partitions: [...partitions].sort(), records: plainRecords }
}

/** Where bytes are may change, what they are never. */
const contentOf = ({ bytes, crc }: BlobRef) => ({ bytes, crc })
