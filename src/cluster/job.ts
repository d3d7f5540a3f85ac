import * as z from 'zod'
import type { PlainError } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'

// What lies in the queue, and is read back by whichever worker comes: so each has a version, and is checked where it is
// read. Secrets go by the names of their variables.

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
  /** What it asks for is not to be told to the queue: whoever runs it reads it from the pipeline file. */
  hidden: z.boolean(),
  /** The pipeline file, where it was submitted. */
  file: string(),
  /** What it says, checked as a file is by whoever makes a pipeline of it. */
  settings: z.looseObject({ name: string(), extract: z.looseObject({}) }),
})
export type Entry = z.infer<typeof entrySchema>

/** The job itself: an organization that has something to be done. */
export const jobSchema = z.object({
  version: VERSION,
  organization: string(),
  /** Whoever has the job holds data sets under this name. */
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

/** Where a submitted pipeline stands. */
export const standingSchema = z.object({
  submission: z.uuid(),
  state: oneOf(['active', 'waiting', 'done']),
  /** The hold under which it was at work last. */
  hold: z.uuid(),
  /** Workers that died one after the other with nothing committed in between. */
  deaths: int,
  /** Whether the last worker has committed anything. */
  moved: z.boolean(),
  /** Until when the service has everybody wait (epoch ms); null: it has not. */
  pausedUntilMs: nullable(z.number()),
  /** Of the turns before. */
  before: z.object({ shards: int, bytes: int, replacedNuls: int, durationMs: z.number() }),
  /** What its last run came to; `summary` is null where it could not begin. */
  outcome: nullable(z.object({ summary: nullable(summary), error: nullable(error) })),
})
export type Standing = z.infer<typeof standingSchema>
