import {
  type ExportError,
  inSnakeCase,
  type Log,
  type PlainError,
  plainError,
  type ServiceFigures,
} from '../core/index.ts'
import { type LackingColumns, lackingColumns, pathIn, sumOfReasons, withLocation } from '../data-set/index.ts'
import {
  type CheckpointState,
  type FoldedRun,
  MANIFEST_PATH,
  type PartitionCounts,
  type RunCounts,
  type RunStatus,
  sumOfPartitions,
  type Verdict,
} from '../state/index.ts'
import type { Ending } from './follow/export-chains.ts'
import type { RunContext } from './follow/run-context.ts'
import type { FailureCause, Tally } from './follow/tally.ts'

/** Why a run is not complete: what stopped it, or the most frequent fault of its partitions; null: it is. */
export function reasonOf(
  error: ExportError | null,
  { causes }: { readonly causes: readonly FailureCause[] },
): PlainError | null {
  if (error !== null) return plainError(error)
  const [cause] = causes
  return cause === undefined ? null : plainError({ ...cause, where: cause.first })
}

/** The result of a run. */
export type RunSummary = RunCounts & {
  readonly pipeline: string
  readonly status: RunStatus
  readonly partitions: PartitionCounts
  /** Of the whole file, where flags narrow the run to a part of it; null: none does. */
  readonly filePartitions: PartitionCounts | null
  /** On the data set, for what the file plans. */
  readonly verdict: Verdict
  /** Rows of all runs, those in sealed shards, and columns that earlier ones were exported without. */
  readonly dataSet: {
    readonly rows: number
    readonly inShards: number
    readonly lacking: LackingColumns | null
  }
  readonly shards: number
  readonly bytes: number
  /** Items that the service repeated within a chain; each was exported once. */
  readonly repeated: number
  /** Items that were dropped because their people were forgotten. */
  readonly forgotten: number
  /** As measured by all runs of the data set. */
  readonly service: ServiceFigures
  readonly durationMs: number
  /** When a run of this data set last ended as `complete`, epoch ms; null: none has. */
  readonly lastCompleteMs: number | null
  /** Absolute path of the manifest, or its address; null when it could not be written. */
  readonly manifest: string | null
  /** What stopped the run early; null: nothing. */
  readonly error: ExportError | null
  /** The first hundred partitions that failed in this run, and why. */
  readonly failures: readonly { readonly partition: string; readonly message: string }[]
  readonly causes: readonly FailureCause[]
}

/** The figures of a run that no commit of a page has. */
type EndFigures = Pick<FoldedRun, keyof Omit<RunCounts, 'rows' | 'quarantined'> | 'reasons'>

/** @param earlier figures of the same run before an interruption */
export function endFigures(earlier: EndFigures, ending: Ending, tally: Tally): EndFigures {
  const { searchesSpent, searchesRemaining } = ending
  return {
    requests: earlier.requests + ending.requests,
    retries: earlier.retries + ending.retries,
    searchesSpent:
      searchesSpent === null ? earlier.searchesSpent : searchesSpent + (earlier.searchesSpent ?? 0),
    searchesRemaining,
    reasons: Object.fromEntries(sumOfReasons([earlier, tally])),
  }
}

/** A run whose end is on record, as far as it can be. */
export type SettledRun = {
  readonly figures: EndFigures
  /** What stopped the run early or prevented the manifest; null: nothing. */
  readonly error: ExportError | null
  readonly status: RunStatus
  /** Of the plan; of feeds, with the windows that rows have come for. */
  readonly partitions: PartitionCounts
  readonly verdict: Verdict
  readonly hasManifest: boolean
}

export function summarize(
  { pipeline, session, tally }: RunContext,
  { figures, error, status, partitions, verdict, hasManifest }: SettledRun,
  durationMs: number,
): RunSummary {
  const { state } = session.journal
  // A run that sends nothing knows what an earlier one was told.
  const searchesRemaining = figures.searchesRemaining ?? state.searchesRemaining
  const run = { ...state.runs.at(-1)!, ...figures, searchesRemaining }
  return {
    pipeline: pipeline.name,
    status,
    ...runCounts(run),
    partitions,
    filePartitions: pipeline.extract.unfiltered === null ? null : verdict.partitions,
    verdict,
    dataSet: {
      rows: sumOfPartitions(state).rows,
      inShards: state.shards.rows,
      lacking: lackingColumns(pipeline, state),
    },
    ...session.sealed,
    repeated: run.repeated,
    forgotten: run.forgotten,
    service: { pageSize: state.service.pageSize },
    durationMs: Math.round(durationMs),
    lastCompleteMs: lastCompleteMs(state),
    manifest: hasManifest ? pathIn(pipeline, MANIFEST_PATH) : null,
    error: error === null ? null : withLocation(pipeline, error),
    failures: tally.failures,
    causes: tally.causes,
  }
}

function lastCompleteMs({ runs }: CheckpointState): number | null {
  const finished = runs.findLast(({ status }) => status === 'complete')?.finished_at
  return finished == null ? null : Date.parse(finished)
}

/** What scripts read as it is. */
const FIGURES = [
  ...(['pipeline', 'status', 'rows', 'requests', 'retries', 'quarantined'] as const),
  ...(['searchesSpent', 'searchesRemaining', 'shards', 'bytes', 'repeated', 'durationMs'] as const),
]

export function figuresJson(summary: Pick<RunSummary, (typeof FIGURES)[number] | 'forgotten'>) {
  const { forgotten } = summary
  const figures = Object.fromEntries(FIGURES.map((name) => [name, summary[name]]))
  return inSnakeCase<string | number | null>({ ...figures, ...(forgotten === 0 ? {} : { forgotten }) })
}

export function logSummary(summary: RunSummary, log: Log): void {
  const { status, partitions, error } = summary
  // Everybody who filters by level has to see that it failed.
  log(status === 'failed' ? 'error' : 'info', 'run finished', {
    event: 'run.finish',
    ...figuresJson(summary),
    ...Object.fromEntries(Object.entries(partitions).map(([name, count]) => [`partitions_${name}`, count])),
    ...inSnakeCase({ ...summary.service }),
    error_kind: error?.kind ?? null,
  })
}

function runCounts(all: RunCounts): RunCounts {
  const { rows, requests, retries, quarantined, searchesSpent, searchesRemaining } = all
  return { rows, requests, retries, quarantined, searchesSpent, searchesRemaining }
}
