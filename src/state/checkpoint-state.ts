import type { Position } from '../core/index.ts'
import type { ChunkLine, HeaderLine, Line, PageFacts, RunStatus, SealLine } from './lines.ts'

/** Everything the checkpoint says, folded from its lines. */
export type CheckpointState = {
  readonly header: HeaderLine
  /** By query name, then by the rest of the partition's key: see {@link recordOf}. */
  readonly partitions: ReadonlyMap<string, ReadonlyMap<string, PartitionRecord>>
  readonly shards: readonly SealLine[]
  readonly openShards: ReadonlyMap<number, OpenShard>
  /** Shards begun so far in each folder. */
  readonly partsOf: ReadonlyMap<string, number>
  /** The number that the next shard gets. */
  readonly nextShard: number
  readonly unknownFields: ReadonlyMap<string, number>
  readonly runs: readonly RunRecord[]
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
  /** Good bytes of the partition's quarantine file. */
  readonly quarantineEnd: number
  /** Where the chain could start again should its cursor be refused; null: not known or not safe. */
  readonly position: Position | null
  /** Set when the chain did start again there: its requests ask from that position on. */
  readonly since: Position | null
  /** Cursors of the chain so far, oldest first; empty once it is done. */
  readonly cursors: readonly string[]
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
  readonly importedAt: { readonly min: number; readonly max: number } | null
}

export type RunRecord = {
  readonly run: string
  readonly started_at: string
  readonly finished_at: string | null
  readonly status: RunStatus | null
  readonly requests: number
  readonly retries: number
  readonly version: string
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** The record of a partition, or undefined when it has not begun. */
export function recordOf(state: CheckpointState, key: string): PartitionRecord | undefined {
  const [query, rest] = splitKey(key)
  return state.partitions.get(query)?.get(rest)
}

/** Cuts a partition's key into the query's name and the window: neither holds a slash. */
export function splitKey(key: string): readonly [query: string, window: string] {
  const slash = key.lastIndexOf('/')
  return [key.slice(0, slash), key.slice(slash + 1)]
}

export type Folding = {
  readonly state: CheckpointState
  apply(line: Line): void
}

/** Folds lines into a state, one after the other; the cost of a line does not depend on what came before. */
export function foldLines(header: HeaderLine): Folding {
  const partitions = new Map<string, Map<string, PartitionRecord>>()
  const openShards = new Map<
    number,
    { pages: ShardPage[]; chunks: ChunkLine[] } & Omit<OpenShard, 'pages' | 'chunks'>
  >()
  const partsOf = new Map<string, number>()
  const shards: SealLine[] = []
  const runs: Mutable<RunRecord>[] = []
  const unknownFields = new Map<string, number>()
  // Window names repeat in every query: keep one string of each.
  const windowNames = new Map<string, string>()
  const state = {
    header,
    partitions,
    shards,
    openShards,
    partsOf,
    nextShard: 0,
    unknownFields,
    runs,
    lines: 1,
  }

  const slot = (key: string): [Map<string, PartitionRecord>, string] => {
    const [query, window] = splitKey(key)
    let windows = partitions.get(query)
    if (windows === undefined) {
      windows = new Map()
      partitions.set(query, windows)
    }
    let name = windowNames.get(window)
    if (name === undefined) {
      name = window
      windowNames.set(window, name)
    }
    return [windows, name]
  }
  const update = (key: string, change: (record: PartitionRecord) => PartitionRecord): void => {
    const [windows, name] = slot(key)
    windows.set(name, change(windows.get(name) ?? BEGINNING))
  }
  const takePage = (page: PageFacts): void => {
    update(page.partition, (record) => afterPage(record, page))
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
    partsOf.set(folder, Math.max(partsOf.get(folder) ?? 0, part + 1))
  }

  return {
    state,
    apply(line) {
      state.lines++
      switch (line.kind) {
        case 'header':
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
          const { page, ...shard } = line
          if (page !== undefined) takePage(page)
          const folder = line.path.slice(0, line.path.lastIndexOf('/'))
          takeShard(line.shard, folder, partNumber(line.path))
          openShards.delete(line.shard)
          shards.push(shard)
          break
        }
        case 'failed':
          update(line.partition, (record) => ({
            ...record,
            // What went wrong after its last page is for the next run to mend, not to ask for again.
            state: record.state === 'done' ? 'done' : 'failed',
            requests: record.requests + line.requests,
            error: line.error,
          }))
          break
        case 'restart':
          update(line.partition, (record) => ({ ...record, next: null, cursors: [], since: line.since }))
          break
        case 'done': {
          const [windows, name] = slot(line.partition)
          const { rows, pages, requests, quarantined } = line
          windows.set(name, { ...BEGINNING, state: 'done', rows, pages, requests, quarantined })
          break
        }
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

const BEGINNING: PartitionRecord = {
  state: 'partial',
  next: null,
  rows: 0,
  pages: 0,
  requests: 0,
  quarantined: 0,
  quarantineEnd: 0,
  position: null,
  since: null,
  cursors: [],
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
    quarantineEnd: page.quarantine?.end ?? record.quarantineEnd,
    position: done ? null : page.position === undefined ? record.position : page.position,
    since: done ? null : record.since,
    cursors: done ? [] : withCursor(record.cursors, next),
    error: null,
  }
}

/** The list belongs to one chain and is only ever added to, so it can grow in place. */
function withCursor(cursors: readonly string[], next: string): readonly string[] {
  if (cursors.length === 0) return [next]
  ;(cursors as string[]).push(next)
  return cursors
}

/** `…/part-00012.parquet` → 12 */
function partNumber(path: string): number {
  return Number(/part-(\d+)\.[^/]*$/.exec(path)?.[1] ?? 0)
}
