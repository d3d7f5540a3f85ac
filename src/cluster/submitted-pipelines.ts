import { createHash, randomUUID } from 'node:crypto'
import type { Job } from 'bullmq'
import * as z from 'zod'
import { ERROR_KINDS, type Pipeline, type PlainError, RUN_STATUSES } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'
import { type Queue, withTimeout } from './queue.ts'

// What is stored in the queue. Any worker may read it, so each object has a version and is checked when it is read.
// Secrets are stored as the names of their variables.

const VERSION = z.literal(1)
const int = z.int()
const oneOf = z.enum
const nullable = z.nullable
const string = z.string

/** A pipeline as it was submitted. */
const submittedSchema = z.object({
  version: VERSION,
  submission: z.uuid(),
  allowPlaintext: z.boolean(),
  /** Whether the queries are left out of the queue: the worker then reads them from the pipeline file. */
  hidden: z.boolean(),
  /** Path of the pipeline file on the machine that submitted it. */
  file: string(),
  /** Where its keys are in the file, for messages. */
  locations: z.record(z.string(), z.string()),
  /** The content of the file. It is checked like a file when a pipeline is made of it. */
  settings: z.looseObject({ name: string(), extract: z.looseObject({}) }),
})
export type SubmittedPipeline = z.infer<typeof submittedSchema>

/** The job: an organization that has pending pipelines. */
export const jobSchema = z.object({
  version: VERSION,
  organization: string(),
  /** The owner of the job locks data sets under this name. */
  hold: z.uuid(),
})
export type OrganizationJob = z.infer<typeof jobSchema>

const error: z.ZodType<PlainError> = z.object({
  kind: oneOf(ERROR_KINDS),
  what: string(),
  where: string(),
  next: string(),
})
const summary: z.ZodType<Omit<RunSummary, 'error'>> = z.object({
  pipeline: string(),
  status: oneOf(RUN_STATUSES),
  partitions: z.object({ total: int, done: int, failed: int, pending: int }),
  rows: int,
  dataSet: z.object({ rows: int, inShards: int, leftOut: z.array(string()) }),
  shards: int,
  bytes: int,
  requests: int,
  retries: int,
  quarantined: int,
  replacedNuls: int,
  repeated: int,
  forgotten: int,
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

/** The status of a submitted pipeline. */
const statusSchema = z.object({
  submission: z.uuid(),
  state: oneOf(['active', 'waiting', 'done']),
  /** The hold of its last owner. */
  hold: z.uuid(),
  /** Workers that died in succession, with nothing committed in between. */
  deaths: int,
  /** Whether the last worker has committed anything. */
  committedSinceTaken: z.boolean(),
  /** End of the pause that the service demanded (epoch ms of the queue's server); null: none. */
  pausedUntilMs: nullable(z.number()),
  /** Totals of the time slices before. */
  before: z.object({ shards: int, bytes: int, replacedNuls: int, durationMs: z.number() }),
  /** The result of its last run; `summary` is null if the run could not start. */
  outcome: nullable(z.object({ summary: nullable(summary), error: nullable(error) })),
})
export type PipelineStatus = z.infer<typeof statusSchema>

const DAY_S = 86_400
const KEPT_MS = 7 * DAY_S * 1000

/** The id of the job for a data set. It depends on the data set alone. */
export function pipelineJobId({ load }: Pick<Pipeline, 'load'>): string {
  return createHash('sha256').update(load.path).digest('hex').slice(0, 32)
}

/** The status of a submitted pipeline; null: it has not started. */
export function statusOf({ progress, data }: Job): PipelineStatus | null {
  const { data: status } = statusSchema.safeParse(progress)
  return status?.submission === data.submission ? (status ?? null) : null
}

export type Pending = {
  readonly job: Job
  readonly submitted: SubmittedPipeline
  readonly status: PipelineStatus | null
}

/**
 * The pending pipelines of an organization: first those that had started, then in the order of submission. Removes
 * finished ones that are older than `KEPT_MS`.
 * @param unreadable is called with each of another version
 */
export async function pendingOf(
  queue: Queue,
  organization: string,
  unreadable: (job: Job) => void,
): Promise<readonly Pending[]> {
  const found = await withTimeout(queue.pipelinesOf(organization).getJobs(['waiting'], 0, -1, true))
  const pending: Pending[] = []
  for (const job of found) {
    const { data: submitted } = submittedSchema.safeParse(job.data)
    const status = statusOf(job)
    if (status?.state === 'done') {
      if (job.timestamp < Date.now() - KEPT_MS) await job.remove().catch(() => {})
    } else if (submitted === undefined) unreadable(job)
    else pending.push({ job, submitted, status })
  }
  const rank = ({ status }: Pending): number => (status?.state === 'active' ? 0 : 1)
  return pending.sort((a, b) => rank(a) - rank(b))
}

/**
 * Adds a job for an organization. One job of an organization is active at a time, with at most one more waiting behind
 * it; a second one is not added.
 */
export async function wake(queue: Queue, organization: string): Promise<void> {
  const data: OrganizationJob = { version: 1, organization, hold: randomUUID() }
  const id = encodeURIComponent(organization)
  const job = await withTimeout(
    queue.organizations.add(organization, data, {
      deduplication: { id, keepLastIfActive: true },
      removeOnComplete: { age: DAY_S, count: 1000 },
      removeOnFail: { age: 7 * DAY_S, count: 1000 },
    }),
  )
  // A delayed job runs now. The call fails if the job is not delayed.
  await withTimeout(job.promote()).catch(() => {})
}

/** Whether an organization has a job that has not ended. */
export async function isAwake(queue: Queue, organization: string): Promise<boolean> {
  return (
    (await withTimeout(queue.organizations.getDeduplicationJobId(encodeURIComponent(organization)))) !== null
  )
}
