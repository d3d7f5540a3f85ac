import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Clock, ExportError, hidesQueries, isExportError, type Pipeline } from '../core/index.ts'
import { type RunOptions, type RunSummary, testToken } from '../run/index.ts'
import { type Queue, withTimeout } from './queue.ts'
import {
  isAwake,
  type PipelineStatus,
  pipelineJobId,
  type SubmittedPipeline,
  statusOf,
  wake,
} from './submitted-pipelines.ts'

export type Submission = {
  readonly organization: string
  readonly run: string
  readonly job: string
  /** `there`: the same pipeline is already pending. */
  readonly how: 'submitted' | 'there'
}

/**
 * A pending one of the same file stays, one of another file, or of the file as it was, is replaced.
 * @param turn resolves when those before it are in the queue: pipelines run in this order
 * @throws ExportError `target` when the queue does not respond
 */
export async function submitPipeline(
  given: Pipeline,
  file: SubmittedPipeline['file'],
  queue: Queue,
  options: RunOptions,
  turn: Promise<unknown> = Promise.resolve(),
): Promise<Submission> {
  const organization = await organizationOf(given, options)
  await turn
  const { allowPlaintext } = options
  const data = { version: 1, submission: randomUUID(), allowPlaintext, name: given.name, file } as const
  const job = pipelineJobId(given)
  const pipelines = queue.pipelinesOf(organization)
  await withTimeout(pipelines.add(given.name, data, { jobId: job }))
  const found = await withTimeout(pipelines.getJob(job))
  const there = found?.data as SubmittedPipeline | undefined
  let submission: string = data.submission
  if (found !== undefined && there !== undefined && there.submission !== submission) {
    const state = statusOf(found)?.state ?? null
    if (state !== 'done' && isDeepStrictEqual({ ...there, submission }, data)) submission = there.submission
    else if (state === 'active' || state === 'waiting') await withTimeout(found.updateData(data))
    else {
      // Its place is that of the former submission.
      await withTimeout(found.remove())
      await withTimeout(pipelines.add(given.name, data, { jobId: job }))
    }
  }
  await wake(queue, organization)
  return { organization, job, run: submission, how: submission === data.submission ? 'submitted' : 'there' }
}

/** Pipelines of an organization share its limits: where none is known, all at the address are one. */
async function organizationOf(pipeline: Pipeline, options: RunOptions): Promise<string> {
  const { service } = pipeline
  if (service.organization !== null) return service.organization
  const { clock, readSecret, stop, onLog } = options
  const { host } = new URL(service.baseUrl)
  try {
    const hidesTexts = hidesQueries(pipeline)
    const { info } = await testToken(service, { clock, readSecret, stop, log: onLog, hidesTexts })
    if (info?.organizationId != null) return `${host}/organization-${info.organizationId}`
  } catch (error) {
    // The submitting machine may not have the token.
    if (!isExportError(error, 'config', 'transient', 'refused', 'data')) throw error
  }
  onLog('info', 'the organization is not known; it shares the rate limit of all at its address', {
    organization: host,
  })
  return host
}

type FollowOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  readonly onNoWorker: () => void
  /** Called when a worker has left it to others. */
  readonly onLeft: (left: NonNullable<PipelineStatus['left']>) => void
}

const POLL_MS = 500
/** Polls in a row without a job, after which the submission is lost. */
const MAX_LOST_POLLS = 20

/** @throws ExportError that of a run that could not start; `target`: the queue has lost it; `interrupted` */
export async function followSubmission(
  { organization, job: id }: Submission,
  queue: Queue,
  { clock, stop, onNoWorker, onLeft }: FollowOptions,
): Promise<RunSummary> {
  let lost = 0
  const told = new Set<string>()
  for (let polls = 0; ; polls++) {
    let outcome: PipelineStatus['outcome'] = null
    try {
      const job = await withTimeout(queue.pipelinesOf(organization).getJob(id))
      const status = job === undefined ? null : statusOf(job)
      outcome = status?.outcome ?? null
      const left = status?.left
      if (left !== undefined && !told.has(left.worker)) {
        told.add(left.worker)
        onLeft(left)
      }
      lost = job !== undefined && (await isAwake(queue, organization)) ? 0 : lost + 1
      if (polls === 4 && status === null && (await withTimeout(queue.organizations.getWorkersCount())) === 0)
        onNoWorker()
    } catch (error) {
      // The queue does not respond. The next poll tries again.
      if (!isExportError(error, 'target')) throw error
    }
    if (outcome !== null) {
      const error = outcome.error === null ? null : new ExportError(outcome.error)
      if (outcome.summary === null && error !== null) throw error
      if (outcome.summary !== null) return { ...outcome.summary, error }
    }
    if (lost > MAX_LOST_POLLS) {
      throw new ExportError({
        kind: 'target',
        what: 'The job is not in the queue any more: the queue has lost it, or too many workers died with it',
        where: queue.label,
        next: 'Submit it again: it resumes from its checkpoint.',
      })
    }
    try {
      await clock.sleep(POLL_MS, stop)
    } catch {
      throw new ExportError({
        kind: 'interrupted',
        what: 'The wait was stopped; workers continue the job',
        where: id,
        next: 'Submit it again with --wait to see its end.',
      })
    }
  }
}
