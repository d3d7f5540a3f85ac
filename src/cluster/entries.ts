import { createHash, randomUUID } from 'node:crypto'
import type { Job } from 'bullmq'
import type { Pipeline } from '../core/index.ts'
import { type Entry, entrySchema, type OrganizationJob, type Standing, standingSchema } from './job.ts'
import { type Queue, withTimeout } from './queue.ts'

const DAY_S = 86_400
const KEPT_MS = 7 * DAY_S * 1000

/** The id of a data set's entry. It depends on the data set alone. */
export function entryId({ load }: Pick<Pipeline, 'load'>): string {
  return createHash('sha256').update(load.path).digest('hex').slice(0, 32)
}

/** The standing of a submitted pipeline; null: it has not started. */
export function standingOf({ progress, data }: Job): Standing | null {
  const { data: standing } = standingSchema.safeParse(progress)
  return standing?.submission === data.submission ? (standing ?? null) : null
}

export type Pending = { readonly job: Job; readonly entry: Entry; readonly standing: Standing | null }

/**
 * The pending pipelines of an organization: first those that had started, then in the order of submission. Removes
 * finished entries that are older than `KEPT_MS`.
 * @param unreadable is called with each entry of another version
 */
export async function pendingOf(
  queue: Queue,
  organization: string,
  unreadable: (job: Job) => void,
): Promise<readonly Pending[]> {
  const found = await withTimeout(queue.pipelinesOf(organization).getJobs(['waiting'], 0, -1, true))
  const pending: Pending[] = []
  for (const job of found) {
    const { data: entry } = entrySchema.safeParse(job.data)
    const standing = standingOf(job)
    if (standing?.state === 'done') {
      if (job.timestamp < Date.now() - KEPT_MS) await job.remove().catch(() => {})
    } else if (entry === undefined) unreadable(job)
    else pending.push({ job, entry, standing })
  }
  const rank = ({ standing }: Pending): number => (standing?.state === 'active' ? 0 : 1)
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
