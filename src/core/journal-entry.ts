import type { Position, Restart, Span } from './page.ts'
import type { Window } from './partition.ts'
import type { Order } from './pipeline.ts'
import type { Aggregates } from './rows/aggregates.ts'
import type { JsonValue } from './rows/json-values.ts'

/**
 * The entries of the journal, `_state/checkpoint.jsonl`. Each records one durable change. In order they describe what
 * is exported, and where a run resumes. Fields have the same names as in the file. `state/` validates what it reads
 * against these types.
 */
export type JournalEntry =
  | HeaderEntry
  /** Detects that the secret of a secret query has changed. `check`: its digest under the mask key. */
  | { readonly kind: 'secret'; readonly query: string; readonly check: string }
  /** The value of a query with a user-defined name, as in the column `query_value`. */
  | { readonly kind: 'query'; readonly name: string; readonly value: string }
  | { readonly kind: 'run'; readonly run: string; readonly started_at: string; readonly version: string }
  | RunEndEntry
  /**
   * A new month (`2024-02`, UTC) began during a run. `before`: requests of the run until then; `searches`: likewise.
   */
  | {
      readonly kind: 'month'
      readonly run: string
      readonly month: string
      readonly before: number
      readonly searches?: number | undefined
    }
  /** Figures of a run that was killed. A rewrite replaces the run's page entries with it. */
  | ({
      readonly kind: 'unfinished'
      readonly run: string
      readonly requests: number
      readonly searches_remaining?: number | undefined
    } & RunFigures)
  | ChainEntry
  /** The chain keeps its first `windows` windows; other chains take the rest. */
  | { readonly kind: 'shorten'; readonly chain: number; readonly windows: number }
  /** The chain restarts after a rejected cursor or a change of the page size. `since` null: from its beginning. */
  | { readonly kind: 'restart'; readonly chain: number; readonly since: Restart | null }
  | PageEntry
  | ShardEntry
  | {
      readonly kind: 'failed'
      readonly partition: string
      readonly requests: number
      readonly error: FailureEntry
    }
  | PartitionEntry
  | RedoEntry
  | ReplacedEntry
  /** Paths of finished shards that are pruned or replaced. Their files are to be removed. */
  | { readonly kind: 'invalidated'; readonly shards: readonly string[] }
  /** The files of all invalidated shards are removed. */
  | { readonly kind: 'removed' }
  /** A folder of which shards are gone: number of shards begun in it so far, and of those that are gone. */
  | { readonly kind: 'parts'; readonly folder: string; readonly begun: number; readonly gone: number }
  | ({ readonly kind: 'prune' } & Prune)
  | { readonly kind: 'unknown'; readonly fields: Readonly<Record<string, number>> }
  | MeasuredEntry
  /** The page size of a query from here on; null: the greatest. `query` null: the initial page size of new queries. */
  | { readonly kind: 'limit'; readonly query: string | null; readonly size: number | null }

export type JournalWriter = {
  /** Makes entries durable, all of them or none. They are committed when it resolves. */
  append(entries: readonly JournalEntry[]): Promise<void>
}

export type HeaderEntry = {
  readonly kind: 'header'
  readonly version: 3
  readonly pipeline: string
  /** Identity of the data set, created with it. It is independent of the name and the path. */
  readonly data_set_id: string
  readonly created_at: string
  readonly settings: Readonly<Record<string, JsonValue>>
}

export type RunStatus = 'complete' | 'failed' | 'budget' | 'interrupted'

export const RUN_STATUSES = [
  'complete',
  'failed',
  'budget',
  'interrupted',
] as const satisfies readonly RunStatus[]

/** Figures of a run; absent: the sum over its pages, or not known. */
export type RunFigures = {
  readonly rows?: number | undefined
  readonly quarantined?: number | undefined
  readonly repeated?: number | undefined
  /** Failures of partitions; one partition may fail several times. */
  readonly failures?: number | undefined
  /** Searches of the quota that it spent, by the service's own count; absent: the service does not report it. */
  readonly searches?: number | undefined
}

