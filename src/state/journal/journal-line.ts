import * as z from 'zod'
import { type JournalEntry, type JsonValue, MAX_WINDOWS, RUN_STATUSES } from '../../core/index.ts'

/**
 * The lines of `_state/checkpoint.jsonl`. Each says one thing that has become durable; read in order they
 * are the whole truth about what is exported and where to go on.
 */

const count = z.number().int().nonnegative()
/** Lines are parsed JSON before they come here, so that whatever is there is JSON. */
const json = z.custom<JsonValue>((value) => value !== undefined)

/** Large numbers are texts of digits: see Int64Json. */
const int64 = z.union([z.number(), z.string().regex(/^-?\d{16,19}$/)])

const restart = z.object({ at: int64, ids: z.array(int64) })
const position = restart.extend({ ids: restart.shape.ids.nullable() })

const importedAt = z.object({ min: int64, max: int64 })

/** How far the ids of a chain's last pages are good. */
const ids = z.object({ file: count, end: count, crc: count })

const range = z.object({ from: z.number(), until: z.number() })

/**
 * Adjacent windows: where the first begins, and how long they are, microseconds, each length so many times; 0 times: not
 * the length but the end.
 */
const windows = z.object({
  from: z.number(),
  spans: z.array(
    z.tuple([z.number(), count.max(MAX_WINDOWS)]).refine(([span, times]) => times === 0 || span > 0),
  ),
})

/** Rows of a page that stand together. */
const slice = z.object({
  /** Of the partition that they belong to. */
  window: z.string(),
  shard: count,
  rows: count,
  imported_at: importedAt.nullable(),
})

/** Rows of a page in the write-ahead log of an open shard; all others are in a row group, or in a sealed shard. */
const logged = z.object({ shard: count, generation: count, end: count, rows: count })

/** One check for a pair, of which an entry may have thousands. */
const counts = <Key extends number | string | null>(isKey: (key: unknown) => boolean) =>
  z.object({
    counts: z.array(
      z.custom<[Key, number]>(
        (pair) => Array.isArray(pair) && pair.length === 2 && isKey(pair[0]) && isCount(pair[1]),
      ),
    ),
    others: count,
  })

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0
const isName = (value: unknown): boolean => typeof value === 'string' || value === null

/** Aggregates over rows. */
const aggregates = z.object({
  rows: count,
  days: counts<number>(Number.isSafeInteger),
  sources: counts<string | null>(isName),
  hash_types: counts<string | null>(isName),
  nulls: z.record(z.string(), count),
})

/** What a run brought and what that took; absent: as its pages say, or not known. */
const runFigures = {
  rows: count.optional(),
  quarantined: count.optional(),
  repeated: count.optional(),
  /** Partitions that failed in it, a partition as often as it did. */
  failures: count.optional(),
  /** What of the quota it spent, by the service's own count; absent: the service does not tell. */
  searches: count.optional(),
}

/** One page whose rows are durable. */
const page = z.object({
  kind: z.literal('page'),
  chain: count,
  /** The cursor of the page after it; null: the chain has ended. */
  next: z.string().nullable(),
  /** Requests that it took, retries among them. */
  requests: count,
  /** How many rows were asked for; absent: as before. */
  size: count.optional(),
  /** Windows of the chain, from its beginning, that nothing more can come for; absent: as before. */
  passed: count.optional(),
  pieces: z.array(slice).optional(),
  logged: z.array(logged).optional(),
  /** How far the chain has come; null: the rows are not in order; absent: as before. */
  position: position.nullable().optional(),
  /** Quarantined items: window, end of its partition's quarantine file, and how many this page added to it. */
  quarantine: z.array(z.object({ window: z.string(), end: count, items: count })).optional(),
  unknown_fields: z.record(z.string(), count).optional(),
  /** Items that the chain had before; absent: none. */
  repeated: count.optional(),
  /** Absent: as before. */
  ids: ids.optional(),
})

/** A shard that is whole and flushed; after this line it only has to get its final name. */
const seal = z.object({
  kind: z.literal('seal'),
  shard: count,
  path: z.string(),
  rows: count,
  bytes: count,
  sha256: z.string(),
  partitions: z.array(z.string()),
  imported_at: importedAt.nullable(),
  /** NUL characters that became U+FFFD, in CSV; absent: none. */
  replaced: count.optional(),
})

