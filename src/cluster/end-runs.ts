import { type Clock, fromPlainError, isExportError, type PlainError } from '../core/index.ts'
import {
  type Bench,
  endSharedRun,
  leaveSharedRun,
  type RunObserver,
  type SharedEnding,
} from '../run/index.ts'
import type { Database, Row } from './database.ts'
import { linesOf } from './lines-of.ts'
import { outcomeJson } from './outcome.ts'
import type { Definition } from './submit.ts'

export type Desk = {
  readonly database: Database
  readonly clock: Clock
  readonly version: string
  readonly log: RunObserver['log']
  readonly worker: string
  /** Runs that this worker can't work for. */
  readonly unfit: readonly string[]
}

/**
 * Makes the end of a run that nothing is left to do for, or whose worker died while it was at that.
 * @returns whether there was one
 */
export async function endRuns(desk: Desk, benchOf: (run: string) => Promise<Bench | null>): Promise<boolean> {
  const { database, worker, unfit, log } = desk
  const [row] = await database.query(CLAIM, [worker, unfit])
  if (row === undefined) return false
  const run = String(row.run)
  try {
    const bench = await benchOf(run)
    if (bench === null) {
      await putBack(desk, run)
      return false
    }
    await endRun(desk, row, bench)
  } catch (error) {
    if (!isExportError(error)) throw error
    log('warn', `the end of a run could not be made, and is tried again: ${error.message}`, { run })
    await putBack(desk, run)
    return false
  }
  return true
}

const CLAIM = `
UPDATE runs SET status = 'ending', finisher = $1 WHERE run = (
  SELECT run FROM runs
  WHERE run <> ALL ($2) AND (
    (status = 'active' AND active = 0 AND (waiting = 0 OR halt IS NOT NULL))
    OR (status = 'ending' AND (finisher IS NULL OR NOT EXISTS (
      SELECT 1 FROM workers WHERE worker = finisher AND seen_at > clock_timestamp() - interval '15 seconds')))
  )
  ORDER BY submitted_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING run, definition, organization, halt, retries, failed, written, outcome,
  extract(epoch FROM submitted_at)::float8 * 1000 AS submitted_ms,
  extract(epoch FROM clock_timestamp())::float8 * 1000 AS now_ms`

/** For another worker, or for another time. */
async function putBack({ database, worker }: Desk, run: string): Promise<void> {
  await database.query(
    `UPDATE runs SET finisher = NULL WHERE run = $1 AND finisher = $2 AND status = 'ending'`,
    [run, worker],
  )
}

async function endRun(desk: Desk, row: Row, bench: Bench): Promise<void> {
  const { database, worker, log } = desk
  const run = String(row.run)
  const settle = (set: string, values: readonly unknown[] = []): Promise<unknown> =>
    database.query(`UPDATE runs SET ${set} WHERE run = $1 AND status = 'ending' AND finisher = $2`, [
      run,
      worker,
      ...values,
    ])
  if (row.written !== true) {
    const { summary, isAtRest } = await endSharedRun(bench, await endingOf(desk, row), linesOf(database, run))
    const outcome = JSON.stringify(outcomeJson(summary))
    log('info', 'run finished', { event: 'run.finish', run, status: summary.status, rows: summary.rows })
    if (!isAtRest) {
      await settle(`status = 'stopped', outcome = $3, finished_at = clock_timestamp()`, [outcome])
      return
    }
    await settle('written = true, outcome = $3', [outcome])
  }
  await leaveSharedRun(bench, run)
  await settle(`status = 'ended', finished_at = clock_timestamp()`)
  await forgetEnded(database)
}

/** What runs had on record that are over is in the checkpoints of their data sets; it goes, so much at a time. */
async function forgetEnded(database: Database): Promise<void> {
  for (const table of ['lines', 'chains', 'parts']) {
    for (let gone = 1; gone > 0; ) {
      const [row] = await database.query(
        `WITH gone AS (
           DELETE FROM ${table} WHERE ctid = ANY (ARRAY (
             SELECT ctid FROM ${table} WHERE run IN (SELECT run FROM runs WHERE status = 'ended') LIMIT 20000))
           RETURNING 1
         ) SELECT count(*)::integer AS gone FROM gone`,
      )
      gone = Number(row?.gone)
    }
  }
}

async function endingOf({ database, version }: Desk, row: Row): Promise<SharedEnding> {
  const run = String(row.run)
  const { plannedAtMs } = row.definition as Definition
  const spent = await database.query(
    'SELECT month, requests::float8 AS requests FROM spending WHERE run = $1 ORDER BY month',
    [run],
  )
  const [left] = await database.query(
    'SELECT searches_remaining::float8 AS searches FROM organizations WHERE organization = $1',
    [row.organization],
  )
  const notes = await database.query(
    'SELECT chain, state, note FROM chains WHERE run = $1 AND note IS NOT NULL ORDER BY chain',
    [run],
  )
  const failures: SharedEnding['failures'][number][] = []
  const reasons: Record<string, number> = {}
  let replacedNuls = 0
  for (const { chain, state, note } of notes) {
    const said = note as Note
    replacedNuls += said.replacedNuls ?? 0
    for (const [reason, items] of Object.entries(said.reasons ?? {}))
      reasons[reason] = (reasons[reason] ?? 0) + items
    if (state !== 'failed' || failures.length >= 100) continue
    failures.push(...(said.failures ?? []))
    if (said.error !== undefined) failures.push({ partition: `chain ${chain}`, message: said.error })
  }
  const halt = row.halt as PlainError | null
  return {
    run,
    version,
    submittedAtMs: Number(row.submitted_ms),
    endedAtMs: Number(row.now_ms),
    plannedAtMs,
    retries: Number(row.retries),
    months: spent.map(({ month, requests }) => [String(month), Number(requests)] as const),
    searchesRemaining: left?.searches == null ? null : Number(left.searches),
    failedChains: Number(row.failed),
    error: halt && fromPlainError(halt),
    failures: failures.slice(0, 100),
    reasons,
    replacedNuls,
  }
}

type Note = {
  readonly failures?: SharedEnding['failures']
  readonly reasons?: Readonly<Record<string, number>>
  readonly replacedNuls?: number
  readonly error?: string
}
