import {
  type ChunkEntry,
  DATA_SET_LIMITS,
  type HeaderEntry,
  type JournalEntry,
  type LogRecord,
  MAX_COSTS,
  MAX_TIMES,
  type Measures,
  NOT_MEASURED,
  type OpenShardRecord,
  type PageEntry,
  type Prune,
  type RunStatus,
  type SliceEntry,
  type Span,
  type Sums,
  SumTally,
  spanOf,
  type Window,
  windowRange,
} from '../core/index.ts'
import { afterPage, type ChainRecord, chainFromLine } from './chain-record.ts'
import type { Line } from './lines.ts'
import { PathMap, type ReadonlyPathMap, splitPath } from './path-map.ts'
import { PackedShardList, type ShardList } from './shard-list.ts'

/** Everything the checkpoint says, folded from its lines. */
export type CheckpointState = {
  readonly header: HeaderEntry
  /** Those that have begun, by key: query and window. */
  readonly partitions: ReadonlyPathMap<PartitionRecord>
  /** Those that have begun and are not at their end, by number. */
  readonly chains: ReadonlyMap<number, ChainRecord>
  /** The number that the next chain gets. */
  readonly nextChain: number
  readonly shards: ShardList
  readonly openShards: ReadonlyMap<number, OpenShardRecord>
  /** Shards begun so far in each folder. */
  readonly partsOf: ReadonlyPathMap<number>
  /** The number that the next shard gets. */
  readonly nextShard: number
  /** Paths of shards that were given up and whose files may still be there. */
  readonly givenUp: ReadonlySet<string>
  readonly unknownFields: ReadonlyMap<string, number>
  /**
   * What the rows of finished shards come to; of fewer rows than those have where shards were given up since, or
   * written by an earlier version.
   */
  readonly sums: () => Sums
  readonly runs: readonly RunRecord[]
  readonly prunes: readonly Prune[]
  /** Searches that the service said were left, when it last said so; null: never. */
  readonly searchesRemaining: number | null
  /** What the data set's endpoint was measured to do. */
  readonly service: Measures
  /** What tells the secret of a secret query from another, by the query's name. */
  readonly secretChecks: ReadonlyMap<string, string>
  /** What queries ask for that have a name of their own, by that name. */
  readonly queries: ReadonlyMap<string, string>
  /** Lines read or appended; compaction looks at it. */
  readonly lines: number
}

export type PartitionRecord = {
  /** `partial`: some of its rows are in, or a chain stands in it; `pruned`: they were, and are not to come again. */
  readonly state: 'partial' | 'failed' | 'done' | 'pruned'
  readonly rows: number
  /** Pages that began in it, and what they took; a page may bring rows of many partitions. */
  readonly pages: number
  readonly requests: number
  readonly quarantined: number
  /** Items that the service sent again. */
  readonly repeated: number
  /** Good bytes of the partition's quarantine file. */
  readonly quarantineEnd: number
  /** `refused`: items of the page that it failed at, which are in quarantine and do not count, as the page does not. */
  readonly error: {
    readonly kind: string
    readonly message: string
    readonly refused?: number | undefined
  } | null
}

/** Items of a partition that lie in quarantine, those included for which it failed. */
export function setAsideOf({ state, quarantined, error }: PartitionRecord): number {
  return quarantined + (state === 'failed' ? (error?.refused ?? 0) : 0)
}

/** Whether anything of a partition is exported, or nothing of it is left to be. */
export function hasBegun(record: PartitionRecord): boolean {
  return isOver(record) || record.rows > 0 || record.quarantined > 0
}

/** Whether nothing of a partition is left to be exported. */
export function isOver({ state }: PartitionRecord): boolean {
  return state === 'done' || state === 'pruned'
}

/** What stays on record of a partition whose rows are pruned: what it took to get them. */
export function withoutRows({ pages, requests }: PartitionRecord): PartitionRecord {
  return { ...BEGINNING, state: 'pruned', pages, requests }
}

export type RunRecord = {
  readonly run: string
  readonly started_at: string
  readonly finished_at: string | null
  readonly status: RunStatus | null
  /** Of a run that was killed: those of the pages that it committed, and of partitions that failed. */
  readonly requests: number
  readonly retries: number
  readonly version: string
  /** Months (UTC) after the one that it started in, and what it had sent and spent when each began. */
  readonly months: readonly { readonly month: string; readonly before: number; readonly searches: number }[]
  readonly rows: number
  readonly quarantined: number
  readonly repeated: number
  /** Partitions that failed in it. */
  readonly failures: number
  /** What of the quota it spent; null: the service does not tell. */
  readonly searches: number | null
  /** The fewest requests that its items could have come with; null: not known. */
  readonly least: number | null
  /** Searches that the service said were left when it ended; null: it did not say. */
  readonly searchesRemaining: number | null
  /** Why items were set aside, and how many. */
  readonly reasons: Readonly<Record<string, number>>
}

