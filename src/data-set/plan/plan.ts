import {
  counted,
  countText,
  ExportError,
  getOrInsert,
  isSecondSearch,
  type Measures,
  monthOf,
  type NamedPipeline,
  NOT_MEASURED,
  type Pipeline,
  parseWindow,
  plainError,
  type ResponseTime,
  rulesOf,
  searchesOf,
  type Window,
} from '../../core/index.ts'
import type { Plan, PlannedChain } from '../../pipeline/index.ts'
import { type CheckpointState, type PlanStates, searchesByMonth, type Verdict } from '../../state/index.ts'
import { admitRun } from '../admission.ts'
import { findState, requireSuppression } from '../open/find-state.ts'
import { requireShards } from '../open/look.ts'
import { readyToRun } from '../open/ready-to-run.ts'
import { namingLocations, openStore, requireReachable } from '../open-store.ts'
import type { WriteOptions } from '../options.ts'
import { requireOwnTables } from '../settle/update-tables.ts'
import { type LackingColumns, lackingColumns } from './left-out.ts'
import { countPartitions, planFor } from './plan-state.ts'
import { type Listing, listingOf } from './status.ts'
import { readVerdict } from './verdict.ts'

export type PlanResult = Listing & {
  /** `partial`: with committed rows, or the current ones of chains; `pending`: the others that are not done. */
  readonly partitions: Omit<PlanStates, 'failed'>
  /** At least one request for each chain. */
  readonly minRequests: number
  /** The time for `minRequests` at the tier's rate. */
  readonly minSeconds: number
  /** Estimates by earlier windows of the data set; null: there are none. */
  readonly expectedRequests: number | null
  readonly expectedSeconds: number | null
  /** By `service.rows_per_search`; null also where the endpoint has no quota. */
  readonly expectedSearches: number | null
  /** What a full page costs; null: the endpoint has no quota. */
  readonly searchesAPage: number | null
  readonly pageSize: number
  /** Whether slow responses leave slots idle that parts of long chains could use. */
  readonly isBoundByChains: boolean
  /** Searches that earlier runs have spent in this month. */
  readonly searchesThisMonth: number
  /** Searches left, as the service last reported; null: never. */
  readonly searchesRemaining: number | null
  /** What is exported without some columns of the pipeline; null: nothing is. */
  readonly lacking: LackingColumns | null
  readonly verdict: Verdict
}

/** Plans a run, changes nothing; works during one. @throws ExportError when a run could not begin, but for the lock */
export async function readPlan(
  given: Pipeline,
  options: WriteOptions & { readonly redo?: readonly string[]; readonly allowPlaintext: boolean },
): Promise<PlanResult> {
  const { pipeline } = await readyToRun(given, options, false)
  const state = await namingLocations(pipeline, async () => {
    await requireReachable(pipeline)
    const store = openStore(pipeline)
    await requireOwnTables(pipeline, store, false)
    const found = await findState(store)
    // The next command that changes a data set which is given up removes the rest.
    if (found === null) return null
    const { state } = found
    if (state !== null) admitRun(pipeline, state, options)
    await requireSuppression(store, found)
    await requireShards(store, state)
    return state
  })
  const nowMs = options.clock.now()
  const plan = planFor(pipeline, nowMs, state)
  const { total, done, begun, pruned } = countPartitions(pipeline, plan, state)
  const { chains, divisible, expected } = costOf(plan, pipeline, state)
  const { extract, service } = pipeline
  const rate = requestRate(pipeline)
  const measures = state?.service ?? NOT_MEASURED
  const pageSize = pageSizeOf(pipeline, measures)
  // If responses are slow, each chain has one request in flight.
  const ms = millisecondsAPage(measures.times, pageSize) ?? 0
  const secondsAPage = ms / 1000 / Math.min(extract.concurrency, Math.max(1, chains))
  const isFree =
    rulesOf(extract.resource).reading !== 'search' ||
    measures.reportsSearchesLeft === false ||
    isSecondSearch(service.addresses.search_path)
  return {
    partitions: { total, done, partial: begun, pending: total - done - begun, pruned },
    minRequests: chains,
    minSeconds: chains / rate,
    expectedRequests: expected?.requests ?? null,
    expectedSeconds: expected && expected.requests * Math.max(1 / rate, secondsAPage),
    expectedSearches: isFree || expected === null ? null : expected.searches,
    searchesAPage: isFree ? null : searchesOf(pageSize, service.rowsPerSearch),
    pageSize,
    isBoundByChains: divisible && chains < extract.concurrency && secondsAPage > 1 / rate,
    searchesThisMonth: searchesByMonth(state?.runs ?? []).get(monthOf(nowMs)) ?? 0,
    searchesRemaining: state?.searchesRemaining ?? null,
    lacking: lackingColumns(pipeline, state),
    verdict: await readVerdict(openStore(pipeline), pipeline, state, { atWork: 'perhaps' }),
    ...listingOf(plan, state),
  }
}

