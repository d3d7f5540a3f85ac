import {
  type Measures,
  mayCost,
  monthOf,
  type NamedPipeline,
  NOT_MEASURED,
  type Pipeline,
  type Reading,
  type ResponseTime,
  rulesOf,
} from '../core/index.ts'
import {
  type Continuation,
  countPartitions,
  namePipeline,
  namingLocations,
  openDataSet,
  type PartitionFilter,
  type PartitionStatus,
  planFor,
  type QueryStatus,
  readOwnCheckpoint,
  readQuerySecrets,
  readSuppression,
  refuseLinks,
  requireOwnTables,
  requireReachable,
  requireSendableToken,
  statusByQuery,
  statusOfEach,
} from '../data-set/index.ts'
import { isSecondSearch } from '../extract/index.ts'
import { requireEngine } from '../load/index.ts'
import type { Plan, PlannedChain } from '../pipeline/index.ts'
import { type CheckpointState, type PlanStates, searchesByMonth } from '../state/index.ts'
import { requirePolicies } from './admission/require-policies.ts'
import { MIN_PAGES_A_PART } from './chains/division.ts'
import { type Forecast, forecast } from './forecast.ts'
import type { RunOptions } from './options.ts'

export type PlanResult = {
  /** `partial`: with committed rows, or the current ones of chains; `pending`: the others that are not done. */
  readonly partitions: Omit<PlanStates, 'failed'>
  /** At least one request for each chain. */
  readonly minRequests: number
  /** The time for `minRequests` at the tier's rate. */
  readonly minSeconds: number
  /** Estimates by earlier windows of the data set; null: there are none. */
  readonly expectedRequests: number | null
  readonly expectedSeconds: number | null
  /** Estimate by measured costs of pages; null: there are no measurements, or no earlier windows. */
  readonly expectedSearches: number | null
  /**
   * By the two readings of the documentation: one search a request, and one for each 100 rows; null: the number of rows
   * cannot be estimated, or the endpoint has no quota.
   */
  readonly searches: { readonly low: number | null; readonly high: number | null }
  /** What a full page costs, as far as it is known; null: the endpoint has no quota. */
  readonly searchesAPage: { readonly low: number; readonly high: number } | null
  /** The size of most requested pages. */
  readonly pageSize: number
  /** Average estimate of rows for an unfinished partition; null as above. */
  readonly rowsPerPartition: number | null
  /**
   * With `extract.monthly_searches`: calendar months (UTC) that the export takes, this one included, by measured costs
   * of pages, or else by the more expensive reading; without estimates, the minimum. null: no such share.
   */
  readonly months: number | null
  /** Searches that earlier runs have spent in this month. */
  readonly searchesThisMonth: number
  /** Searches left, as the service last reported; null: never. */
  readonly searchesRemaining: number | null
  /** The status of each partition, in the order of export; made on demand. */
  each(): Iterable<PartitionStatus>
  /** Totals of each query with its cost, over the wanted partitions (default: all). */
  queries(isWanted?: PartitionFilter): readonly QueryPlan[]
}

/** The plan of one query. */
type QueryPlan = QueryStatus & {
  /** As of {@link PlanResult}. */
  readonly minRequests: number
  readonly expectedRequests: number | null
}

/**
 * Plans a run with these options; sends nothing and changes nothing. Works during a run.
 * @throws ExportError when such a run could not begin, for any reason but another run that holds the lock
 */
export async function readPlan(
  given: Pipeline,
  options: Continuation & Pick<RunOptions, 'allowPlaintext' | 'readSecret'>,
): Promise<PlanResult> {
  requirePolicies(given, options)
  requireEngine(given.load.format)
  const pipeline = namePipeline(given, options.maskKey)
  const secrets = await readQuerySecrets(pipeline, options, false)
  await requireSendableToken(pipeline, options)
  const state = await namingLocations(pipeline, async () => {
    await requireReachable(pipeline)
    const store = openDataSet(pipeline)
    await refuseLinks(store)
    await requireOwnTables(pipeline, store, false)
    const found = await readOwnCheckpoint(pipeline, store, secrets, options)
    await readSuppression(pipeline, store, found, options)
    return found
  })
  const nowMs = options.clock.now()
  const plan = planFor(pipeline, nowMs, state)
  const { total, done, begun, pruned } = countPartitions(pipeline, plan, state)
  const { requests, parts, expected, rows, searches, high } = sumOf(chainCosts(plan, pipeline, state))
  const month = monthOf(nowMs)
  const searchesThisMonth = searchesByMonth(state?.runs ?? []).get(month) ?? 0
  const { resource, monthlySearches } = pipeline.extract
  const rate = requestRate(pipeline)
  const measures = state?.service ?? NOT_MEASURED
  const pageSize = pageSizeOf(pipeline, measures)
  // If responses are slow, each chain, or part of one, has one request in flight.
  const ms = millisecondsAPage(measures.times, pageSize) ?? 0
  const inFlight = Math.min(pipeline.extract.concurrency, Math.max(1, parts))
  const secondsAPage = Math.max(1 / rate, ms / 1000 / inFlight)
  const isFree =
    rulesOf(resource).reading !== 'search' ||
    measures.reportsSearchesLeft === false ||
    isSecondSearch(pipeline.service.addresses.search_path)
  const dearest = isFree ? null : high
  return {
    partitions: { total, done, partial: begun, pending: total - done - begun, pruned },
    minRequests: requests,
    minSeconds: requests / rate,
    expectedRequests: expected,
    expectedSeconds: expected === null ? null : expected * secondsAPage,
    expectedSearches: isFree ? null : searches,
    searches: { low: isFree ? null : expected, high: dearest },
    searchesAPage: isFree
      ? null
      : { low: mayCost(measures.reading ?? 'request', pageSize), high: mayCost(measures.reading, pageSize) },
    pageSize,
    rowsPerPartition: rows === null || total === done ? null : rows / (total - done),
    months:
      isFree || monthlySearches === null
        ? null
        : monthsNeeded(searches ?? high ?? requests, monthlySearches, searchesThisMonth),
    searchesThisMonth,
    searchesRemaining: state?.searchesRemaining ?? null,
    each: () => statusOfEach(plan, state),
    queries(isWanted = () => true) {
      const costs = new Map<string, Cost>()
      for (const { query, ...cost } of chainCosts(plan, pipeline, state)) {
        costs.set(query, sumOf([costs.get(query) ?? NOTHING, cost]))
      }
      return statusByQuery(plan, state, isWanted).map((status) => {
        const { requests, expected } = costs.get(status.query) ?? NOTHING
        return { ...status, minRequests: requests, expectedRequests: expected }
      })
    },
  }
}