/** Of a run of which no more is known than that it began. */
export const NEW_RUN = {
  finished_at: null,
  status: null,
  requests: 0,
  retries: 0,
  rows: 0,
  quarantined: 0,
  repeated: 0,
  failures: 0,
  searches: null,
  least: null,
  searchesRemaining: null,
  reasons: {},
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export type Folding = {
  readonly state: CheckpointState
  apply(line: Line): void
}

/** Folds lines into a state, one after the other; the cost of a line does not depend on what came before. */
export function foldLines(header: HeaderEntry): Folding {
  const partitions = new PathMap<PartitionRecord>()
  const chains = new Map<number, ChainRecord>()
  const openShards = new Map<number, GrowingShard>()
  const partsOf = new PathMap<number>()
  const shards = new PackedShardList()
  const runs: Mutable<RunRecord>[] = []
  const prunes: Prune[] = []
  const givenUp = new Set<string>()
  const unknownFields = new Map<string, number>()
  const secretChecks = new Map<string, string>()
  const queries = new Map<string, string>()
  const limits = new Map<string, number | null>()
  let sums = new SumTally(DATA_SET_LIMITS)
  const state = {
    header,
    partitions,
    chains,
    nextChain: 0,
    shards,
    openShards,
    partsOf,
    nextShard: 0,
    givenUp,
    unknownFields,
    sums: () => sums.sums(),
    runs,
    prunes,
    searchesRemaining: null as number | null,
    service: { ...NOT_MEASURED, limits } as Mutable<Measures>,
    secretChecks,
    queries,
    lines: 1,
  }

  const oneOf = sharedRecords()
  const nameOf = windowNames()

  const update = (key: string, change: (record: PartitionRecord) => PartitionRecord): void => {
    partitions.update(key, (record) => oneOf(change(record ?? BEGINNING)))
  }
  // Until a run says what it sent, its pages do; one that is killed never says it.
  const inRun = (count: (run: Mutable<RunRecord>) => void): void => {
    const run = runs.at(-1)
    if (run !== undefined && run.finished_at === null) count(run)
  }
  const takePiece = (query: string, { window, shard, rows, imported_at }: SliceEntry): void => {
    const key = `${query}/${window}`
    update(key, (record) => ({ ...record, state: 'partial', rows: record.rows + rows }))
    const open = openShards.get(shard)
    if (open === undefined) return
    open.partitions.add(key)
    open.importedAt = spanOf(open.importedAt, imported_at)
  }
  /** Whose windows up to there nothing more can come for. */
  const finish = ({ query, windows }: ChainRecord, from: number, to: number): void => {
    for (let place = from; place < to; place++) {
      update(`${query}/${nameOf(windows.at(place))}`, finished)
    }
  }
  const takePage = (page: PageEntry): void => {
    inRun((run) => {
      run.requests += page.requests
      run.repeated += page.repeated ?? 0
      for (const { rows } of page.pieces ?? []) run.rows += rows
      for (const { items } of page.quarantine ?? []) run.quarantined += items
    })
    if (page.unknown_fields !== undefined) addCounts(unknownFields, page.unknown_fields)
    const chain = chains.get(page.chain)
    if (chain === undefined) return
    const { query, windows, passed } = chain
    const standing = (place: number): string => `${query}/${nameOf(windows.at(place))}`
    const { requests, repeated = 0 } = page
    update(standing(passed), (record) => ({ ...plusPage(record, requests, repeated), error: null }))
    for (const { window, end, items } of page.quarantine ?? []) {
      update(`${query}/${window}`, (record) => ({
        ...record,
        state: 'partial',
        quarantined: record.quarantined + items,
        quarantineEnd: end,
      }))
    }
    for (const piece of page.pieces ?? []) takePiece(query, piece)
    for (const { shard, rows, end } of page.logged ?? []) openShards.get(shard)?.records.push({ rows, end })
    const after = afterPage(chain, page)
    state.service.pageSize = after.size ?? state.service.pageSize
    if (page.next === null || after.passed >= windows.count) {
      // Rows that came late may have opened any of them again.
      finish(chain, 0, windows.count)
      chains.delete(page.chain)
      return
    }
    finish(chain, passed, after.passed)
    chains.set(page.chain, after)
    update(standing(after.passed), (record) => ({ ...record, state: 'partial' }))
  }
  const takeShard = (shard: number, folder: string, part: number): void => {
    state.nextShard = Math.max(state.nextShard, shard + 1)
    partsOf.update(folder, (parts = 0) => Math.max(parts, part + 1))
  }
  const shorten = (number: number, count: number): void => {
    const chain = chains.get(number)
    if (chain === undefined) return
    const windows = chain.windows.part(0, count)
    if (chain.passed < count) chains.set(number, { ...chain, windows })
    else chains.delete(number)
  }

  const takeFact = (line: JournalEntry): void => {
    switch (line.kind) {
      case 'header':
        break
      case 'secret':
        secretChecks.set(line.query, line.check)
        break
      case 'query':
        queries.set(line.name, line.asks)
        break
      case 'run': {
        const { run, started_at, version } = line
        const last = runs.at(-1)
        // One that goes on after a break is one run: what it has sent and brought so far counts.
        if (last?.run === run) Object.assign(last, { finished_at: null, status: null, version })
        else runs.push({ ...NEW_RUN, run, started_at, version, months: [] })
        break
      }
      case 'end': {
        state.searchesRemaining = line.searches_remaining ?? state.searchesRemaining
        const run = runs.findLast(({ run }) => run === line.run)
        if (run === undefined) break
        run.finished_at = line.finished_at
        run.status = line.status
        run.requests = line.requests
        run.retries = line.retries
        run.least = line.least ?? run.least
        run.searchesRemaining = line.searches_remaining ?? run.searchesRemaining
        run.reasons = line.reasons ?? run.reasons
        takeFigures(run, line)
        break
      }
      case 'month': {
        const run = runs.findLast(({ run }) => run === line.run)
        if (run === undefined) break
        run.months = [...run.months, { month: line.month, before: line.before, searches: line.searches ?? 0 }]
        break
      }
      case 'cut': {
        const run = runs.findLast(({ run }) => run === line.run)
        if (run === undefined) break
        run.requests = line.requests
        run.searchesRemaining = line.searches_remaining ?? run.searchesRemaining
        takeFigures(run, line)
        break
      }
      case 'chain':
        chains.set(line.chain, chainFromLine(line))
        state.nextChain = Math.max(state.nextChain, line.chain + 1)
        break
      case 'shorten':
        shorten(line.chain, line.windows)
        break
      case 'restart': {
        const chain = chains.get(line.chain)
        if (chain === undefined) break
        const { range } = chain.windows
        chains.set(line.chain, { ...chain, next: null, seen: null, asked: range, since: line.since })
        break
      }
      case 'open':
        takeShard(line.shard, line.folder, line.part)
        openShards.set(line.shard, newShard(line))
        break
      case 'page':
        takePage(line)
        break
      case 'chunk': {
        const open = openShards.get(line.shard)
        if (open === undefined) break
        open.chunks.push(line)
        // A rewrite puts the records that are left before the chunks.
        if (line.generation < open.generation) break
        open.records = []
        open.generation = line.generation + 1
        break
      }
      case 'seal': {
        const [folder, name] = splitPath(line.path)
        takeShard(line.shard, folder, partNumber(name))
        openShards.delete(line.shard)
        givenUp.delete(line.path)
        shards.push(line)
        break
      }
      case 'sums':
        if (line.anew === true) sums = new SumTally(DATA_SET_LIMITS)
        sums.add(line)
        break
      case 'failed':
        inRun((run) => {
          run.requests += line.requests
          run.quarantined += line.error.refused ?? 0
          run.failures++
        })
        update(line.partition, (record) => ({
          ...record,
          // What went wrong after its last page is for the next run to mend, not to ask for again.
          state: isOver(record) ? record.state : 'failed',
          requests: record.requests + line.requests,
          error: line.error,
        }))
        break
      case 'partition': {
        const { rows, pages, requests, quarantined, repeated = 0, quarantine_end = 0 } = line
        const figures = { rows, pages, requests, quarantined, repeated, quarantineEnd: quarantine_end }
        const state = line.state ?? 'done'
        const record: PartitionRecord = { ...BEGINNING, state, ...figures, error: line.error ?? null }
        partitions.update(line.partition, () => oneOf(record))
        break
      }
      case 'given-up':
        for (const path of line.shards) givenUp.add(path)
        break
      case 'prune': {
        const { kind: _, ...prune } = line
        prunes.push(prune)
        break
      }
      case 'unknown':
        addCounts(unknownFields, line.fields)
        break
      case 'measured': {
        const { service } = state
        service.costs = [...service.costs, ...(line.costs ?? [])].slice(-MAX_COSTS)
        service.times = [...service.times, ...(line.times ?? [])].slice(-MAX_TIMES)
        service.tellsSearches = line.tells ?? service.tellsSearches
        service.pageSize = line.page_size ?? service.pageSize
        state.searchesRemaining = line.left ?? state.searchesRemaining
        if (line.anew === true) break
        inRun((run) => {
          // Entries of pages that were committed side by side may come in another order than their responses.
          if (line.spent !== undefined) run.searches = Math.max(run.searches ?? 0, line.spent)
          run.searchesRemaining = line.left ?? run.searchesRemaining
        })
        break
      }
      case 'limit': {
        const { service } = state
        service.limit = line.size
        if (line.query !== null) limits.set(line.query, line.size)
        break
      }
    }
  }

  return {
    state,
    apply(line) {
      state.lines++
      if (line.kind === 'all') for (const fact of line.lines) takeFact(fact)
      else takeFact(line)
    },
  }
}

export type RunFigures = Pick<RunRecord, 'rows' | 'quarantined' | 'repeated' | 'failures' | 'searches'>

function takeFigures(
  run: Mutable<RunFigures>,
  line: { readonly [Name in keyof RunFigures]?: RunFigures[Name] | undefined },
): void {
  run.rows = line.rows ?? run.rows
  run.quarantined = line.quarantined ?? run.quarantined
  run.repeated = line.repeated ?? run.repeated
  run.failures = line.failures ?? run.failures
  run.searches = line.searches ?? run.searches
}

type GrowingShard = Omit<
  OpenShardRecord,
  'partitions' | 'chunks' | 'records' | 'importedAt' | 'generation'
> & {
  readonly partitions: Set<string>
  readonly chunks: ChunkEntry[]
  importedAt: Span | null
  generation: number
  records: LogRecord[]
}

function newShard({ shard, folder, part, holds }: Extract<JournalEntry, { kind: 'open' }>): GrowingShard {
  return {
    shard,
    folder,
    part,
    partitions: new Set(holds?.partitions),
    importedAt: holds?.imported_at ?? null,
    chunks: [],
    generation: holds?.generation ?? 1,
    records: holds?.records.map(([rows, end]) => ({ rows, end })) ?? [],
  }
}

/** Names of windows; chains of many queries mostly go through the same ones. */
function windowNames(): (window: Window | null) => string {
  const names = new Map<number, { readonly until: number; readonly name: string }>()
  return (window) => {
    if (window === null) return windowRange(null)
    const known = names.get(window.from)
    if (known?.until === window.until) return known.name
    const name = windowRange(window)
    names.set(window.from, { until: window.until, name })
    return name
  }
}

// Whoever makes up new field names without end is not to fill the checkpoint with them.
const MAX_FIELD_NAMES = 1000

/** Adds occurrences by field name; beyond a thousand names the rest goes under `…`. */
export function addCounts(counts: Map<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, times] of Object.entries(more)) {
    const under = counts.has(name) || counts.size < MAX_FIELD_NAMES ? name : '…'
    counts.set(under, (counts.get(under) ?? 0) + times)
  }
}

