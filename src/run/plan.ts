import type { NamedPipeline, Pipeline } from '../core/index.ts'
import type { Plan, PlannedChain } from '../plan/index.ts'
import type { CheckpointState } from '../state/index.ts'
import { type Continuation, readOwnCheckpoint, requirePolicies } from './admission/index.ts'
import { type Forecast, forecast, openDataSet, planFor, requireReachable, survey } from './data-set/index.ts'
import type { RunOptions } from './setting/index.ts'
import { namePipeline, namingPlaces, readQuerySecrets, requireSendableToken } from './setting/index.ts'

export type PlanReport = {
  readonly partitions: {
    /** But for those that were pruned. */
    readonly total: number
    readonly done: number
    /** Some of their rows are in, or a chain stands in them. */
    readonly partial: number
    readonly pending: number
    readonly pruned: number
  }
  /** At least one request for each chain. */
  readonly minRequests: number
  /** What they take at the tier's rate. */
  readonly minSeconds: number
  /** What earlier windows of the data set let expect; null where nothing is known to go by. */
  readonly expectedRequests: number | null
  readonly expectedSeconds: number | null
  /** Rows that a partition which is not done is expected to bring, on average; null as above. */
  readonly rowsPerPartition: number | null
  /** Searches that the service said were left, when it last said so; null: never. */
  readonly searchesRemaining: number | null
}

/**
 * Says what a run with these options would do; sends nothing and changes nothing. Works while a run is at work.
 * @throws ExportError when such a run could not begin, for whatever reason but another one that is at work
 */
export async function readPlan(
  given: Pipeline,
  options: Continuation & Pick<RunOptions, 'allowPlaintext' | 'readSecret'>,
): Promise<PlanReport> {
  requirePolicies(given, options)
  const pipeline = namePipeline(given, options.maskKey)
  const secrets = await readQuerySecrets(pipeline, options)
  await requireSendableToken(pipeline, options)
  const state = await namingPlaces(pipeline, async () => {
    await requireReachable(pipeline)
    return readOwnCheckpoint(pipeline, openDataSet(pipeline), secrets, options)
  })
  const plan = planFor(pipeline, options.clock.now(), state)
  const { total, done, begun, pruned } = survey(pipeline, plan, state)
  const { requests, expected, rows } = costOf(plan, pipeline, state)
  const { requestsPerSecond, basicRequestsPerSecond } = pipeline.service
  const rate = pipeline.extract.resource === 'reports' ? basicRequestsPerSecond : requestsPerSecond
  return {
    partitions: { total, done, partial: begun, pending: total - done - begun, pruned },
    minRequests: requests,
    minSeconds: requests / rate,
    expectedRequests: expected,
    expectedSeconds: expected === null ? null : expected / rate,
    rowsPerPartition: rows === null || total === done ? null : rows / (total - done),
    searchesRemaining: state?.searchesRemaining ?? null,
  }
}

type Cost = { readonly requests: number; readonly expected: number | null; readonly rows: number | null }

/** Goes through the chains of a plan once. */
function costOf(plan: Plan, pipeline: NamedPipeline, state: CheckpointState | null): Cost {
  const seen = forecast(pipeline, state)
  let requests = 0
  let expected: number | null = 0
  let rows: number | null = 0
  for (const chain of plan.chains()) {
    if (chain.kind === 'begun' && chain.wanted === 0) continue
    requests++
    const more = rowsOf(chain, seen, state)
    if (more === null || expected === null || rows === null) [expected, rows] = [null, null]
    else {
      rows += more
      expected += Math.max(1, Math.ceil(more / pipeline.extract.pageSize))
    }
  }
  return { requests, expected, rows }
}

function rowsOf(chain: PlannedChain, seen: Forecast, state: CheckpointState | null): number | null {
  if (chain.kind === 'new') return seen.rowsOf(chain.query.name, chain.windows.range)
  const record = state?.chains.get(chain.chain)
  if (record === undefined) return null
  return seen.rowsOf(chain.query.name, record.windows.part(record.passed, chain.wanted).range)
}
