import { z } from 'zod'

/**
 * The JSON that scripts read. Fields may be added, but none may be renamed, removed or change its type. So these shapes
 * are declared here once more, independently of the product.
 */

const count = z.int().nonnegative()
const instant = z.iso.datetime()
const moment = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)

const service = z.object({ page_size: count.nullable() })

const retired = z.object({ query: z.string(), partitions: count, rows: count })

/** `run --json` */
export const summaryShape = z.object({
  pipeline: z.string(),
  status: z.enum(['complete', 'failed', 'budget', 'interrupted']),
  partitions: z.object({ total: count, done: count, failed: count, pending: count }),
  rows: count,
  shards: count,
  bytes: count,
  requests: count,
  retries: count,
  quarantined: count,
  repeated: count,
  searches_spent: count.nullable(),
  searches_remaining: count.nullable(),
  service,
  duration_ms: z.number().nonnegative(),
  manifest: z.string().nullable(),
})

/** `plan --json` */
export const planShape = z.object({
  partitions: z.object({ total: count, done: count, partial: count, pending: count }),
  min_requests: count,
  min_seconds: z.number().nonnegative(),
  expected_requests: count.nullable(),
  expected_seconds: z.number().nonnegative().nullable(),
  expected_searches: count.nullable(),
})

/** `status --json` */
export const statusShape = z.object({
  pipeline: z.string(),
  partitions: z.array(
    z.object({
      key: z.string(),
      query: z.string(),
      window: z.object({ from: instant, until: instant }).nullable(),
      state: z.enum(['pending', 'partial', 'done', 'failed']),
      rows: count,
      requests: count,
      next: z.string().nullable(),
      error: z.string().nullable(),
    }),
  ),
  retired: z.array(retired),
  totals: z.looseObject({}),
  service,
})

/** `verify --json` */
export const verificationShape = z.object({
  ok: z.boolean(),
  shards: count,
  rows: count,
  problems: z.array(z.object({ path: z.string(), problem: z.string() })),
  repair: z.array(z.string()),
})

/** `_manifest.json` */
export const manifestShape = z.looseObject({
  version: z.literal(1),
  pipeline: z.string(),
  data_set_id: z.uuid(),
  resource: z.enum(['credentials', 'reports', 'feed']),
  format: z.enum(['parquet', 'csv']),
  columns: z.array(z.object({ name: z.string(), type: z.string(), nullable: z.boolean() })),
  schemas: z.array(z.array(z.string())),
  masking: z.object({ secret: z.string(), identity: z.string() }),
  config_digest: z.string().min(1),
  shards: z.array(
    z.looseObject({
      path: z.string(),
      /** Zero only in the one shard of a data set without rows. */
      rows: count,
      bytes: count.positive(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      partitions: z.array(z.string()).min(1),
      imported_at: z.object({ min: moment, max: moment }).nullable(),
      schema: count.optional(),
    }),
  ),
  totals: z.object({
    ...{ rows: count, bytes: count, shards: count, quarantined: count, repeated: count, forgotten: count },
  }),
  partitions: z.array(z.looseObject({ key: z.string(), state: z.string() })),
  /** Of feeds. */
  unknown_fields: z.record(z.string(), count),
  retired: z.array(retired),
  runs: z.array(
    z.looseObject({
      started_at: instant,
      finished_at: instant.nullable(),
      status: z.enum(['complete', 'failed', 'budget', 'interrupted']),
      requests: count,
      retries: count,
      searches_spent: count.nullable(),
      searches_remaining: count.nullable(),
      version: z.string(),
      by: z.object({ organization: z.int().nullable(), tenant: z.int().nullable(), host: z.string() }),
    }),
  ),
  covers: z.object({ from: instant, until: instant }).nullable(),
  waiting: z.array(z.object({ from: instant, until: instant })),
})

/** A line of `_quarantine/*.jsonl` */
export const quarantineShape = z.object({
  partition: z.string(),
  page: count,
  index: count,
  id: z.union([z.int(), z.string().regex(/^-?\d+$/)]).nullable(),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).min(1),
  item: z.unknown(),
})
