import type { Position, Restart, Span } from './page.ts'
import type { Window } from './partition.ts'
import type { Order } from './pipeline.ts'
import type { Aggregates } from './rows/aggregates.ts'
import type { JsonValue } from './rows/json-values.ts'

/**
 * The entries of the journal. Commit objects in `_state/log` hold those since the last checkpoint, and
 * `_state/checkpoint.jsonl` the fewest that sum up all before. Each records one durable change. In order they describe
 * what is exported, and where a run resumes. Fields have the same names as in the files. `state/` validates what it
 * reads against these types.
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
  | OpenEntry
  | SealEntry
  | AggregatesEntry
  | GatheredEntry
  /** Rejected items in the log that are not in the quarantine file yet. A checkpoint replaces page entries with it. */
  | { readonly kind: 'rejected'; readonly partition: string; readonly blobs: readonly BlobTuple[] }
  /** The first `blobs` of them are in the quarantine file now, whose first `end` bytes are committed. */
  | {
      readonly kind: 'quarantined'
      readonly partition: string
      readonly blobs: number
      readonly end: number
    }
  /**
   * The first commit of an owner that took over from one that may still run. The object stays in the log: by its number
   * the former owner learns that it was taken over. `sequence` is absent in the object itself.
   */
  | { readonly kind: 'claim'; readonly sequence?: number | undefined }
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

/** Bytes in a commit object: number of the commit, offset and length in bytes, CRC-32. */
export type BlobRef = {
  readonly sequence: number
  readonly offset: number
  readonly bytes: number
  readonly crc: number
}

/** The log of commits of a data set. */
export type CommitLog = {
  /**
   * Commits entries and the bytes that they refer to by index, all of them or none. They are durable when it resolves.
   * @returns the location of each of the `blobs`
   */
  commit(entries: readonly JournalEntry[], blobs?: readonly Uint8Array[]): Promise<readonly BlobRef[]>
  /** Committed bytes; null: they are lost or changed. */
  read(ref: BlobRef): Promise<Uint8Array<ArrayBuffer> | null>
}

export type HeaderEntry = {
  readonly kind: 'header'
  readonly version: 4
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
        readonly ids: readonly BlobTuple[]
        readonly size: number | null
      }
    | undefined
}

/** A {@link BlobRef} in an entry. */
export type BlobTuple = readonly [sequence: number, offset: number, bytes: number, crc: number]

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
  /** The ids of the page, and of how many pages before it they are still needed; absent: as before. */
  readonly ids?: { readonly blob: number; readonly keep: number } | undefined
}

/** The rows of a page that belong to one partition and one shard. */
export type SliceEntry = {
  /** The window of their partition. */
  readonly window: string
  readonly shard: number
  readonly rows: number
  readonly imported_at: Span | null
}

/** Rows of a page that wait in the log until their shard is sealed. All other rows of it are in a sealed shard. */
export type LoggedRows = { readonly shard: number; readonly rows: number; readonly blob: number }

/** Rejected items of a page: lines for the quarantine file of their partition. */
export type QuarantineEntry = { readonly window: string; readonly items: number; readonly blob: number }

/** A shard gets its first rows in the log. */
export type OpenEntry = {
  readonly kind: 'open'
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** Contents of the shard. A checkpoint replaces the page entries with it. */
  readonly contents?:
    | {
        readonly partitions: readonly string[]
        readonly imported_at: Span | null
        readonly records: readonly (readonly [rows: number, ...blob: BlobTuple])[]
      }
    | undefined
}

/** Bytes of an open shard, ids of a chain, or rejected items of a partition, moved to this commit; null: not moved. In their order. */
export type GatheredEntry = {
  readonly kind: 'gathered'
  readonly shard?: number | undefined
  readonly chain?: number | undefined
  readonly partition?: string | undefined
  readonly blobs: readonly (number | null)[]
}

/** A shard that is sealed and durable, `_state/sealed/<shard>.<16 digits of its SHA-256>`. It only lacks its final name. */
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
  /** Items in quarantine that were removed with them; absent, like the lists, in entries of earlier versions. */
  readonly quarantined?: number | undefined
  /** The partitions, by key. */
  readonly removed?: readonly PrunedPartition[] | undefined
  /** The shards that held nothing else. */
  readonly shards?: readonly PrunedShard[] | undefined
}

type PrunedPartition = { readonly partition: string; readonly rows: number; readonly quarantined: number }
type PrunedShard = { readonly path: string; readonly rows: number; readonly sha256: string }

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
  /** Its rows, in the log. */
  readonly records: readonly LogRecord[]
}

/** A record batch in the log. */
export type LogRecord = { readonly rows: number; readonly at: BlobRef }
