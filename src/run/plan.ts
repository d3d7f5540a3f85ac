import type { Pipeline } from '../core/index.ts'
import { requireWritable } from '../disk/index.ts'
import { requireConsent } from './consent.ts'
import { openDataSet, planFor } from './data-set.ts'
import { type Continuation, readOwnCheckpoint } from './open-checkpoint.ts'
import type { RunOptions } from './options.ts'
import { namingPlaces } from './places.ts'
import { readQuerySecrets, requireSendableToken } from './query-secrets.ts'
import { survey } from './survey.ts'

export type PlanReport = {
  readonly partitions: {
    readonly total: number
    readonly done: number
    /** Some pages are in. */
    readonly partial: number
    readonly pending: number
  }
  /** At least one request for each partition that is not done. */
  readonly minRequests: number
  /** What they take at the tier's rate. */
  readonly minSeconds: number
}

/**
 * Says what a run with these options would do; sends nothing and changes nothing. Works while a run is at work.
 * @throws ExportError when such a run could not begin, for whatever reason but another one that is at work
 */
export async function readPlan(
  pipeline: Pipeline,
  options: Continuation & Pick<RunOptions, 'allowPlaintext' | 'readSecret'>,
): Promise<PlanReport> {
  requireConsent(pipeline, options)
  const secrets = await readQuerySecrets(pipeline, options)
  await requireSendableToken(pipeline, options)
  const state = await namingPlaces(pipeline, async () => {
    await requireWritable(pipeline.load.path)
    return readOwnCheckpoint(pipeline, openDataSet(pipeline), secrets, options)
  })
  const plan = planFor(pipeline, options.clock.now(), state)
  const { total, done, begun } = survey(pipeline, plan, state)
  const minRequests = total - done
  const { requestsPerSecond, basicRequestsPerSecond } = pipeline.service
  const rate = pipeline.extract.resource === 'reports' ? basicRequestsPerSecond : requestsPerSecond
  return {
    partitions: { total, done, partial: begun, pending: total - done - begun },
    minRequests,
    minSeconds: minRequests / rate,
  }
}
