import type { Position, Restart, Span } from './page.ts'
import type { Window } from './partition.ts'
import type { Order } from './pipeline.ts'
import type { Aggregates } from './rows/aggregates.ts'
import type { JsonValue } from './rows/json-values.ts'

/**
 * The entries of the journal, `_state/checkpoint.jsonl`. Each says one thing that has become durable; read in order they
 * are the whole truth about what is exported and where to go on. Names of fields are those in the file. `state/` proves
 * that what it reads is of these types.
 */
export type JournalEntry =
  | HeaderEntry
  /** Tells whether a secret query still asks for the same secret; a digest under the mask key. */
  | { readonly kind: 'secret'; readonly query: string; readonly check: string }
  /** What a query asks for that the user gave a name, as its rows show it. */
  | { readonly kind: 'query'; readonly name: string; readonly asks: string }
  | { readonly kind: 'run'; readonly run: string; readonly started_at: string; readonly version: string }
  | RunEndEntry
  /** A run has gone into another month (`2024-02`, UTC), and had sent and spent so much before. */
  | {
      readonly kind: 'month'
      readonly run: string
      readonly month: string
      readonly before: number
      readonly searches?: number | undefined
    }
  /** What the pages of a run say that it sent, in place of pages that are no longer there. It never ended. */
  | ({
      readonly kind: 'cut'
      readonly run: string
      readonly requests: number
      readonly searches_remaining?: number | undefined
    } & RunFigures)
  | ChainEntry
  /** The chain leaves all but the first so many of its windows to others. */
  | { readonly kind: 'shorten'; readonly chain: number; readonly windows: number }
  /** A refused cursor or another page size made the chain start again after this position; null: from its beginning. */
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
  /** Finished shards whose partitions are exported anew, or pruned: their files are to go. */
  | { readonly kind: 'given-up'; readonly shards: readonly string[] }
  | ({ readonly kind: 'prune' } & Prune)
  | { readonly kind: 'unknown'; readonly fields: Readonly<Record<string, number>> }
  | MeasuredEntry
  /** The page size that a query goes on with; null: the greatest. `query` null: what new queries begin with. */
  | { readonly kind: 'limit'; readonly query: string | null; readonly size: number | null }

/** Where entries go. */
export type JournalWriter = {
  /** Makes entries durable, all of them or none; what they say counts once it resolves. */
  append(entries: readonly JournalEntry[]): Promise<void>
}

export type HeaderEntry = {
  readonly kind: 'header'
  readonly version: 2
  readonly pipeline: string
  /** Identity of the data set, made when it begins; its name and its path are not it. */
  readonly data_set_id: string
  readonly created_at: string
  readonly settings: Readonly<Record<string, JsonValue>>
}

/** How a run ends. */
export type RunStatus = 'complete' | 'failed' | 'budget' | 'interrupted'

export const RUN_STATUSES = [
  'complete',
  'failed',
  'budget',
  'interrupted',
] as const satisfies readonly RunStatus[]

/** What a run brought and what that took; absent: as its pages say, or not known. */
export type RunFigures = {
  readonly rows?: number | undefined
  readonly quarantined?: number | undefined
  readonly repeated?: number | undefined
  /** Partitions that failed in it, a partition as often as it did. */
  readonly failures?: number | undefined
  /** Searches of the quota that it spent, by the service's own count; absent: the service does not tell. */
  readonly searches?: number | undefined
}

export type RunEndEntry = {
  readonly kind: 'end'
  readonly run: string
  readonly finished_at: string
  readonly status: RunStatus
  readonly requests: number
  readonly retries: number
  /** What the service said last; absent: nothing. */
  readonly searches_remaining?: number | undefined
  /** The fewest requests that its items could have come with. */
  readonly least?: number | undefined
  /** Why items were quarantined, and how many. */
  readonly reasons?: Readonly<Record<string, number>> | undefined
} & RunFigures

/** A chain that has begun: what it asks for, and the windows that it goes through. */
export type ChainEntry = {
  readonly kind: 'chain'
  readonly chain: number
  readonly query: string
  readonly order: Order
  /**
   * Adjacent windows: where the first begins, and how long they are, microseconds, each length so many times; 0 times:
   * not the length but the end. null: no windows, the chain's rows are one partition.
   */
  readonly windows: {
    readonly from: number
    readonly spans: readonly (readonly [span: number, times: number])[]
  } | null
  /** Where it stands, once a rewrite has taken the place of its pages. */
  readonly stands?:
    | {
        readonly next: string | null
        readonly passed: number
        readonly pages: number
        readonly position: Position | null
        readonly in_order: boolean
        readonly asked: Window | null
        readonly since: Restart | null
        /** Digests of the cursors before `next`, base64. */
        readonly seen: string
        readonly ids: IdMark | null
        readonly size: number | null
      }
    | undefined
}

/** Where a chain's ids are good: the bytes of one of its two files up to `end`, which have this CRC-32. */
export type IdMark = { readonly file: number; readonly end: number; readonly crc: number }

