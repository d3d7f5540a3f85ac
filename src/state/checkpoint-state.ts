import { type Position, SeenCursors, type Span } from '../core/index.ts'
import type { IdMark } from './id-log.ts'
import type { ChunkLine, HeaderLine, Line, PageFacts, RunStatus } from './lines.ts'
import { PathMap, type ReadonlyPathMap, splitPath } from './path-map.ts'
import { PackedShardList, type ShardList } from './shard-list.ts'

/** Everything the checkpoint says, folded from its lines. */
export type CheckpointState = {
  readonly header: HeaderLine
  /** Those that have begun, by key: query and window. */
  readonly partitions: ReadonlyPathMap<PartitionRecord>
  readonly shards: ShardList
  readonly openShards: ReadonlyMap<number, OpenShard>
  /** Shards begun so far in each folder. */
  readonly partsOf: ReadonlyPathMap<number>
  /** The number that the next shard gets. */
  readonly nextShard: number
  /** Paths of shards that were given up and whose files may still be there. */
  readonly givenUp: ReadonlySet<string>
  readonly unknownFields: ReadonlyMap<string, number>
  readonly runs: readonly RunRecord[]
  /** What tells the secret of a secret query from another, by the query's name. */
  readonly secretChecks: ReadonlyMap<string, string>
  /** What queries ask for that have a name of their own, by that name. */
  readonly queries: ReadonlyMap<string, string>
  /** Lines read or appended; compaction looks at it. */
  readonly lines: number
}

export type PartitionRecord = {
  readonly state: 'partial' | 'failed' | 'done'
  readonly next: string | null
  readonly rows: number
  readonly pages: number
  readonly requests: number
  readonly quarantined: number
  /** Items that the service sent again. */
  readonly repeated: number
  /** Good bytes of the partition's quarantine file, as long as more may come; 0 once it is done. */
  readonly quarantineEnd: number
  /** Where the chain could start again should its cursor be refused; null: not known or not safe. */
  readonly position: Position | null
  /** Set when the chain did start again there: its requests ask from that position on. */
  readonly since: Position | null
  /** Cursors of the chain before `next`; null: none, or not needed any more. */
  readonly seen: SeenCursors | null
  /** Where the ids of its last pages are; null: it has none, or is done. */
  readonly ids: IdMark | null
  readonly error: { readonly kind: string; readonly message: string } | null
}

export type OpenShard = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  readonly pages: readonly ShardPage[]
  readonly chunks: readonly ChunkLine[]
}

