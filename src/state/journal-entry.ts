import * as z from 'zod'
import { ERROR_KINDS, EXTRA_TYPES, MAX_WINDOWS, TABLE_FORMATS } from '../core/index.ts'

/**
 * One durable change: an entry of the log, or of the checkpoint, which sums up those before. Fields are as in files.
 * `state/index.ts` has the types alone: threads that import it need no zod.
 */
export type JournalEntry = { [Kind in keyof Entries]: Entries[Kind] }[keyof Entries]

type Entries = { [Kind in keyof typeof ENTRY_SCHEMAS]: { readonly kind: Kind } & Fields<Kind> }

export type Entry<Kind extends keyof Entries> = Entries[Kind]

type Fields<Kind extends keyof typeof ENTRY_SCHEMAS> = ReadonlyDeep<z.infer<(typeof ENTRY_SCHEMAS)[Kind]>>

type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

/** A value of JSON is readonly as it is, and has no end for the compiler. */
type ReadonlyDeep<T> = [JsonValue] extends [T] ? T : { readonly [Key in keyof T]: ReadonlyDeep<T[Key]> }

const count = z.number().int().nonnegative()

/** Counts by names that the service chooses. A record of zod leaves `__proto__` out. */
export const countsByName = z.custom<Record<string, number>>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((n) => count.safeParse(n).success),
)

/** Any value: lines are already parsed, so each value is JSON. */
const json = z.custom<JsonValue>((value) => value !== undefined)

/** Large integers are strings of digits: see Int64Json. */
const int64 = z.union([z.number(), z.string().regex(/^-?\d{16,19}$/)])

const position = z.object({ at: int64, late: z.number().nonnegative() })

const importedAt = z.object({ min: int64, max: int64 })

const isRedo = z.literal(true).optional()

const blob = z.tuple([count, count, count, count])
export type BlobTuple = ReadonlyDeep<z.infer<typeof blob>>

/** The columns of rows, by the names in the pipeline file. */
export const schemaJson = z.object({
  include: z.array(z.string()),
  columns: z.array(z.string()),
  extra_columns: z.array(
    z.object({ name: z.string(), path: z.string(), type: z.enum([...EXTRA_TYPES, 'strings']) }),
  ),
  secret_facts: z.object({ policy: z.object({ min_length: count, classes: count }) }).nullable(),
})
export type SchemaJson = ReadonlyDeep<z.infer<typeof schemaJson>>

