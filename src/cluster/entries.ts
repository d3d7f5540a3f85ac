import { createHash, randomUUID } from 'node:crypto'
import type { Job } from 'bullmq'
import type { Pipeline } from '../core/index.ts'
import { type Entry, entrySchema, type OrganizationJob, type Standing, standingSchema } from './job.ts'
import { answered, type Queue } from './queue.ts'

const DAY_S = 86_400
const KEPT_MS = 7 * DAY_S * 1000

/** One of each data set; submitted again it is the same. */
export function entryId({ load }: Pick<Pipeline, 'load'>): string {
  return createHash('sha256').update(load.path).digest('hex').slice(0, 32)
}

/** Where a submitted pipeline stands; null: nobody has begun with it. */
export function standingOf({ progress, data }: Job): Standing | null {
  const { data: standing } = standingSchema.safeParse(progress)
  return standing?.submission === data.submission ? (standing ?? null) : null
}

export type Pending = { readonly job: Job; readonly entry: Entry; readonly standing: Standing | null }

/**
 * What is to be done for an organization: first what somebody was at, then in the order in which it was submitted. What was
 * done a while ago is forgotten.
 * @param unreadable is told of what another version has put there
 */
export async function pendingOf(
  queue: Queue,
  organization: string,
  unreadable: (job: Job) => void,
): Promise<readonly Pending[]> {
  const found = await answered(queue.pipelinesOf(organization).getJobs(['waiting'], 0, -1, true))
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
 * Sees to it that somebody looks into what there is for an organization, now or once whoever has its job is done with it:
 * there is one job of an organization at a time, and at most one more behind one that is at work.
 */
export async function wake(queue: Queue, organization: string): Promise<void> {
  const data: OrganizationJob = { version: 1, organization, hold: randomUUID() }
  const id = encodeURIComponent(organization)
  const job = await answered(
    queue.organizations.add(organization, data, {
      deduplication: { id, keepLastIfActive: true },
      removeOnComplete: { age: DAY_S, count: 1000 },
      removeOnFail: { age: 7 * DAY_S, count: 1000 },
    }),
  )
  // One that waits for better times has a reason now to look again. It fails where it does not wait.
  await answered(job.promote()).catch(() => {})
}

/** Whether there is a job of an organization that is not at its end. */
export async function isAwake(queue: Queue, organization: string): Promise<boolean> {
  return (
    (await answered(queue.organizations.getDeduplicationJobId(encodeURIComponent(organization)))) !== null
  )
}