export type ShardPage = {
  readonly partition: string
  readonly rows: number
  readonly generation: number
  /** End of the page's record in the log of its generation. */
  readonly end: number
  readonly importedAt: Span | null
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
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export type Folding = {
  readonly state: CheckpointState
  apply(line: Line): void
}

/** Folds lines into a state, one after the other; the cost of a line does not depend on what came before. */
export function foldLines(header: HeaderLine): Folding {
  const partitions = new PathMap<PartitionRecord>()
  const openShards = new Map<
    number,
    { pages: ShardPage[]; chunks: ChunkLine[] } & Omit<OpenShard, 'pages' | 'chunks'>
  >()
  const partsOf = new PathMap<number>()
  const shards = new PackedShardList()
  const runs: Mutable<RunRecord>[] = []
  const givenUp = new Set<string>()
  const unknownFields = new Map<string, number>()
  const secretChecks = new Map<string, string>()
  const queries = new Map<string, string>()
  const state = {
    header,
    partitions,
    shards,
    openShards,
    partsOf,
    nextShard: 0,
    givenUp,
    unknownFields,
    runs,
    secretChecks,
    queries,
    lines: 1,
  }

  const oneOf = sharedRecords()

  const update = (key: string, change: (record: PartitionRecord) => PartitionRecord): void => {
    partitions.update(key, (record) => oneOf(change(record ?? BEGINNING)))
  }
  // Until a run says what it sent, its pages do; one that is killed never says it.
  const addRequests = (requests: number): void => {
    const run = runs.at(-1)
    if (run !== undefined && run.finished_at === null) run.requests += requests
  }
  const takePage = (page: PageFacts): void => {
    update(page.partition, (record) => afterPage(record, page))
    addRequests(page.requests)
    if (page.unknown_fields !== undefined) addCounts(unknownFields, page.unknown_fields)
    if (page.shard !== undefined && page.log !== undefined) {
      openShards.get(page.shard)?.pages.push({
        partition: page.partition,
        rows: page.rows,
        generation: page.log.generation,
        end: page.log.end,
        importedAt: page.imported_at ?? null,
      })
    }
  }
  const takeShard = (shard: number, folder: string, part: number): void => {
    state.nextShard = Math.max(state.nextShard, shard + 1)
    partsOf.update(folder, (parts = 0) => Math.max(parts, part + 1))
  }

  return {
    state,
    apply(line) {
      state.lines++
      switch (line.kind) {
        case 'header':
          break
        case 'secret':
          secretChecks.set(line.query, line.check)
          break
        case 'query':
          queries.set(line.name, line.asks)
          break
        case 'run':
          runs.push({ ...line, finished_at: null, status: null, requests: 0, retries: 0 })
          break
        case 'end': {
          const run = runs.findLast(({ run }) => run === line.run)
          if (run === undefined) break
          run.finished_at = line.finished_at
          run.status = line.status
          run.requests = line.requests
          run.retries = line.retries
          break
        }
        case 'cut': {
          const run = runs.findLast(({ run }) => run === line.run)
          if (run !== undefined) run.requests = line.requests
          break
        }
        case 'open':
          takeShard(line.shard, line.folder, line.part)
          openShards.set(line.shard, {
            shard: line.shard,
            folder: line.folder,
            part: line.part,
            pages: [],
            chunks: [],
          })
          break
        case 'page':
          takePage(line)
          break
        case 'chunk':
          openShards.get(line.shard)?.chunks.push(line)
          break
        case 'seal': {
          if (line.page !== undefined) takePage(line.page)
          const [folder, name] = splitPath(line.path)
          takeShard(line.shard, folder, partNumber(name))
          openShards.delete(line.shard)
          givenUp.delete(line.path)
          shards.push(line)
          break
        }
        case 'failed':
          addRequests(line.requests)
          update(line.partition, (record) => ({
            ...record,
            // What went wrong after its last page is for the next run to mend, not to ask for again.
            state: record.state === 'done' ? 'done' : 'failed',
            requests: record.requests + line.requests,
            error: line.error,
          }))
          break
        case 'restart':
          update(line.partition, (record) => ({ ...record, next: null, seen: null, since: line.since }))
          break
        case 'done': {
          const { rows, pages, requests, quarantined, repeated = 0 } = line
          const figures = { rows, pages, requests, quarantined, repeated }
          const record: PartitionRecord = { ...BEGINNING, state: 'done', ...figures }
          partitions.update(line.partition, () => oneOf(record))
          break
        }
        case 'given-up':
          for (const path of line.shards) givenUp.add(path)
          break
        case 'unknown':
          addCounts(unknownFields, line.fields)
          break
      }
    },
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
    if (record.state !== 'done' || record.error !== null) return record
    const { rows, pages, requests, quarantined, repeated } = record
    const figures = `${rows} ${pages} ${requests} ${quarantined} ${repeated}`
    const known = shared.get(figures)
    if (known !== undefined) return known
    if (shared.size < MAX_SHARED_RECORDS) shared.set(figures, record)
    return record
  }
}

const BEGINNING: PartitionRecord = {
  state: 'partial',
  next: null,
  rows: 0,
  pages: 0,
  requests: 0,
  quarantined: 0,
  repeated: 0,
  quarantineEnd: 0,
  position: null,
  since: null,
  seen: null,
  ids: null,
  error: null,
}

function afterPage(record: PartitionRecord, page: PageFacts): PartitionRecord {
  const { next } = page
  const done = next === null
  return {
    state: done ? 'done' : 'partial',
    next,
    rows: record.rows + page.rows,
    pages: record.pages + 1,
    requests: record.requests + page.requests,
    quarantined: record.quarantined + (page.quarantine?.items ?? 0),
    repeated: record.repeated + (page.repeated ?? 0),
    quarantineEnd: done ? 0 : (page.quarantine?.end ?? record.quarantineEnd),
    position: done ? null : page.position === undefined ? record.position : page.position,
    since: done ? null : record.since,
    seen: done ? null : withCursor(record.seen, record.next),
    ids: done ? null : (page.ids ?? record.ids),
    error: null,
  }
}

/** What was seen belongs to one chain and is only ever added to, so it can grow in place. */
function withCursor(seen: SeenCursors | null, cursor: string | null): SeenCursors | null {
  if (cursor === null) return seen
  const grown = seen ?? new SeenCursors()
  grown.add(cursor)
  return grown
}

/** `part-00012.parquet` → 12 */
function partNumber(name: string): number {
  return Number(/part-(\d+)\.[^/]*$/.exec(name)?.[1] ?? 0)
}

/** Whether a query has pages on record, in whichever window. @param query its name */
export function hasPages({ partitions }: CheckpointState, query: string): boolean {
  for (const { pages } of partitions.branches.get(query)?.values() ?? []) if (pages > 0) return true
  return false
}