const error = z.object({
  kind: z.string(),
  message: z.string(),
  /** Items of the page that it failed at: in quarantine, and to be asked for again; absent: none. */
  refused: count.optional(),
})

const partitionCounts = {
  rows: count,
  pages: count,
  requests: count,
  quarantined: count,
  repeated: count.optional(),
}

const entries = {
  header: z.object({
    kind: z.literal('header'),
    version: z.literal(2),
    pipeline: z.string(),
    /** Identity of the data set, made when it begins; its name and its path are not it. */
    data_set_id: z.uuid(),
    created_at: z.string(),
    settings: z.record(z.string(), json),
  }),
  /** Tells whether a secret query still asks for the same secret; a digest under the mask key. */
  secret: z.object({ kind: z.literal('secret'), query: z.string(), check: z.string() }),
  /** What a name stands for that the user gave to a query: what it asks for, as its rows show it. */
  query: z.object({ kind: z.literal('query'), name: z.string(), asks: z.string() }),
  run: z.object({ kind: z.literal('run'), run: z.string(), started_at: z.string(), version: z.string() }),
  end: z.object({
    kind: z.literal('end'),
    run: z.string(),
    finished_at: z.string(),
    status: z.enum(RUN_STATUSES),
    requests: count,
    retries: count,
    /** What the service said last; absent: nothing. */
    searches_remaining: count.optional(),
    ...runFigures,
    /** The fewest requests that its items could have come with. */
    least: count.optional(),
    /** Why items were quarantined, and how many. */
    reasons: z.record(z.string(), count).optional(),
  }),
  /** A run has gone into another month (`2024-02`, UTC), and had sent and spent so much before. */
  month: z.object({
    kind: z.literal('month'),
    run: z.string(),
    month: z.string(),
    before: count,
    searches: count.optional(),
  }),
  /** What the pages of a run say that it sent, in place of pages that are no longer there. It never ended. */
  cut: z.object({
    kind: z.literal('cut'),
    run: z.string(),
    requests: count,
    searches_remaining: count.optional(),
    ...runFigures,
  }),
  /** A chain that has begun: what it asks for, and the windows that it goes through. */
  chain: z.object({
    kind: z.literal('chain'),
    chain: count,
    query: z.string(),
    order: z.enum(['asc', 'desc']),
    /** null: none, its rows are one partition. */
    windows: windows.nullable(),
    /** Where it stands, once compaction has replaced its pages. */
    stands: z
      .object({
        next: z.string().nullable(),
        passed: count,
        pages: count,
        position: position.nullable(),
        in_order: z.boolean(),
        asked: range.nullable(),
        since: restart.nullable(),
        /** Digests of the cursors before `next`, base64. */
        seen: z.string(),
        ids: ids.nullable(),
        size: count.nullable(),
      })
      .optional(),
  }),
  /** The chain leaves all but the first so many of its windows to others. */
  shorten: z.object({ kind: z.literal('shorten'), chain: count, windows: count }),
  /** A refused cursor or another size of pages made the chain start again after this position; null: from its beginning. */
  restart: z.object({ kind: z.literal('restart'), chain: count, since: restart.nullable() }),
  open: z.object({
    kind: z.literal('open'),
    shard: count,
    folder: z.string(),
    part: count,
    /** What is in it, once compaction has replaced its pages. */
    holds: z
      .object({
        partitions: z.array(z.string()),
        imported_at: importedAt.nullable(),
        generation: count,
        records: z.array(z.tuple([count, count])),
      })
      .optional(),
  }),
  page,
  /** All that is in an open shard's log up to this generation, and what was to follow, is in the shard itself. */
  chunk: z.object({
    kind: z.literal('chunk'),
    shard: count,
    generation: count,
    offset: count,
    bytes: count,
    crc: z.number(),
    rows: count,
    meta: json,
    replaced: count.optional(),
    /** Absent: an earlier version wrote it. */
    sums: aggregates.optional(),
  }),
  seal,
  /**
   * Aggregates over the rows of the shards that are sealed with this entry, or, in a compacted journal, of all shards.
   * `anew`: of all shards, in place of all earlier aggregates.
   */
  sums: z.object({ kind: z.literal('sums'), ...aggregates.shape, anew: z.literal(true).optional() }),
  failed: z.object({ kind: z.literal('failed'), partition: z.string(), requests: count, error }),
  /** All entries about a partition together, once compaction has replaced them. */
  partition: z.object({
    kind: z.literal('partition'),
    partition: z.string(),
    /** Absent: it is done. */
    state: z.enum(['partial', 'failed', 'pruned']).optional(),
    ...partitionCounts,
    quarantine_end: count.optional(),
    error: error.optional(),
    new: z.literal(true).optional(),
  }),
  /** Finished shards whose partitions are exported anew, or pruned: their files are to go. */
  'given-up': z.object({ kind: z.literal('given-up'), shards: z.array(z.string()) }),
  /** Partitions were pruned: when, those that ended before which instant, how many they were, and their rows. */
  prune: z.object({
    kind: z.literal('prune'),
    pruned_at: z.string(),
    before: z.string(),
    partitions: count,
    rows: count,
  }),
  unknown: z.object({ kind: z.literal('unknown'), fields: z.record(z.string(), count) }),
  /** What responses have told about the service since the entry before. */
  measured: z.object({
    kind: z.literal('measured'),
    /** Rows and searches of a page. */
    costs: z.array(z.tuple([count, count])).optional(),
    /** Rows that a page was asked for, and milliseconds. */
    times: z.array(z.tuple([count, count])).optional(),
    /** Whether it says how many searches are left. */
    tells: z.boolean().optional(),
    /** What the run has spent so far. */
    spent: count.optional(),
    left: count.optional(),
    /** Rows asked for with the page that was served last, once compaction has replaced the pages. */
    page_size: count.optional(),
    /** It stands in place of entries that are no longer there; runs have their figures elsewhere. */
    anew: z.literal(true).optional(),
  }),
  /** The size of pages that a query goes on with; null: the greatest. `query` null: what new queries begin with. */
  limit: z.object({ kind: z.literal('limit'), query: z.string().nullable(), size: count.nullable() }),
}

