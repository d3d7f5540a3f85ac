import { ExportError, type Month, type Store } from '../../core/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  type Fact,
  MANIFEST_PATH,
  partLine,
  type RunStatus,
  readToExtend,
  rewriteCheckpoint,
  SHARED_RUN_PATH,
} from '../../state/index.ts'
import { leaveAtRest } from '../at-rest.ts'
import { leastSearches, statusFor } from '../chains/index.ts'
import { holdDataSet, isWholeExported, planFor, replaceManifest, survey } from '../data-set/index.ts'
import { openSession } from '../session/index.ts'
import { namingPlaces, pathIn } from '../setting/index.ts'
import { lastCompleteMs, type RunSummary } from '../summary.ts'
import type { Bench } from './bench.ts'

/** What is known of a run that many carried out, besides its lines. */
export type SharedEnding = {
  readonly run: string
  readonly submittedAtMs: number
  readonly plannedAtMs: number
  readonly endedAtMs: number
  /** Of spillway. */
  readonly version: string
  readonly retries: number
  /** Sent, by month, the earliest first. */
  readonly months: readonly (readonly [month: Month, requests: number])[]
  readonly searchesRemaining: number | null
  /** What stopped it before its time; null: nothing did. */
  readonly error: ExportError | null
  readonly failedChains: number
  readonly failures: RunSummary['failures']
  readonly reasons: Readonly<Record<string, number>>
  readonly replacedNuls: number
}

/**
 * Makes the end of a run: brings what its chains have on record into the checkpoint of the data set, and leaves that as
 * `run` does. Where chains stand half-way, their state stays where it is, and only the manifest tells what there is.
 * Doing it again comes to the same.
 * @param lines of all chains, those of a chain in their order
 * @throws ExportError `locked` when another worker is at it
 */
export async function endSharedRun(
  { pipeline, secrets, options }: Bench,
  ending: SharedEnding,
  lines: AsyncIterable<string>,
): Promise<{ readonly summary: RunSummary; readonly isAtRest: boolean }> {
  return namingPlaces(pipeline, async () => {
    const { clock, stop, observer } = options
    const { run } = ending
    const warn = (message: string): void => observer.log('warn', message)
    return holdDataSet(pipeline, { clock, stop, warn, sharedRun: run }, async (store) => {
      const { state, counts, isAtRest, status } = await foldRun(
        store,
        ending,
        pipeline.extract.pageSize,
        lines,
      )
      const plan = planFor(pipeline, ending.plannedAtMs, state)
      const whole = isAtRest && isWholeExported(pipeline, plan, ending.plannedAtMs, state)
      if (isAtRest) {
        await rewriteCheckpoint(store, state)
        const session = await openSession(pipeline, store, secrets, options)
        try {
          await leaveAtRest(pipeline, store, { session, plan, whole, end: null }, options)
        } finally {
          await session.close()
        }
      } else await replaceManifest(pipeline, store, state, observer)
      const { total, done, failed } = survey(pipeline, plan, state)
      const record = state.runs.find((each) => each.run === run)
      const summary: RunSummary = {
        pipeline: pipeline.name,
        status,
        partitions: { total, done, failed, pending: total - done - failed },
        rows: record?.rows ?? 0,
        shards: counts.shards,
        bytes: counts.bytes,
        requests: ending.months.reduce((sum, [, requests]) => sum + requests, 0),
        retries: ending.retries,
        quarantined: record?.quarantined ?? 0,
        replacedNuls: ending.replacedNuls,
        repeated: record?.repeated ?? 0,
        searchesRemaining: ending.searchesRemaining,
        durationMs: Math.max(0, Math.round(ending.endedAtMs - ending.submittedAtMs)),
        lastCompleteMs: lastCompleteMs(state),
        manifest: pathIn(pipeline, MANIFEST_PATH),
        error: ending.error,
        failures: ending.failures,
      }
      return { summary, isAtRest }
    })
  })
}

/** Gives a data set back to whoever wants to run there. */
export async function leaveSharedRun({ pipeline, options }: Bench, run: string): Promise<void> {
  const { clock, stop, observer } = options
  const warn = (message: string): void => observer.log('warn', message)
  await holdDataSet(pipeline, { clock, stop, warn, sharedRun: run }, (store) => store.remove(SHARED_RUN_PATH))
}

type FoldedRun = {
  readonly state: CheckpointState
  readonly counts: Counts
  /** Whether no chain stands half-way. */
  readonly isAtRest: boolean
  readonly status: RunStatus
}

/** What the data set's checkpoint comes to with all that is on record of the run; as it is when that is in it already. */
async function foldRun(
  store: Store,
  ending: SharedEnding,
  pageSize: number,
  lines: AsyncIterable<string>,
): Promise<FoldedRun> {
  const folding = await readToExtend(store)
  if (folding === null) {
    throw new ExportError('damaged', 'The checkpoint is gone', CHECKPOINT_PATH, 'Start over with --fresh.')
  }
  const { run, error } = ending
  const { state } = folding
  const isIn = state.runs.some((each) => each.run === run)
  const counts = new Counts()
  const started_at = new Date(ending.submittedAtMs).toISOString()
  if (!isIn) folding.apply({ kind: 'run', run, started_at, version: ending.version })
  let number = 0
  for await (const text of lines) {
    const line = partLine(text, ++number)
    for (const fact of line.kind === 'all' ? line.lines : [line]) counts.add(fact)
    if (!isIn) folding.apply(line)
  }
  const isAtRest = state.chains.size === 0 && state.openShards.size === 0
  const status = error !== null ? statusFor(error) : ending.failedChains > 0 ? 'failed' : 'complete'
  if (isAtRest && !isIn) for (const fact of endOf(ending, status, counts.least(pageSize))) folding.apply(fact)
  return { state, counts, isAtRest, status }
}

function endOf(ending: SharedEnding, status: RunStatus, least: number): Fact[] {
  const { run, months, retries, searchesRemaining, reasons } = ending
  const facts: Fact[] = []
  let before = 0
  for (const [i, [month, requests]] of months.entries()) {
    if (i > 0) facts.push({ kind: 'month', run, month, before })
    before += requests
  }
  facts.push({
    kind: 'end',
    run,
    finished_at: new Date(ending.endedAtMs).toISOString(),
    status,
    requests: before,
    retries,
    least,
    ...(searchesRemaining === null ? {} : { searches_remaining: searchesRemaining }),
    ...(Object.keys(reasons).length === 0 ? {} : { reasons }),
  })
  return facts
}

/** What the lines of a run say that the checkpoint does not keep. */
class Counts {
  shards = 0
  bytes = 0
  readonly #queryOf = new Map<number, string>()
  readonly #items = new Map<string, number>()

  add(fact: Fact): void {
    switch (fact.kind) {
      case 'seal':
        this.shards++
        this.bytes += fact.bytes
        break
      case 'chain':
        this.#queryOf.set(fact.chain, fact.query)
        break
      case 'page': {
        const query = this.#queryOf.get(fact.chain) ?? ''
        let items = this.#items.get(query) ?? 0
        for (const { rows } of fact.pieces ?? []) items += rows
        for (const { items: refused } of fact.quarantine ?? []) items += refused
        this.#items.set(query, items)
        break
      }
    }
  }

  /** The fewest searches that the items could have come with, a query's apart from others'. */
  least(pageSize: number): number {
    return leastSearches(this.#items.values(), pageSize)
  }
}
