import * as z from 'zod'
import type { PlainError } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'

// What is stored in the queue. Any worker may read it, so each object has a version and is checked when it is read.
// Secrets are stored as the names of their variables.

const VERSION = z.literal(1)
const int = z.int()
const oneOf = z.enum
const nullable = z.nullable
const string = z.string

/** A pipeline as it was submitted. */
export const entrySchema = z.object({
  version: VERSION,
  submission: z.uuid(),
  allowPlaintext: z.boolean(),
  /** Whether the queries are left out of the queue: the worker then reads them from the pipeline file. */
  hidden: z.boolean(),
  /** Path of the pipeline file on the machine that submitted it. */
  file: string(),
  /** The content of the file. It is checked like a file when a pipeline is made of it. */
  settings: z.looseObject({ name: string(), extract: z.looseObject({}) }),
})
export type Entry = z.infer<typeof entrySchema>

/** The job: an organization that has pending pipelines. */
export const jobSchema = z.object({
  version: VERSION,
  organization: string(),
  /** The owner of the job locks data sets under this name. */
  hold: z.uuid(),
})
export type OrganizationJob = z.infer<typeof jobSchema>

const ERROR_KINDS = [
  ...(['config', 'credentials', 'quota', 'locked', 'interrupted', 'transient'] as const),
  ...(['refused', 'cursor', 'data', 'storage', 'target', 'damaged'] as const),
]
const error: z.ZodType<PlainError> = z.object({
  kind: oneOf(ERROR_KINDS),
  what: string(),
  where: string(),
  next: string(),
})
const summary: z.ZodType<Omit<RunSummary, 'error'>> = z.object({
  pipeline: string(),
  status: oneOf(['complete', 'failed', 'budget', 'interrupted']),
  partitions: z.object({ total: int, done: int, failed: int, pending: int }),
  rows: int,
  dataSet: z.object({ rows: int }),
  shards: int,
  bytes: int,
  requests: int,
  retries: int,
  quarantined: int,
  replacedNuls: int,
  repeated: int,
  searchesSpent: nullable(int),
  searchesRemaining: nullable(z.number()),
  service: z.object({
    pageSize: nullable(int),
    searchesPerRequest: nullable(z.number()),
    searchesPer1000Rows: nullable(z.number()),
  }),
  durationMs: z.number(),
  lastCompleteMs: nullable(z.number()),
  manifest: nullable(string()),
  causes: z.array(
    z.object({
      what: string(),
      kind: oneOf(ERROR_KINDS),
      partitions: int,
      first: string(),
      next: string(),
      reasons: z.record(z.string(), int),
    }),
  ),
  failures: z.array(z.object({ partition: string(), message: string() })),
})

/** The standing of a submitted pipeline. */
export const standingSchema = z.object({
  submission: z.uuid(),
  state: oneOf(['active', 'waiting', 'done']),
  /** The hold of its last owner. */
  hold: z.uuid(),
  /** Workers that died in succession, with nothing committed in between. */
  deaths: int,
  /** Whether the last worker has committed anything. */
  moved: z.boolean(),
  /** End of the pause that the service demanded (epoch ms); null: none. */
  pausedUntilMs: nullable(z.number()),
  /** Totals of the time slices before. */
  before: z.object({ shards: int, bytes: int, replacedNuls: int, durationMs: z.number() }),
  /** The result of its last run; `summary` is null if the run could not start. */
  outcome: nullable(z.object({ summary: nullable(summary), error: nullable(error) })),
})
export type Standing = z.infer<typeof standingSchema>
