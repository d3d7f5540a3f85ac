import {
  type Aggregates,
  type NamedPipeline,
  type PartitionState,
  type PlanStates,
  RUN_STATUSES,
  windowOfKey,
} from '../../core/index.ts'
import type { Plan } from '../../plan/index.ts'
import { MIN_ROWS } from '../../report/index.ts'
import {
  type CheckpointState,
  exportedOf,
  type FoldedRun,
  hasBegun,
  type Manifest,
  type ManifestShard,
  NEW_RUN,
  settingsDigest,
  splitPath,
  sumOfPartitions,
} from '../../state/index.ts'
import { isComplete, type LeftOut, leftOutOf, leftOutOfManifest } from '../completeness.ts'
import { countPartitions } from '../plan-state.ts'

/** What is known of a data set, from its checkpoint or, if that is missing, from its manifest. */
export type Known = {
  readonly from: 'checkpoint' | 'manifest'
  readonly configDigest: string
  readonly runs: readonly Omit<FoldedRun, 'run' | 'months'>[]
  readonly quarantined: number
  readonly repeated: number
  /** Aggregates of rows; of fewer rows than there are, if some were not counted. */
  readonly aggregates: Aggregates
  readonly failed: readonly { readonly partition: string; readonly kind: string }[]
  /** Whether everything that is planned is exported. */
  readonly complete: boolean
  /** The plan, and how much of it is done; null: not known. */
  readonly progress: PlanProgress | null
  /** The last exact number of rows in a summary page; null: none, or not known. */
  readonly reported: number | null
  readonly leftOut: LeftOut
  /** Queries that began in the last run. */
  readonly newQueries: ReadonlySet<string>
  /** Rows by query and window, made on demand; null: not known. */
  partitions: (() => Iterable<KnownPartition>) | null
  /** Made on demand. */
  shards(): Iterable<KnownShard>
}

/** From the first window that is not pruned to the last, in microseconds; null: there are no windows. */
type PlanProgress = Omit<PlanStates, 'pruned'> & {
  readonly span: { readonly from: number; readonly until: number } | null
}

export type KnownPartition = {
  readonly query: string
  readonly window: string
  readonly rows: number
  /** Rows of each of its files, if one has few of them; absent: none has, or files are shared. */
  readonly files?: readonly number[] | undefined
  readonly state: Exclude<PartitionState, 'pruned'>
}

export type KnownShard = Readonly<Pick<ManifestShard, 'path' | 'rows' | 'bytes' | 'sha256'>>

/**
 * @param aggregates from the state, or counted again
 * @param plan of the pipeline file; null: its windows would cut partly exported ones
 * @param isMarked whether the data set has `_SUCCESS`
 */
export function knownFromState(
  pipeline: NamedPipeline,
  state: CheckpointState,
  aggregates: Aggregates,
  plan: Plan | null,
  isMarked: boolean,
): Known {
  const failed: { partition: string; kind: string }[] = []
  for (const [partition, folded] of state.partitions) {
    if (folded.state === 'failed') failed.push({ partition, kind: folded.error?.kind ?? 'unknown' })
  }
  const { quarantined, repeated } = sumOfPartitions(state)
  const progress = plan === null ? null : progressOf(pipeline, plan, state)
  return {
    from: 'checkpoint',
    configDigest: settingsDigest(state.header.settings),
    runs: state.runs,
    quarantined,
    repeated,
    aggregates,
    failed,
    complete: isComplete(isMarked, progress),
    progress,
    reported: state.reported,
    leftOut: leftOutOf(pipeline, state),
    newQueries: state.newQueries,
    *partitions() {
      const files = filesOfSmallShards(state)
      for (const [query, windows] of state.partitions.branches) {
        for (const [window, folded] of windows) {
          const { state, rows } = exportedOf(folded)
          if (state === 'pruned') continue
          if (hasBegun(exportedOf(folded)) || state === 'failed')
            yield { query, window, rows, state, files: files.get(`${query}/${window}`) }
        }
      }
      for (const { key, query } of plan?.partitions() ?? []) {
        const window = windowOfKey(key)
        const folded = state.partitions.branches.get(query.name)?.get(window)
        if (folded === undefined || (folded.state === 'partial' && !hasBegun(exportedOf(folded))))
          yield { query: query.name, window, rows: 0, state: 'pending' }
      }
    },
    shards: () => state.shards,
  }
}

/** The rows of the files of each partition that has more than one and a small one among them. */
function filesOfSmallShards({ shards }: CheckpointState): ReadonlyMap<string, readonly number[]> {
  const files = new Map<string, number[]>()
  for (const { rows, partitions } of shards)
    if (partitions.length === 1 && rows > 0 && rows < MIN_ROWS) files.set(partitions[0]!, [])
  if (files.size === 0) return files
  for (const { rows, partitions } of shards) if (rows > 0) files.get(partitions[0]!)?.push(rows)
  return files
}

function progressOf(pipeline: NamedPipeline, plan: Plan, state: CheckpointState): PlanProgress {
  let [from, until] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { key, window } of plan.partitions()) {
    if (window === null || state.partitions.get(key)?.state === 'pruned') continue
    from = Math.min(from, window.from)
    until = Math.max(until, window.until)
  }
  const span = from < until ? { from, until } : null
  const { total, done, failed, partial, pending } = countPartitions(pipeline, plan, state, exportedOf)
  return { total, done, failed, partial, pending, span }
}

/** @param aggregates counted from the files: the manifest has none */
export function knownFromManifest(
  pipeline: NamedPipeline,
  manifest: Manifest,
  aggregates: Aggregates,
  isMarked: boolean,
): Known {
  const { shards, totals, runs, config_digest } = manifest
  const hasOnePartitionEach = shards.every(({ partitions }) => partitions.length === 1)
  return {
    from: 'manifest',
    configDigest: config_digest,
    runs: runs.map(({ status, ...run }) => ({
      ...NEW_RUN,
      ...run,
      status: RUN_STATUSES.find((known) => known === status) ?? null,
    })),
    quarantined: totals.quarantined,
    repeated: totals.repeated,
    aggregates,
    failed: [],
    complete: isMarked,
    progress: null,
    reported: null,
    leftOut: leftOutOfManifest(pipeline, manifest),
    newQueries: new Set(),
    partitions: hasOnePartitionEach
      ? function* () {
          for (const { partitions, rows } of shards) {
            const [query, window] = splitPath(partitions[0]!)
            yield { query, window, rows, state: 'done' }
          }
        }
      : null,
    shards: () => shards,
  }
}