type Entry = z.infer<(typeof entries)[keyof typeof entries]>

/** One line of the journal: an entry, or several that count together or not at all. */
export type JournalLine = JournalEntry | { readonly kind: 'all'; readonly lines: readonly JournalEntry[] }

/** For each kind of entry, the fields that it may have. */
type Fields<Entry extends { readonly kind: string }> = { readonly [E in Entry as E['kind']]: Fieldnames<E> }
type Fieldnames<E> = { readonly [Name in keyof E]-?: true }

/** The compiler proves that the schema has all fields that {@link JournalEntry} has; `parseLine` proves the rest. */
const allFields = (fields: Fields<Entry>): Fields<JournalEntry> => fields
void allFields

/** @returns null when the line is none of the kinds above (a newer version may know more) */
export function parseJournalLine(line: unknown): JournalLine | null {
  if (!isSeveral(line)) return parseEntry(line)
  const lines: JournalEntry[] = []
  for (const each of line.lines) {
    const parsed = parseEntry(each)
    if (parsed === null) return null
    lines.push(parsed)
  }
  return { kind: 'all', lines }
}

/**
 * The first field by which {@link parseJournalLine} would refuse a line once it is read back; null: it would not. Takes 0.01 ms
 * for the line of a page, and 0.4 ms for one that completes thirty shards.
 */
export function faultyField(line: JournalLine): string | null {
  // As it will be read: JSON has no NaN, and leaves out what is undefined.
  const read: unknown = JSON.parse(JSON.stringify(line))
  if (!isSeveral(read)) return faultyFieldOf(read)
  for (const [i, each] of read.lines.entries()) {
    const field = faultyFieldOf(each)
    if (field !== null) return `lines.${i}.${field}`
  }
  return null
}

/** Entries that count together or not at all. */
function isSeveral(line: unknown): line is { readonly lines: readonly unknown[] } {
  return isObject(line) && line.kind === 'all' && Array.isArray(line.lines)
}

function parseEntry(entry: unknown): JournalEntry | null {
  const result = schemaOf(entry)?.safeParse(entry)
  return result?.success === true ? result.data : null
}

function faultyFieldOf(entry: unknown): string | null {
  const result = schemaOf(entry)?.safeParse(entry)
  if (result === undefined) return 'kind'
  return result.success ? null : (result.error.issues[0]?.path.join('.') ?? '')
}

/** Looked up by the kind, so that schemas of kinds which a journal does not have are never made ready. */
function schemaOf(entry: unknown): z.ZodType<Entry> | null {
  if (!isObject(entry) || typeof entry.kind !== 'string' || !Object.hasOwn(entries, entry.kind)) return null
  return entries[entry.kind as keyof typeof entries]
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