const RUN_STATUSES = ['complete', 'failed', 'budget', 'interrupted'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** Figures of a run; absent: the sum over its pages, or not known. */
const runFigures = z.object({
  run: z.string(),
  requests: count,
  rows: count.optional(),
  quarantined: count.optional(),
  repeated: count.optional(),
  forgotten: count.optional(),
  /** Failures of partitions; one partition may fail several times. */
  failures: count.optional(),
  /** Searches of the quota that it spent, by the service's own count; absent: the service does not report it. */
  searches: count.optional(),
  /** As the service last reported it; absent: never reported. */
  searches_remaining: count.optional(),
})
export type RunFigures = ReadonlyDeep<z.infer<typeof runFigures>>

/** What ended a run early, or the most frequent fault of its partitions. */
export const runError = z.object({
  kind: z.enum(ERROR_KINDS),
  what: z.string(),
  where: z.string(),
  next: z.string(),
})

/** Whose token a run has, as its test says, and the machine; null: the service does not say, or was not asked. */
export const runBy = z.object({
  organization: z.number().nullable(),
  tenant: z.number().nullable(),
  host: z.string(),
})
export type RunBy = ReadonlyDeep<z.infer<typeof runBy>>

/** Adjacent windows, µs: where the first begins, then runs of one length. `times` 0: `span` is the end of one. */
const windows = z.object({
  from: z.number(),
  spans: z.array(
    z.tuple([z.number(), count.max(MAX_WINDOWS)]).refine(([span, times]) => times === 0 || span > 0),
  ),
})

/** A sealed, durable shard, `_state/sealed/<shard>.<16 digits of its SHA-256>`. It only lacks its final name. */
const seal = z.object({
  shard: count,
  path: z.string(),
  rows: count,
  bytes: count,
  sha256: z.string(),
  partitions: z.array(z.string()),
  imported_at: importedAt.nullable(),
  /** It was compacted: the parts of its folder whose rows it holds, first and last of each range; absent: it was not. */
  stands_for: z.array(z.tuple([count, count])).optional(),
  /** Absent: 0. */
  schema: count.optional(),
})
export type SealEntry = Entry<'seal'>

const failure = z.object({
  kind: z.string(),
  message: z.string(),
  /** What all partitions with this fault share, and what to do. */
  cause: z.string(),
  next: z.string(),
  /** All of its rows and items are exported: too many of them are in quarantine. Absent: some are left to request. */
  ended: z.literal(true).optional(),
})
export type FailureEntry = ReadonlyDeep<z.infer<typeof failure>>

/** The fields beside `kind`, by kind. zod prepares a schema on first use, so unused kinds cost nothing. */
export const ENTRY_SCHEMAS = {
  header: z.object({
    version: z.literal(5),
    pipeline: z.string(),
    /** Identity of the data set, created with it. It is independent of the name and the path. */
    data_set_id: z.uuid(),
    created_at: z.string(),
    settings: z.record(z.string(), json),
    /** The first of the data set: number 0. */
    schema: schemaJson,
  }),
  /** The data set gains columns. The entry stands before the first one that names it, and may be repeated. */
  schema: schemaJson.extend({ schema: count }),
  /** The value of a query with a user-defined name, as in the column `query_value`. */
  query: z.object({ name: z.string(), value: z.string() }),
  run: z.object({ run: z.string(), started_at: z.string(), version: z.string(), by: runBy }),
  end: runFigures.extend({
    finished_at: z.string(),
    status: z.enum(RUN_STATUSES),
    retries: count,
    /** Why items were quarantined, and how many. */
    reasons: countsByName.optional(),
    /** Why it is not complete; absent: it is. */
    error: runError.optional(),
  }),
  /** The last entry of a checkpoint: the commits after this end follow it. Without it, the checkpoint is cut. */
  end_of_log: z.object({ file: count, bytes: count, checksum: count }),
  /** A new month (`2024-02`, UTC) began during a run. `searches`: those of the run until then. */
  month: z.object({ run: z.string(), month: z.string(), searches: count }),
  /** Figures of a run that was killed. A rewrite replaces the run's page entries with it. */
  unfinished: runFigures,
  chain: z.object({
    chain: count,
    query: z.string(),
    order: z.enum(['asc', 'desc']),
    /** null: no windows, the chain's rows are one partition. */
    windows: windows.nullable(),
    /** How far a feed is read, whose chain never ends; absent: it is a search. */
    feed: z
      .object({
        /** `whole`: front to end; `tail`: last cursor to end; `front`: front to the former front; null: none has begun. */
        pass: z.enum(['whole', 'tail', 'front']).nullable(),
        /** The last cursor that was not null on the way to the end of the feed, and the size of its pages. */
        end: z.string().nullable(),
        end_size: count.nullable(),
        /** How many of the chain's `ids`, from the first on, are the front of the feed when a pass last began there. */
        front: count,
        /** How many after these are the front as the present pass has found it. */
        head: count,
        /** Whether some ids of the present pass are not kept any more. */
        truncated: z.boolean(),
        /** Whether its front is to be read next: the last pass was to its end. */
        owed: z.boolean(),
      })
      .optional(),
    /** The schema of its rows; absent: 0. */
    schema: count.optional(),
    /** Its progress. A rewrite replaces the chain's page entries with it. */
    state: z
      .object({
        next: z.string().nullable(),
        /** Number of its first windows that get no more rows, provided that rows come in order. */
        watermark: count,
        pages: count,
        /** null: no item yet. */
        position: position.nullable(),
        requested: z.object({ from: z.number(), until: z.number() }).nullable(),
        /** Set when it has lost its cursor: its requests begin at this instant. */
        since: int64.nullable(),
        /** Digests of the cursors before `next`, base64. */
        seen: z.string(),
        ids: z.array(blob),
        /** Whether ids of some pages are not kept any more. */
        truncated: z.boolean(),
        /** Nothing is known from which it can go on. */
        lost: z.literal(true).optional(),
        /** Rows requested with its last page; null: no page yet. */
        size: count.nullable(),
      })
      .optional(),
  }),
  /** The chain keeps its first `windows` windows; other chains take the rest. */
  shorten: z.object({ chain: count, windows: count }),
  /** The chain lost its cursor, and begins again at the instant `since`; null: at its beginning. The next page is its first. */
  restart: z.object({
    chain: count,
    since: int64.nullable(),
    /** Of a feed: a pass from its front begins; absent: the present pass begins again. */
    pass: z.literal('front').optional(),
    /** There is no such instant: the next run exports the partitions of the chain anew. */
    lost: z.literal(true).optional(),
  }),
  /** A shard gets its first rows in the log. */
  open: z.object({
    shard: count,
    folder: z.string(),
    part: count,
    /** Absent: 0. */
    schema: count.optional(),
    /** Contents of the shard. A checkpoint replaces the page entries with it. */
    contents: z
      .object({
        partitions: z.array(z.string()),
        imported_at: importedAt.nullable(),
        /** Number of rows, then their place in the log. */
        batches: z.array(z.tuple([count, count, count, count, count])),
      })
      .optional(),
  }),
  page: z.object({
    chain: count,
    /** The cursor of the page after it; null: the chain has ended. */
    next: z.string().nullable(),
    /** Including retries. */
    requests: count,
    /** Rows requested; absent: as before. */
    size: count.optional(),
    /** Number of the chain's first windows that get no more rows; absent: as before. */
    watermark: count.optional(),
    /** Its rows of each partition and shard. */
    slices: z
      .array(z.object({ window: z.string(), shard: count, rows: count, imported_at: importedAt.nullable() }))
      .optional(),
    /** Those that wait in the log until their shard is sealed. All others are in a sealed shard. */
    logged: z.array(z.object({ shard: count, rows: count, blob: count })).optional(),
    /** Absent: as before. */
    position: position.optional(),
    /** Rejected items: lines for the quarantine file of their partition. */
    quarantine: z.array(z.object({ window: z.string(), items: count, blob: count })).optional(),
    forgotten: z.array(z.object({ window: z.string(), items: count })).optional(),
    unknown_fields: countsByName.optional(),
    /** Items that the chain already had; absent: none. */
    repeated: count.optional(),
    /** The ids of the page, and of how many pages before it they are still needed; absent: as before. */
    ids: z.object({ blob: count, keep: count }).optional(),
    /** Of a feed: whether its pass is complete, and whether another is to follow. */
    feed: z.object({ over: z.boolean(), more: z.literal(true).optional() }).optional(),
    /** Of a feed: the schema of its rows from this page on; absent: as before. */
    schema: count.optional(),
  }),
  /** Rejected items in the log that are not in the quarantine file yet. A checkpoint replaces page entries with it. */
  rejected: z.object({
    partition: z.string(),
    blobs: z.array(blob),
    /** Of what is exported of it again. */
    redo: isRedo,
  }),
  /** The first `blobs` of them are in the quarantine file now, whose first `end` bytes are committed. */
  quarantined: z.object({ partition: z.string(), blobs: count, end: count }),
  /** The first commit of an owner. `after`: the last file before it and its bytes. `nonce`: hides later checksums. */
  claim: z.object({ after: z.tuple([count, count]), nonce: z.string() }),
  seal,
  failed: z.object({ partition: z.string(), requests: count, error: failure }),
  /** Sum of all entries about a partition. A rewrite replaces them with it. */
  partition: z.object({
    partition: z.string(),
    /** Absent: it is done. */
    state: z.enum(['partial', 'failed', 'pruned']).optional(),
    rows: count,
    pages: count,
    requests: count,
    quarantined: count,
    repeated: count.optional(),
    forgotten: count.optional(),
    quarantine_end: count.optional(),
    error: failure.optional(),
  }),
  /** Partitions that are exported again, beside what readers have: until a `swap` names them, new rows wait in the log. */
  redo: z.object({
    partitions: z.array(z.string()),
    /** Those that go, with the rows of these partitions in the log. */
    chains: z.array(count),
  }),
  /** Paths of sealed shards whose files are to be removed; in a checkpoint alone, if it is not settled. */
  invalidated: z.object({ shards: z.array(z.string()) }),
  /** Manifest, tables and files are in line with all entries before. */
  settled: z.looseObject({}),
  /** A folder of which shards are gone: number of shards begun in it so far, and of those that are gone. */
  parts: z.object({ folder: z.string(), begun: count, gone: count }),
  /** What the pipeline file requests, without flags. */
  scope: z.object({
    /** Host of the service. */
    service: z.string(),
    /** By their names in paths, in the order of the file. */
    queries: z.array(z.string()),
    /** As the file has them, `until` excluded or `now`; null: one window over everything. */
    windows: z
      .object({ from: z.string(), until: z.string(), every: z.string().nullable(), lag_seconds: z.number() })
      .nullable(),
    on_invalid: z.string(),
    /** A count, or a share such as `1%`. */
    max_quarantined: z.string(),
    shard_rows: count,
  }),
  /** Partitions that ended before `before` go: sealed shards with the `swap` in its commit. In a checkpoint it is history. */
  prune: z.object({
    pruned_at: z.string(),
    before: z.string(),
    partitions: count,
    rows: count,
    quarantined: count,
    removed: z.array(z.object({ partition: z.string(), rows: count, quarantined: count })),
    /** The shards that held nothing else. */
    shards: z.array(z.object({ path: z.string(), rows: count, sha256: z.string() })),
  }),
  forget: z.object({
    at: z.string(),
    identities: count,
    rows: count,
    /** Shards that were written anew. */
    shards: count,
    quarantined: count,
    /** What it changes, beside the `swap` in its commit; absent in a checkpoint, which has the result. */
    changes: z
      .object({
        /** Rows and rejected items of each partition. `redo`: of what is exported of it again. */
        partitions: z.array(
          z.object({ partition: z.string(), rows: count, quarantined: count, redo: isRedo }),
        ),
        /** Partitions whose quarantine file is to be written anew, with these lines alone. */
        rejected: z.array(z.object({ partition: z.string(), blob: count, redo: isRedo })),
        /** Rows of open shards that were rewritten in the log: what is left of some of their batches. */
        rewritten: z.array(
          z.object({
            shard: count,
            imported_at: importedAt.nullable(),
            batches: z.array(z.object({ batch: count, rows: count, blob: count })),
          }),
        ),
      })
      .optional(),
  }),
  /** Shards go, and sealed ones (`by`) come with what is left of their rows, or of partitions again; null: none is left. */
  swap: z.object({
    shards: z.array(z.object({ of: z.array(count), by: seal.nullable() })),
    /** What was exported of them again takes the place of what there was; absent: none. */
    partitions: z.array(z.string()).optional(),
  }),
  /** The people whom runs keep out: HMACs of their identities, and which key in `_state/suppression.json` these have. */
  suppression: z.object({ key_check: z.string(), digests: z.array(z.string()) }),
  /** What may be the current metadata of a table, before its next commit and after it: each by version and digest. */
  table: z.object({
    format: z.enum(TABLE_FORMATS),
    marks: z.array(z.object({ version: count, sha256: z.string() })),
  }),
  unknown: z.object({ fields: countsByName }),
  /** What responses have shown about the service since the last such entry. */
  measured: z.object({
    /** Rows requested with a page, and milliseconds. */
    times: z.array(z.tuple([count, count])).optional(),
    /** Whether responses report how many searches are left. */
    tells_searches: z.boolean().optional(),
    /** Searches that the run has spent so far. */
    spent: count.optional(),
    left: count.optional(),
    /** Rows requested with the last page. A rewrite replaces the page entries with it. */
    page_size: count.optional(),
    /** A cursor is only accepted with the size of the page that it came with. */
    binds_sizes: z.literal(true).optional(),
    /** A rewrite wrote it. The figures of runs are in other entries. */
    replaces: z.literal(true).optional(),
  }),
  /** The size of the last page, where one twice as large did not come; null: the greatest came. */
  limit: z.object({ size: count.nullable() }),
}

export type HeaderEntry = Entry<'header'>
export type RunEndEntry = Entry<'end'>
export type ChainEntry = Entry<'chain'>
export type FeedProgress = NonNullable<ChainEntry['feed']>
export type OpenEntry = Entry<'open'>
export type PageEntry = Entry<'page'>
export type PlacedRows = NonNullable<PageEntry['slices']>[number]
export type LoggedRows = NonNullable<PageEntry['logged']>[number]
export type PartitionEntry = Entry<'partition'>
export type Scope = Fields<'scope'>
export type Prune = Fields<'prune'>
export type ForgetEntry = Entry<'forget'>
export type RewrittenRows = NonNullable<ForgetEntry['changes']>['rewritten'][number]
export type Erasure = Omit<Fields<'forget'>, 'changes'>
export type SwapEntry = Entry<'swap'>
