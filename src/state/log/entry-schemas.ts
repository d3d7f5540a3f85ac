import * as z from 'zod'
import {
  ExportError,
  type JournalEntry,
  type JsonValue,
  MAX_WINDOWS,
  RUN_STATUSES,
} from '../../core/index.ts'

/**
 * Schemas of the types in `core/journal-entry.ts`, which describes the fields. Entries are read from a disk, so each is
 * validated.
 */

const count = z.number().int().nonnegative()
/** Any value: lines are already parsed, so each value is JSON. */
const json = z.custom<JsonValue>((value) => value !== undefined)

/** Large integers are strings of digits: see Int64Json. */
const int64 = z.union([z.number(), z.string().regex(/^-?\d{16,19}$/)])

const restart = z.object({ at: int64, ids: z.array(int64) })
const position = restart.extend({ ids: restart.shape.ids.nullable() })

const importedAt = z.object({ min: int64, max: int64 })

const blob = z.tuple([count, count, count, count])

const range = z.object({ from: z.number(), until: z.number() })

const windows = z.object({
  from: z.number(),
  spans: z.array(
    z.tuple([z.number(), count.max(MAX_WINDOWS)]).refine(([span, times]) => times === 0 || span > 0),
  ),
})

const slice = z.object({
  window: z.string(),
  shard: count,
  rows: count,
  imported_at: importedAt.nullable(),
})

const logged = z.object({ shard: count, rows: count, blob: count })

/** One check for a whole pair, because an entry may have thousands of pairs. */
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

const aggregates = z.object({
  rows: count,
  days: counts<number>(Number.isSafeInteger),
  sources: counts<string | null>(isName),
  hash_types: counts<string | null>(isName),
  nulls: z.record(z.string(), count),
})

const runFigures = {
  rows: count.optional(),
  quarantined: count.optional(),
  repeated: count.optional(),
  failures: count.optional(),
  searches: count.optional(),
}

const page = z.object({
  kind: z.literal('page'),
  chain: count,
  next: z.string().nullable(),
  requests: count,
  size: count.optional(),
  watermark: count.optional(),
  slices: z.array(slice).optional(),
  logged: z.array(logged).optional(),
  position: position.nullable().optional(),
  quarantine: z.array(z.object({ window: z.string(), items: count, blob: count })).optional(),
  unknown_fields: z.record(z.string(), count).optional(),
  repeated: count.optional(),
  ids: z.object({ blob: count, keep: count }).optional(),
})

const seal = z.object({
  kind: z.literal('seal'),
  shard: count,
  path: z.string(),
  rows: count,
  bytes: count,
  sha256: z.string(),
  partitions: z.array(z.string()),
  imported_at: importedAt.nullable(),
  replaced: count.optional(),
})

const error = z.object({
  kind: z.string(),
  message: z.string(),
  rejected: count.optional(),
})

const partitionCounts = {
  rows: count,
  pages: count,
  requests: count,
  quarantined: count,
  repeated: count.optional(),
}

