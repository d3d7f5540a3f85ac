import { createHash, randomUUID } from 'node:crypto'
import type { Job } from 'bullmq'
import * as z from 'zod'
import type { Pipeline, PlainError } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'
import { type Queue, withTimeout } from './queue.ts'

// Stored are names of work, checked when read: who writes to the queue can only name files that workers have.

const VERSION = z.literal(1)

const submittedSchema = z.object({
  version: VERSION,
  submission: z.uuid(),
  allowPlaintext: z.boolean(),
  name: z.string(),
  file: z.object({ path: z.string(), sha256: z.string() }),
})
export type SubmittedPipeline = z.infer<typeof submittedSchema>

/** The job: an organization that has pending pipelines. */
export const jobSchema = z.object({
  version: VERSION,
  organization: z.string(),
  /** The owner of the job locks data sets under this name. */
  hold: z.uuid(),
})
export type OrganizationJob = z.infer<typeof jobSchema>

const statusSchema = z.object({
  submission: z.uuid(),
  state: z.enum(['active', 'waiting', 'done']),
  /** The worker that could not take it up, and why; absent: none has left it. */
  left: z.object({ worker: z.string(), path: z.string(), why: z.string() }).optional(),
  /** The hold of its last owner. */
  hold: z.uuid(),
  /** End of the pause that the service demanded (epoch ms of the queue's server); null: none. */
  pausedUntilMs: z.number().nullable(),
  /** Totals of the time slices before. */
  before: z.object({ shards: z.int(), bytes: z.int(), durationMs: z.number() }),
  /** The result of its last run. `submit` prints it and nothing depends on it. */
  outcome: z.custom<Outcome>((value) => typeof value === 'object').nullable(),
})
export type PipelineStatus = z.infer<typeof statusSchema>

/** `summary` is null if the run could not start. */
export type Outcome = {
  readonly summary: Omit<RunSummary, 'error'> | null
  readonly error: PlainError | null
}

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

/** In the order of submission; removes old finished ones. @param unreadable gets those of other versions */
export async function pendingOf(
  queue: Queue,
  organization: string,
  unreadable: (job: Job) => unknown,
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
  return pending
}

/** One job of an organization is active at a time, and at most one more waits: a second one is not added. */
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
