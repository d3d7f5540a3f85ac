import {
  type ExportError,
  formatInstant,
  getOrInsert,
  isExportError,
  monthOf,
  type NamedPipeline,
  nullIf,
  numberOf,
  type Pipeline,
  partitionKey,
  type ServiceFigures,
  type Store,
} from '../../core/index.ts'
import { ago, type Plan } from '../../pipeline/index.ts'
import {
  type CheckpointState,
  type Holder,
  MANIFEST_PATH,
  NO_PARTITIONS,
  NO_SUMS,
  type PartitionState,
  type PartitionStates,
  type PartitionSums,
  presentOf,
  type RetiredQuery,
  readHolder,
  searchesByMonth,
  splitPath,
  sumOfPartitions,
  type Verdict,
} from '../../state/index.ts'
import { manySmallShards } from '../commands/compact.ts'
import { oldPartitions } from '../commands/prune.ts'
import { tablesBehind } from '../commands/warehouse/loaded.ts'
import type { DataSet } from '../data-set.ts'
import { requireShards } from '../open/look.ts'
import { nothingExported, probe, withLocation } from '../open-store.ts'
import { withNames } from '../queries.ts'
import { isSignatureStale } from '../settle/replace-manifest.ts'
import { isSummaryPageBehind } from '../settle/summary-page.ts'
import { lackingColumns, lackingText } from './left-out.ts'
import { countPartitions, planFor, planOfFile, retiredQueries } from './plan-state.ts'
import { readVerdict } from './verdict.ts'

export type StatusResult = Listing & {
  /** Queries that the pipeline file no longer has; their shards stay. */
  readonly retired: readonly RetiredQuery[]
  readonly totals: PartitionStates &
    PartitionSums & {
      /** Of all runs, also those of which no page came. */
      readonly requests: number
      /** Without pruned partitions. */
      readonly partitions: number
      /** Partitions that are exported again, and whose former shards stay until then. */
      readonly redo: number
      readonly shards: number
      readonly bytes: number
      readonly openShards: number
      /** Quota that runs have spent; null: the service never reported it. */
      readonly searchesSpent: number | null
    }
  readonly service: ServiceFigures
  /** Searches left, as the service last reported; null: never. */
  readonly searchesRemaining: number | null
  readonly searchesThisMonth: number
  readonly runs: CheckpointState['runs']
  readonly verdict: Verdict
  /** Who is at work on the data set; null: nobody, as far as this machine can know. */
  readonly holder: Holder | null
  /** What somebody should see to, a sentence each. */
  readonly overdue: readonly string[]
}

/** Also during a run. @throws ExportError `damaged` or `config`: the checkpoint is lost, or the key missing or another */
export async function readStatus(dataSet: DataSet, nowMs: number): Promise<StatusResult> {
  const { pipeline: given, planned, invalid, store } = dataSet
  const state = await dataSet.named(async () => dataSet.known())
  const pipeline = withNames(planned)
  // Names that depend on a mask key are known once something is exported.
  if (pipeline === null) throw nothingExported(given)
  const plan = planFor(pipeline, nowMs, state)
  const holder = await readHolder(store, nowMs).catch(nullIf('damaged'))
  const { total, done, partial, failed, pending, pruned } = countPartitions(pipeline, plan, state)
  const redo = state?.redo.partitions.size ?? 0
  const isHeld = holder !== null && !holder.isLate
  const fault = invalid ?? (state === null ? null : await obstacleTo(given, store, state, isHeld))
  const verdict = await readVerdict(store, pipeline, state, { fault, atWork: isHeld })
  return {
    ...listingOf(plan, state),
    retired: state === null ? [] : retiredQueries(pipeline, state),
    totals: { partitions: total, done, partial, failed, pending, pruned, redo, ...sums(state) },
    service: { pageSize: state?.service.pageSize ?? null },
    searchesRemaining: state?.searchesRemaining ?? null,
    searchesThisMonth: searchesByMonth(state?.runs ?? []).get(monthOf(nowMs)) ?? 0,
    runs: state?.runs ?? [],
    verdict,
    holder,
    overdue:
      state === null
        ? []
        : [
            ...sinceLastRun(plan, pipeline, state, isHeld),
            ...overdueIn(state, pipeline, nowMs),
            ...(await behindManifest(store, isHeld)),
          ],
  }
}

/** What a start would meet now, as far as a look shows it; where a run has left no end, a write may tell why. */
async function obstacleTo(
  pipeline: Pipeline,
  store: Store,
  state: CheckpointState,
  isHeld: boolean,
): Promise<ExportError | null> {
  if (isHeld) return null
  try {
    await requireShards(store, state)
    if (state.runs.at(-1)?.finished_at === null) await probe(pipeline)
    return null
  } catch (error) {
    if (!isExportError(error)) throw error
    return withLocation(pipeline, error)
  }
}

function sinceLastRun(
  plan: Plan,
  pipeline: NamedPipeline,
  state: CheckpointState,
  isHeld: boolean,
): readonly string[] {
  const then = planOfFile(pipeline, state)
  if (then === null || isHeld) return []
  const known = new Set(Array.from(then.partitions(), ({ key }) => key))
  let more = 0
  for (const { key } of plan.partitions()) if (!known.has(key)) more++
  return more === 0 ? [] : [`${numberOf(more, 'partition')} came since the last run: see \`run\``]
}