export type RunEndEntry = {
  readonly kind: 'end'
  readonly run: string
  readonly finished_at: string
  readonly status: RunStatus
  readonly requests: number
  readonly retries: number
  /** As the service last reported it; absent: never reported. */
  readonly searches_remaining?: number | undefined
  /** The fewest requests that could have returned its items. */
  readonly min_requests?: number | undefined
  /** Why items were quarantined, and how many. */
  readonly reasons?: Readonly<Record<string, number>> | undefined
} & RunFigures

/** A chain that has begun: its query and its windows. */
export type ChainEntry = {
  readonly kind: 'chain'
  readonly chain: number
  readonly query: string
  readonly order: Order
  /**
   * Adjacent windows, in microseconds: where the first begins, then runs of windows of one length. `times` 0: `span` is
   * the end of one window, not its length. null: no windows, the chain's rows are one partition.
   */
  readonly windows: {
    readonly from: number
    readonly spans: readonly (readonly [span: number, times: number])[]
  } | null
  /** Its progress. A rewrite replaces the chain's page entries with it. */
  readonly state?:
    | {
        readonly next: string | null
        readonly watermark: number
        readonly pages: number
        readonly position: Position | null
        readonly in_order: boolean
        readonly requested: Window | null
        readonly since: Restart | null
        /** Digests of the cursors before `next`, base64. */
        readonly seen: string
        readonly ids: IdMark | null
        readonly size: number | null
      }
    | undefined
}

/** The valid bytes of a chain's ids: those of one of its two files up to `end`, and their CRC-32. */
export type IdMark = { readonly file: number; readonly end: number; readonly crc: number }

/** One page whose rows are durable. */
export type PageEntry = {
  readonly kind: 'page'
  readonly chain: number
  /** The cursor of the page after it; null: the chain has ended. */
  readonly next: string | null
  /** Including retries. */
  readonly requests: number
  /** Rows requested; absent: as before. */
  readonly size?: number | undefined
  /** Number of the chain's first windows that get no more rows; absent: as before. */
  readonly watermark?: number | undefined
  readonly slices?: readonly SliceEntry[] | undefined
  readonly logged?: readonly LoggedRows[] | undefined
  /** Resume position; null: the rows are not in order; absent: as before. */
  readonly position?: Position | null | undefined
  readonly quarantine?: readonly QuarantineEntry[] | undefined
  readonly unknown_fields?: Readonly<Record<string, number>> | undefined
  /** Items that the chain already had; absent: none. */
  readonly repeated?: number | undefined
  /** Absent: as before. */
  readonly ids?: IdMark | undefined
}

/** The rows of a page that belong to one partition and one shard. */
export type SliceEntry = {
  /** The window of their partition. */
  readonly window: string
  readonly shard: number
  readonly rows: number
  readonly imported_at: Span | null
}

/** Rows of a page in the write-ahead log of an open shard. All other rows are in a row group or in a sealed shard. */
export type LoggedRows = {
  readonly shard: number
  readonly generation: number
  readonly end: number
  readonly rows: number
}

/** `end`: of the partition's quarantine file, in bytes; `items`: how many this page added to it. */
export type QuarantineEntry = { readonly window: string; readonly end: number; readonly items: number }

export type ShardEntry = OpenEntry | RowGroupEntry | SealEntry | AggregatesEntry

export type OpenEntry = {
  readonly kind: 'open'
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** Contents of the shard. A rewrite replaces the page entries with it. */
  readonly contents?:
    | {
        readonly partitions: readonly string[]
        readonly imported_at: Span | null
        readonly generation: number
        readonly records: readonly (readonly [rows: number, end: number])[]
      }
    | undefined
}

/** A row group of an open shard: rows of one generation of its write-ahead log, and rows of the page. */
export type RowGroupEntry = {
  readonly kind: 'row-group'
  readonly shard: number
  /** Generation of the write-ahead log whose rows the row group holds. */
  readonly generation: number
  readonly offset: number
  readonly bytes: number
  readonly crc: number
  readonly rows: number
  readonly meta: JsonValue
  /** As in {@link SealEntry}. */
  readonly replaced?: number | undefined
  readonly aggregates: Aggregates
}

