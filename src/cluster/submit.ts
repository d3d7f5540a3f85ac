import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type Clock,
  ExportError,
  fromPlainError,
  hidesIdentity,
  isExportError,
  type Pipeline,
  repeatsSecret,
} from '../core/index.ts'
import { type RunOptions, type RunSummary, testToken } from '../run/index.ts'
import { entryId, isAwake, standingOf, wake } from './entries.ts'
import type { Entry, Standing } from './job.ts'
import { answered, type Queue } from './queue.ts'

export type Submission = {
  readonly organization: string
  readonly run: string
  readonly entry: string
  /** `there`: the same was submitted before, and is not done yet. */
  readonly how: 'submitted' | 'there'
}

/**
 * Puts a pipeline among what is to be done for its organization. What is there already is not put there twice; another
 * version of it takes its place.
 * @throws ExportError `config` when it can't be told to a queue; `target` when that does not answer
 */
export async function submitPipeline(
  given: Pipeline,
  /** What its file says. */
  settings: Entry['settings'],
  queue: Queue,
  options: RunOptions,
): Promise<Submission> {
  const organization = await organizationOf(given, options)
  const hidden = given.extract.queries.some((query) => hidesIdentity(query, given.transform.identity))
  const { queries, ...extract } = settings.extract
  const data: Entry = {
    version: 1,
    submission: randomUUID(),
    allowPlaintext: options.allowPlaintext,
    hidden,
    file: given.file,
    settings: hidden ? { ...settings, extract } : settings,
  }
  if (repeatsSecret(JSON.stringify(data.settings), 'long')) {
    throw new ExportError(
      'config',
      'The pipeline repeats a secret, which must not lie in a queue',
      given.file,
      'Take it out.',
    )
  }
  const entry = entryId(given)
  const pipelines = queue.pipelinesOf(organization)
  await answered(pipelines.add(given.name, data, { jobId: entry }))
  const found = await answered(pipelines.getJob(entry))
  const there = found?.data as Entry | undefined
  let submission = data.submission
  if (found !== undefined && there !== undefined && there.submission !== submission) {
    const isPending = standingOf(found)?.state !== 'done'
    if (isPending && isDeepStrictEqual({ ...there, submission }, asStored(data)))
      submission = there.submission
    else await answered(found.updateData(data))
  }
  await wake(queue, organization)
  return { organization, entry, run: submission, how: submission === data.submission ? 'submitted' : 'there' }
}

function asStored(data: Entry): unknown {
  return JSON.parse(JSON.stringify(data))
}

/**
 * Whose pace and quota a pipeline shares: the name that the file gives, or what the service says of the token; where
 * neither tells, everybody at that address is taken for one.
 */
async function organizationOf({ service }: Pipeline, options: RunOptions): Promise<string> {
  if (service.organization !== null) return service.organization
  const { clock, readSecret, stop, observer } = options
  const { host } = new URL(service.baseUrl)
  try {
    const { info } = await testToken(service, { clock, readSecret, stop, log: observer.log })
    if (info?.organizationId != null) return `${host}/organization-${info.organizationId}`
  } catch (error) {
    // A machine that submits need not have the token.
    if (!isExportError(error, 'config', 'transient', 'refused', 'data')) throw error
  }
  observer.log('info', 'nothing tells which organization this is; it shares the pace of all at its address', {
    organization: host,
  })
  return host
}

export type FollowOptions = {
  readonly clock: Clock
  /** Ends the wait; workers go on. */
  readonly stop: AbortSignal
  /** Called when no worker is there. */
  readonly onAlone: () => void
}

const LOOK_MS = 500
/** How long nobody may be meant to do it, before it is taken for lost. */
const LOST_LOOKS = 20

/**
 * Waits for the end of a submission, also while the queue is away.
 * @throws ExportError as its run did where that could not begin; `target` when it is in the queue no more; `interrupted`
 */
export async function followSubmission(
  { organization, entry }: Submission,
  queue: Queue,
  { clock, stop, onAlone }: FollowOptions,
): Promise<RunSummary> {
  let lost = 0
  for (let looks = 0; ; looks++) {
    let outcome: Standing['outcome'] = null
    try {
      const job = await answered(queue.pipelinesOf(organization).getJob(entry))
      const standing = job === undefined ? null : standingOf(job)
      outcome = standing?.outcome ?? null
      lost = job !== undefined && (await isAwake(queue, organization)) ? 0 : lost + 1
      if (looks === 4 && standing === null && (await answered(queue.organizations.getWorkersCount())) === 0)
        onAlone()
    } catch (error) {
      // It is away; it comes back.
      if (!isExportError(error, 'target')) throw error
    }
    if (outcome !== null) {
      const error = outcome.error === null ? null : fromPlainError(outcome.error)
      if (outcome.summary === null && error !== null) throw error
      if (outcome.summary !== null) return { ...outcome.summary, error }
    }
    if (lost > LOST_LOOKS) {
      throw new ExportError(
        'target',
        'The job is not in the queue any more',
        queue.label,
        'Submit it again: it goes on from where it stands.',
      )
    }
    try {
      await clock.sleep(LOOK_MS, stop)
    } catch {
      throw new ExportError(
        'interrupted',
        'Nobody waits for it any more; workers go on with it',
        entry,
        'Submit it again with --wait to see its end.',
      )
    }
  }
}