type Cost = {
  readonly chains: number
  /** Whether one of them may have enough pages and windows to be divided. */
  readonly divisible: boolean
  /** Of all chains; null: no estimate. */
  readonly expected: { readonly requests: number; readonly searches: number } | null
}

/** A part of a chain costs a request more, which should not matter. */
const MIN_PAGES_A_PART = 20

function costOf(plan: Plan, pipeline: NamedPipeline, state: CheckpointState | null): Cost {
  const rowsIn = forecast(pipeline, state)
  const size = pageSizeOf(pipeline, state?.service ?? NOT_MEASURED)
  let chains = 0
  let divisible = false
  let expected: Cost['expected'] = { requests: 0, searches: 0 }
  for (const chain of plan.chains()) {
    if (chain.kind === 'begun' && chain.wanted === 0) continue
    chains++
    const rows = rowsIn(chain.query.name, rangeOf(chain, state))
    if (rows === null) {
      expected = null
      continue
    }
    const pages = Math.max(1, Math.ceil(rows / size))
    divisible ||= chain.kind === 'new' && chain.windows.count > 1 && pages >= 2 * MIN_PAGES_A_PART
    // Each page costs one search at least.
    const searches = Math.max(pages, searchesOf(rows, pipeline.service.rowsPerSearch))
    expected &&= { requests: expected.requests + pages, searches: expected.searches + searches }
  }
  return { chains, divisible, expected }
}

/** Of a run that stopped at its budget or the quota: with what is left, and in how many runs. */
export function withRest(
  error: ExportError,
  pipeline: NamedPipeline,
  nowMs: number,
  state: CheckpointState,
): ExportError {
  if (error.kind !== 'quota') return error
  const plan = planFor(pipeline, nowMs, state)
  const { total, done } = countPartitions(pipeline, plan, state)
  const { expected } = costOf(plan, pipeline, state)
  const { maxRequests } = pipeline.extract
  const runs = expected === null || maxRequests === null ? 0 : Math.ceil(expected.requests / maxRequests)
  const requests = expected === null ? '' : `, about ${counted(expected.requests, 'request')}`
  const left = `${countText(total - done)} of ${counted(total, 'partition')} left${requests}${runs > 1 ? ` (${counted(runs, 'run')} at this budget)` : ''}`
  const { cause, untilMs } = error
  return new ExportError({ ...plainError(error), what: `${error.what}; ${left}`, cause, untilMs })
}

function pageSizeOf({ extract }: NamedPipeline, { limit }: Measures): number {
  return Math.min(extract.pageSize, limit ?? extract.pageSize)
}

function rangeOf(chain: PlannedChain, state: CheckpointState | null): Window | null {
  if (chain.kind === 'new') return chain.windows.range
  const { windows, watermark } = state!.chains.get(chain.chain)!
  return windows.part(watermark, chain.wanted).range
}

/** Milliseconds that a page of this size takes; null: not measured. */
function millisecondsAPage(times: readonly ResponseTime[], size: number): number | null {
  const sameSize = times.filter(([requested]) => requested === size)
  const sorted = (sameSize.length > 0 ? sameSize : times).map(([, ms]) => ms).sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? null
}

export function requestRate({ extract, service }: Pick<Pipeline, 'extract' | 'service'>): number {
  const isListed = rulesOf(extract.resource).reading === 'list'
  return isListed ? service.basicRequestsPerSecond : service.requestsPerSecond
}

const LAST = 12
const SAMPLE = 1000

const MICROS_A_DAY = 86_400_000_000

/**
 * Estimates the rows of new windows by the median of rows a day in the last windows of the query, or in those of all
 * queries; null: there are none.
 */
function forecast(pipeline: NamedPipeline, state: CheckpointState | null) {
  const rates = new Map<string, number | null>()
  const rateOf = (query: string): number | null => getOrInsert(rates, query, () => rowsADay(state, query))
  const sample = pipeline.extract.queries.slice(0, SAMPLE)
  const common = median(sample.flatMap(({ name }) => rateOf(name) ?? []))
  return (query: string, range: Window | null): number | null => {
    const rate = rateOf(query) ?? common
    return range === null || rate === null ? null : (rate * (range.until - range.from)) / MICROS_A_DAY
  }
}

function rowsADay(state: CheckpointState | null, query: string): number | null {
  const windows = [...(state?.partitions.branches.get(query) ?? [])]
  const done = windows.filter(([, folded]) => folded.state === 'done')
  // Names begin with the beginning of the window, so they sort by time.
  const last = done.sort(([a], [b]) => (a < b ? -1 : 1)).slice(-LAST)
  return median(
    last.flatMap(([name, { rows }]) => {
      const window = parseWindow(name)
      return window === null ? [] : (rows * MICROS_A_DAY) / (window.until - window.from)
    }),
  )
}

function median(values: readonly number[]): number | null {
  if (values.length === 0) return null
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