const schemas = {
  header: z.object({
    kind: z.literal('header'),
    version: z.literal(4),
    pipeline: z.string(),
    data_set_id: z.uuid(),
    created_at: z.string(),
    settings: z.record(z.string(), json),
  }),
  secret: z.object({ kind: z.literal('secret'), query: z.string(), check: z.string() }),
  query: z.object({ kind: z.literal('query'), name: z.string(), value: z.string() }),
  run: z.object({ kind: z.literal('run'), run: z.string(), started_at: z.string(), version: z.string() }),
  end: z.object({
    kind: z.literal('end'),
    run: z.string(),
    finished_at: z.string(),
    status: z.enum(RUN_STATUSES),
    requests: count,
    retries: count,
    searches_remaining: count.optional(),
    ...runFigures,
    min_requests: count.optional(),
    reasons: z.record(z.string(), count).optional(),
  }),
  month: z.object({
    kind: z.literal('month'),
    run: z.string(),
    month: z.string(),
    before: count,
    searches: count.optional(),
  }),
  unfinished: z.object({
    kind: z.literal('unfinished'),
    run: z.string(),
    requests: count,
    searches_remaining: count.optional(),
    ...runFigures,
  }),
  chain: z.object({
    kind: z.literal('chain'),
    chain: count,
    query: z.string(),
    order: z.enum(['asc', 'desc']),
    windows: windows.nullable(),
    state: z
      .object({
        next: z.string().nullable(),
        watermark: count,
        pages: count,
        position: position.nullable(),
        in_order: z.boolean(),
        requested: range.nullable(),
        since: restart.nullable(),
        seen: z.string(),
        ids: z.array(blob),
        size: count.nullable(),
      })
      .optional(),
  }),
  shorten: z.object({ kind: z.literal('shorten'), chain: count, windows: count }),
  restart: z.object({ kind: z.literal('restart'), chain: count, since: restart.nullable() }),
  open: z.object({
    kind: z.literal('open'),
    shard: count,
    folder: z.string(),
    part: count,
    contents: z
      .object({
        partitions: z.array(z.string()),
        imported_at: importedAt.nullable(),
        records: z.array(z.tuple([count, count, count, count, count])),
      })
      .optional(),
  }),
  page,
  gathered: z.object({
    kind: z.literal('gathered'),
    shard: count.optional(),
    chain: count.optional(),
    partition: z.string().optional(),
    blobs: z.array(count.nullable()),
  }),
  rejected: z.object({ kind: z.literal('rejected'), partition: z.string(), blobs: z.array(blob) }),
  quarantined: z.object({
    kind: z.literal('quarantined'),
    partition: z.string(),
    blobs: count,
    end: count,
  }),
  claim: z.object({ kind: z.literal('claim'), sequence: count.optional() }),
  seal,
  aggregates: z.object({
    kind: z.literal('aggregates'),
    ...aggregates.shape,
    anew: z.literal(true).optional(),
  }),
  failed: z.object({ kind: z.literal('failed'), partition: z.string(), requests: count, error }),
  partition: z.object({
    kind: z.literal('partition'),
    partition: z.string(),
    state: z.enum(['partial', 'failed', 'pruned']).optional(),
    ...partitionCounts,
    quarantine_end: count.optional(),
    error: error.optional(),
    new: z.literal(true).optional(),
  }),
  redo: z.object({
    kind: z.literal('redo'),
    partitions: z.array(z.string()),
    shards: z.array(count),
    chains: z.array(count),
    settings: z.record(z.string(), json).optional(),
  }),
  replaced: z.object({
    kind: z.literal('replaced'),
    partitions: z.array(z.string()),
    shards: z.array(count),
  }),
  invalidated: z.object({ kind: z.literal('invalidated'), shards: z.array(z.string()) }),
  removed: z.object({ kind: z.literal('removed') }),
  parts: z.object({ kind: z.literal('parts'), folder: z.string(), begun: count, gone: count }),
  prune: z.object({
    kind: z.literal('prune'),
    pruned_at: z.string(),
    before: z.string(),
    partitions: count,
    rows: count,
    quarantined: count.optional(),
    removed: z.array(z.object({ partition: z.string(), rows: count, quarantined: count })).optional(),
    shards: z.array(z.object({ path: z.string(), rows: count, sha256: z.string() })).optional(),
  }),
  unknown: z.object({ kind: z.literal('unknown'), fields: z.record(z.string(), count) }),
  measured: z.object({
    kind: z.literal('measured'),
    costs: z.array(z.tuple([count, count])).optional(),
    times: z.array(z.tuple([count, count])).optional(),
    tells_searches: z.boolean().optional(),
    spent: count.optional(),
    left: count.optional(),
    page_size: count.optional(),
    anew: z.literal(true).optional(),
  }),
  limit: z.object({ kind: z.literal('limit'), query: z.string().nullable(), size: count.nullable() }),
}

type Entry = z.infer<(typeof schemas)[keyof typeof schemas]>

/** The possible fields of each kind of entry. */
type Fields<Entry extends { readonly kind: string }> = { readonly [E in Entry as E['kind']]: Fieldnames<E> }
type Fieldnames<E> = { readonly [Name in keyof E]-?: true }

/**
 * By this the compiler proves that the schemas have all fields of {@link JournalEntry}; `parseEntry` proves the rest.
 */
const allFields = (fields: Fields<Entry>): Fields<JournalEntry> => fields
void allFields

/** @returns null if it does not match a schema (a newer version may have more kinds) */
export function parseEntry(entry: unknown): JournalEntry | null {
  const result = schemaOf(entry)?.safeParse(entry)
  return result?.success === true ? result.data : null
}

/**
 * The first field for which {@link parseEntry} would reject the entry; null: it accepts it. It takes 0.01 ms for the
 * entry of a page.
 */
export function faultyField(entry: JournalEntry): string | null {
  // The form that a reader gets: JSON has no NaN, and omits undefined fields.
  const read: unknown = JSON.parse(JSON.stringify(entry))
  const result = schemaOf(read)?.safeParse(read)
  if (result === undefined) return 'kind'
  return result.success ? null : (result.error.issues[0]?.path.join('.') ?? '')
}

/** The schema of one kind. zod prepares a schema on first use, so unused kinds cost nothing. */
function schemaOf(entry: unknown): z.ZodType<Entry> | null {
  if (!isObject(entry) || typeof entry.kind !== 'string' || !Object.hasOwn(schemas, entry.kind)) return null
  return schemas[entry.kind as keyof typeof schemas]
}

/** Checks that readers accept an entry. One invalid entry would make the whole data set unusable. */
export function requireReadable(entry: JournalEntry): void {
  const field = faultyField(entry)
  if (field === null) return
  throw new ExportError(
    'data',
    `The journal entry "${entry.kind}" could not be read again: ${field} is out of range`,
    '_state/log',
    'The entry was not written, and committed data is unchanged. Report this error with the name of the field.',
  )
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