function overdueIn(state: CheckpointState, pipeline: NamedPipeline, nowMs: number): readonly string[] {
  const { keep } = pipeline.load
  const old = keep === null ? 0 : oldPartitions(state, ago(keep, nowMs)).removed.length
  const small = manySmallShards(state, pipeline)
  const lacking = lackingColumns(pipeline, state)
  return [
    ...(old === 0 ? [] : [`${numberOf(old, 'partition')} older than load.keep: see \`prune\``]),
    ...(small === null ? [] : [small]),
    ...(lacking === null ? [] : [lackingText(lacking)]),
  ]
}

/** What was made of another manifest than the present one. A run makes the page anew at its end. */
async function behindManifest(store: Store, isHeld: boolean): Promise<readonly string[]> {
  const manifest = await store.read(MANIFEST_PATH)
  if (manifest === null) return []
  const isPageBehind = !isHeld && (await isSummaryPageBehind(store, manifest))
  return [
    ...((await isSignatureStale(store)) ? ['the data set has changed since it was signed: see `sign`'] : []),
    ...(await tablesBehind(store, manifest)),
    ...(isPageBehind ? ['the summary page is not that of the data set as it is now: see `summary`'] : []),
  ]
}

/** What is told of the partitions of a plan; made on demand. */
export type Listing = {
  /** In the order of the plan. */
  readonly each: () => Iterable<PartitionStatus>
  /** Totals of each query, over the wanted partitions (default: all). */
  readonly queries: (isWanted?: PartitionFilter) => readonly QueryStatus[]
}

export function listingOf(plan: Plan, state: CheckpointState | null): Listing {
  const each = () => statusOfEach(plan, state)
  return { each, queries: (isWanted = () => true) => statusByQuery(each(), isWanted) }
}

function* statusOfEach(plan: Plan, state: CheckpointState | null): Generator<PartitionStatus> {
  const nextOf = new Map<string, string | null>()
  for (const { query, windows, watermark, next } of state?.chains.values() ?? []) {
    nextOf.set(partitionKey(query, windows.at(watermark)), next)
  }
  for (const { key, query, window } of plan.partitions()) {
    const folded = state === null ? undefined : presentOf(state, key)
    yield {
      key,
      query: query.name,
      window:
        window === null ? null : { from: formatInstant(window.from), until: formatInstant(window.until) },
      state: folded?.state ?? 'pending',
      rows: state?.partitions.get(key)?.rows ?? 0,
      requests: folded?.requests ?? 0,
      repeated: folded?.repeated ?? 0,
      next: nextOf.get(key) ?? null,
      error: folded?.error?.message ?? null,
      redo: state?.redo.partitions.has(key) ?? false,
    }
  }
}

function sums(state: CheckpointState | null) {
  if (state === null)
    return { ...NO_SUMS, requests: 0, shards: 0, bytes: 0, openShards: 0, searchesSpent: null }
  let requests = 0
  let searchesSpent: number | null = null
  for (const run of state.runs) {
    requests += run.requests
    if (run.searchesSpent !== null) searchesSpent = (searchesSpent ?? 0) + run.searchesSpent
  }
  let bytes = 0
  for (const shard of state.shards) bytes += shard.bytes
  const [shards, openShards] = [state.shards.length, state.openShards.size]
  return { ...sumOfPartitions(state), requests, shards, bytes, openShards, searchesSpent }
}

export type QueryStatus = PartitionStates & {
  /** `domain.acme.com`, as in folder names. */
  readonly query: string
  readonly partitions: number
  /** Committed rows, those in open shards too. */
  readonly rows: number
  readonly requests: number
  /** The last failed partition: its window and error. */
  readonly error: { readonly window: string; readonly message: string } | null
}

export type PartitionFilter = (query: string, state: PartitionState) => boolean

function statusByQuery(each: Iterable<PartitionStatus>, isWanted: PartitionFilter): readonly QueryStatus[] {
  const found = new Map<string, { -readonly [K in keyof QueryStatus]: QueryStatus[K] }>()
  for (const { key, query, state: where, rows, requests, error } of each) {
    if (!isWanted(query, where)) continue
    const sum = getOrInsert(found, query, () => ({ ...NOTHING, query }))
    sum.partitions++
    sum[where]++
    sum.rows += rows
    sum.requests += requests
    if (error !== null) sum.error = { window: splitPath(key)[1], message: error }
  }
  return [...found.values()]
}

const NOTHING = { partitions: 0, ...NO_PARTITIONS, rows: 0, requests: 0, error: null }

/** The status of one partition; the names are those of `status --json`. */
export type PartitionStatus = {
  readonly key: string
  readonly query: string
  readonly window: { readonly from: string; readonly until: string } | null
  readonly state: PartitionState
  readonly rows: number
  /** Requests of pages that began in it. */
  readonly requests: number
  /** Items that the service repeated within the chain. */
  readonly repeated: number
  /** The cursor of the chain of which it is the current partition. */
  readonly next: string | null
  readonly error: string | null
  /** Whether it is exported again. Until it is replaced, `rows` are its former ones, which stay. */
  readonly redo: boolean
}