/** The cost of one chain or several; null: no estimate. */
type Cost = {
  readonly requests: number
  /** How many can be followed beside each other, once they are divided. */
  readonly parts: number
  readonly expected: number | null
  readonly rows: number | null
  /** By measured costs of pages. */
  readonly searches: number | null
  /** By the more expensive reading of the documentation. */
  readonly high: number | null
}

const NOTHING: Cost = { requests: 0, parts: 0, expected: 0, rows: 0, searches: 0, high: 0 }

function* chainCosts(
  plan: Plan,
  pipeline: NamedPipeline,
  state: CheckpointState | null,
): Generator<Cost & { readonly query: string }> {
  const seen = forecast(pipeline, state)
  for (const chain of plan.chains()) {
    if (chain.kind === 'begun' && chain.wanted === 0) continue
    const rows = rowsOf(chain, seen, state)
    const query = chain.query.name
    const measures = state?.service ?? NOT_MEASURED
    const size = pageSizeOf(pipeline, measures)
    const expected = rows === null ? null : Math.max(1, Math.ceil(rows / size))
    const high = rows === null || expected === null ? null : Math.max(expected, mayCost(null, rows))
    const searches =
      rows === null || expected === null ? null : expectedCost(measures.reading, { requests: expected, rows })
    const parts = Math.max(1, Math.floor((expected ?? 0) / MIN_PAGES_A_PART))
    yield { query, requests: 1, parts, expected, rows, searches, high }
  }
}

function sumOf(costs: Iterable<Cost>): Cost {
  const sum: { -readonly [K in keyof Cost]: Cost[K] } = { ...NOTHING }
  const plus = (a: number | null, b: number | null): number | null =>
    a === null || b === null ? null : a + b
  for (const { requests, parts, expected, rows, searches, high } of costs) {
    sum.requests += requests
    sum.parts += parts
    sum.expected = plus(sum.expected, expected)
    sum.rows = plus(sum.rows, rows)
    sum.searches = plus(sum.searches, searches)
    sum.high = plus(sum.high, high)
  }
  return sum
}

/** The size of pages, by measurements. */
function pageSizeOf({ extract }: NamedPipeline, { limit }: Measures): number {
  return Math.min(extract.pageSize, limit ?? extract.pageSize)
}

function rowsOf(chain: PlannedChain, seen: Forecast, state: CheckpointState | null): number | null {
  if (chain.kind === 'new') return seen.rowsOf(chain.query.name, chain.windows.range)
  const folded = state?.chains.get(chain.chain)
  if (folded === undefined) return null
  return seen.rowsOf(chain.query.name, folded.windows.part(folded.watermark, chain.wanted).range)
}

/** Number of months that this many searches take: the rest of this month, then whole months. */
export function monthsNeeded(searches: number, share: number, spentThisMonth: number): number {
  if (searches === 0) return 0
  const later = Math.max(0, searches - Math.max(0, share - spentThisMonth))
  return 1 + Math.ceil(later / share)
}

/** Estimated searches of chains with this many requests and rows; null: not measured, and the readings differ. */
export function expectedCost(
  reading: Reading | null,
  { requests, rows }: { readonly requests: number; readonly rows: number },
): number | null {
  const most = Math.max(requests, mayCost(null, rows))
  if (reading === null) return most === requests ? most : null
  return reading === 'request' ? requests : most
}

/** Milliseconds that a page of this size takes; null: not measured. */
function millisecondsAPage(times: readonly ResponseTime[], size: number): number | null {
  const sameSize = times.filter(([requested]) => requested === size)
  const sorted = (sameSize.length > 0 ? sameSize : times).map(([, ms]) => ms).sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? null
}

/** Requests a second for the rows of a pipeline. */
export function requestRate({ extract, service }: Pick<Pipeline, 'extract' | 'service'>): number {
  const isListed = rulesOf(extract.resource).reading === 'list'
  return isListed ? service.basicRequestsPerSecond : service.requestsPerSecond
}