/** One page whose rows are durable. */
export type PageEntry = {
  readonly kind: 'page'
  readonly chain: number
  /** The cursor of the page after it; null: the chain has ended. */
  readonly next: string | null
  /** Requests that it took, retries among them. */
  readonly requests: number
  /** How many rows were asked for; absent: as before. */
  readonly size?: number | undefined
  /** Windows of the chain, from its beginning, that nothing more can come for; absent: as before. */
  readonly passed?: number | undefined
  /** Rows of the page that stand together. */
  readonly pieces?: readonly SliceEntry[] | undefined
  readonly logged?: readonly LoggedRows[] | undefined
  /** How far the chain has come; null: the rows are not in order; absent: as before. */
  readonly position?: Position | null | undefined
  /** Quarantined items: window, end of its partition's quarantine file, and how many this page added to it. */
  readonly quarantine?: readonly QuarantineEntry[] | undefined
  readonly unknown_fields?: Readonly<Record<string, number>> | undefined
  /** Items that the chain had before; absent: none. */
  readonly repeated?: number | undefined
  /** Absent: as before. */
  readonly ids?: IdMark | undefined
}

/** Rows of a page that one partition has in one shard. */
export type SliceEntry = {
  /** Of the partition that they belong to. */
  readonly window: string
  readonly shard: number
  readonly rows: number
  readonly imported_at: Span | null
}

/** Rows of a page in the write-ahead log of an open shard; all others are in a row group, or in a shard that is sealed. */
export type LoggedRows = {
  readonly shard: number
  readonly generation: number
  readonly end: number
  readonly rows: number
}

export type QuarantineEntry = { readonly window: string; readonly end: number; readonly items: number }

/** What has to be in the journal about shards before it counts. */
export type ShardEntry = OpenEntry | RowGroupEntry | SealEntry | AggregatesEntry

export type OpenEntry = {
  readonly kind: 'open'
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** What is in it, once a rewrite has taken the place of its pages. */
  readonly holds?:
    | {
        readonly partitions: readonly string[]
        readonly imported_at: Span | null
        readonly generation: number
        readonly records: readonly (readonly [rows: number, end: number])[]
      }
    | undefined
}

/** All that is in an open shard's log up to this generation, and what was to follow, is in the shard itself. */
export type RowGroupEntry = {
  readonly kind: 'chunk'
  readonly shard: number
  /** Generation of the write-ahead log whose rows the row group holds. */
  readonly generation: number
  readonly offset: number
  readonly bytes: number
  readonly crc: number
  readonly rows: number
  readonly meta: JsonValue
  /** As in the seal. */
  readonly replaced?: number | undefined
  /** Absent: an earlier version wrote it. */
  readonly sums?: Aggregates | undefined
}

/** A shard that is sealed and durable; after this entry it only has to get its final name. */
export type SealEntry = {
  readonly kind: 'seal'
  readonly shard: number
  readonly path: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
  readonly partitions: readonly string[]
  readonly imported_at: Span | null
  /** Characters that the format can't hold, and that were replaced; absent: none. */
  readonly replaced?: number | undefined
}

/**
 * Aggregates over the rows of shards that are sealed with it, or, where it stands in place of entries that are no longer
 * there, over all so far. `anew`: over all so far, whatever was said before.
 */
type AggregatesEntry = { readonly kind: 'sums'; readonly anew?: true | undefined } & Aggregates

export type FailureEntry = {
  readonly kind: string
  readonly message: string
  /** Items of the page that it failed at: in quarantine, and to be asked for again; absent: none. */
  readonly refused?: number | undefined
}

/** What all entries about a partition come to, once a rewrite has taken their place. */
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
  /** Its query began in the last run; absent: it was there before. */
  readonly new?: true | undefined
}

/** Partitions were pruned: when, those that ended before which instant, how many they were, and their rows. */
export type Prune = {
  readonly pruned_at: string
  readonly before: string
  readonly partitions: number
  readonly rows: number
}

/** What responses have told about the service since the entry before. */
export type MeasuredEntry = {
  readonly kind: 'measured'
  /** Rows and searches of a page. */
  readonly costs?: readonly (readonly [rows: number, searches: number])[] | undefined
  /** Rows that a page was asked for, and milliseconds. */
  readonly times?: readonly (readonly [size: number, ms: number])[] | undefined
  /** Whether it says how many searches are left. */
  readonly tells?: boolean | undefined
  /** What the run has spent so far. */
  readonly spent?: number | undefined
  readonly left?: number | undefined
  /** Rows asked for with the page that was served last, once a rewrite has taken the place of the pages. */
  readonly page_size?: number | undefined
  /** It stands in place of entries that are no longer there; runs have their figures elsewhere. */
  readonly anew?: true | undefined
}

/** What the entries about a shard that is still open come to. */
export type OpenShardRecord = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  readonly partitions: ReadonlySet<string>
  readonly importedAt: Span | null
  readonly rowGroups: readonly RowGroupEntry[]
  /** Of the write-ahead log that holds the rows which are not in a row group yet. */
  readonly generation: number
  readonly records: readonly LogRecord[]
}

/** Rows in a write-ahead log, and where they end there. */
export type LogRecord = { readonly rows: number; readonly end: number }