/** A shard that is sealed and durable. It only lacks its final name. */
export type SealEntry = {
  readonly kind: 'seal'
  readonly shard: number
  readonly path: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
  readonly partitions: readonly string[]
  readonly imported_at: Span | null
  /** Number of characters that the format can't hold and that were replaced; absent: none. */
  readonly replaced?: number | undefined
}

/**
 * Aggregates of the shards that are sealed in the same transaction; after a rewrite, of all shards. `anew`: aggregates
 * of all shards, which replace all earlier ones.
 */
type AggregatesEntry = { readonly kind: 'aggregates'; readonly anew?: true | undefined } & Aggregates

/**
 * Partitions that are exported again, from the beginning. What they have so far stays until a {@link ReplacedEntry}:
 * their rows, states and finished shards. New shards of theirs are not published before.
 */
export type RedoEntry = {
  readonly kind: 'redo'
  readonly partitions: readonly string[]
  /** Shards with rows of these partitions. Finished ones stay; unfinished and unpublished ones are dropped. */
  readonly shards: readonly number[]
  /** Chains that are dropped. */
  readonly chains: readonly number[]
  /** The settings of the data set once all partitions are replaced; absent: as before. */
  readonly settings?: HeaderEntry['settings'] | undefined
}

/** The new shards of some partitions take the place of the old ones, which are invalidated. */
export type ReplacedEntry = {
  readonly kind: 'replaced'
  readonly partitions: readonly string[]
  readonly shards: readonly number[]
}

export type FailureEntry = {
  readonly kind: string
  readonly message: string
  /** Invalid items of the page that failed. They are in quarantine, and are requested again; absent: none. */
  readonly rejected?: number | undefined
}

/** Sum of all entries about a partition. A rewrite replaces them with it. */
export type PartitionEntry = {
  readonly kind: 'partition'
  readonly partition: string
  /** Absent: it is done. */
  readonly state?: 'partial' | 'failed' | 'pruned' | undefined
  readonly rows: number
  readonly pages: number
  readonly requests: number
  readonly quarantined: number
  readonly repeated?: number | undefined
  readonly quarantine_end?: number | undefined
  readonly error?: FailureEntry | undefined
  /** Its query began in the last run; absent: earlier. */
  readonly new?: true | undefined
}

/** A prune: the number of partitions that ended before the instant `before`, and of their rows. */
export type Prune = {
  readonly pruned_at: string
  readonly before: string
  readonly partitions: number
  readonly rows: number
}

/** What responses have shown about the service since the last such entry. */
export type MeasuredEntry = {
  readonly kind: 'measured'
  /** Rows and searches of a page. */
  readonly costs?: readonly (readonly [rows: number, searches: number])[] | undefined
  /** Rows requested with a page, and milliseconds. */
  readonly times?: readonly (readonly [size: number, ms: number])[] | undefined
  /** Whether responses report how many searches are left. */
  readonly tells_searches?: boolean | undefined
  /** Searches that the run has spent so far. */
  readonly spent?: number | undefined
  readonly left?: number | undefined
  /** Rows requested with the last page. A rewrite replaces the page entries with it. */
  readonly page_size?: number | undefined
  /** A rewrite wrote it. The figures of runs are in other entries. */
  readonly anew?: true | undefined
}

/** Sum of all entries about an open shard. */
export type OpenShardRecord = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  readonly partitions: ReadonlySet<string>
  readonly importedAt: Span | null
  readonly rowGroups: readonly RowGroupEntry[]
  /** Generation of the write-ahead log with the rows that are not in a row group yet. */
  readonly generation: number
  readonly records: readonly LogRecord[]
}

/** Rows in a write-ahead log, and the offset of their end. */
export type LogRecord = { readonly rows: number; readonly end: number }
