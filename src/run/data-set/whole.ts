import { isExportError, type NamedPipeline } from '../../core/index.ts'
import type { Plan } from '../../plan/index.ts'
import { type CheckpointState, holdingsOf, isOver, type RetiredQuery } from '../../state/index.ts'
import { planFor } from './data-set.ts'

/** The pipeline as its file has it, without the flags that have this run ask for something else. */
export function asInFile(pipeline: NamedPipeline): NamedPipeline {
  const { extract } = pipeline
  return extract.whole === null ? pipeline : { ...pipeline, extract: { ...extract, ...extract.whole } }
}

/**
 * Whether everything that the pipeline file plans is exported and can be read: what `_SUCCESS` says. Flags that narrow
 * a run don't count, and neither do queries that the file no longer has, nor what was pruned.
 * @param plan of this run, which is the file's where no flags changed it
 */
export function isWholeExported(
  pipeline: NamedPipeline,
  plan: Plan,
  nowMs: number,
  state: CheckpointState,
): boolean {
  const whole = pipeline.extract.whole === null ? plan : planOfFile(pipeline, nowMs, state)
  if (whole === null) return false
  for (const { key } of whole.partitions()) {
    const record = state.partitions.get(key)
    if (record === undefined || !isOver(record)) return false
  }
  // A crash, a budget or a signal may have left the shard of a folder open that others were still to write to.
  for (const { partitions } of state.openShards.values()) {
    for (const key of partitions) if (state.partitions.get(key)?.state === 'done') return false
  }
  return true
}

/** What the pipeline file plans. @returns null when its windows can't be planned beside those that are half exported */
function planOfFile(pipeline: NamedPipeline, nowMs: number, state: CheckpointState): Plan | null {
  try {
    return planFor(asInFile(pipeline), nowMs, state)
  } catch (error) {
    if (isExportError(error, 'config')) return null
    throw error
  }
}

/** What the pipeline file planned when the last run began: what lies behind that was not requested yet. */
export function planAsOfLastRun(pipeline: NamedPipeline, state: CheckpointState): Plan | null {
  return planOfFile(pipeline, Date.parse(state.runs.at(-1)?.started_at ?? state.header.created_at), state)
}

/** Queries that the data set holds something of and that the pipeline file no longer has, by name. */
export function retiredQueries(pipeline: NamedPipeline, state: CheckpointState): readonly RetiredQuery[] {
  const requested = new Set(asInFile(pipeline).extract.queries.map(({ name }) => name))
  const retired: RetiredQuery[] = []
  for (const query of state.partitions.branches.keys()) {
    const holdings = requested.has(query) ? null : holdingsOf(query, state)
    if (holdings !== null) retired.push(holdings)
  }
  return retired.sort((a, b) => (a.query < b.query ? -1 : 1))
}