// Of many small partitions most come to the same few figures; of large ones there are not many.
const MAX_SHARED_RECORDS = 10_000

/** Keeps one record where finished partitions came to the same: half a million of them are mostly alike. */
function sharedRecords(): (record: PartitionRecord) => PartitionRecord {
  const shared = new Map<string, PartitionRecord>()
  return (record) => {
    if (!isOver(record) || record.error !== null) return record
    const { state, rows, pages, requests, quarantined, repeated, quarantineEnd } = record
    const figures = `${state} ${rows} ${pages} ${requests} ${quarantined} ${repeated} ${quarantineEnd}`
    const known = shared.get(figures)
    if (known !== undefined) return known
    if (shared.size < MAX_SHARED_RECORDS) shared.set(figures, record)
    return record
  }
}

const BEGINNING: PartitionRecord = {
  state: 'partial',
  rows: 0,
  pages: 0,
  requests: 0,
  quarantined: 0,
  repeated: 0,
  quarantineEnd: 0,
  error: null,
}

function plusPage(record: PartitionRecord, requests: number, repeated: number): PartitionRecord {
  return {
    ...record,
    state: 'partial',
    pages: record.pages + 1,
    requests: record.requests + requests,
    repeated: record.repeated + repeated,
  }
}

function finished(record: PartitionRecord): PartitionRecord {
  return isOver(record) ? record : { ...record, state: 'done', error: null }
}

/** `part-00012.parquet` → 12 */
function partNumber(name: string): number {
  return Number(/part-(\d+)\.[^/]*$/.exec(name)?.[1] ?? 0)
}

/** Whether anything of a query is exported, in whichever window. @param query its name */
export function isKnown({ partitions }: CheckpointState, query: string): boolean {
  for (const record of partitions.branches.get(query)?.values() ?? []) if (hasBegun(record)) return true
  return false
}
