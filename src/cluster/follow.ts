import { type Clock, ExportError } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'
import type { Database } from './database.ts'
import { type Outcome, summaryFrom } from './outcome.ts'

export type FollowOptions = {
  readonly clock: Clock
  /** Ends the wait; the run goes on. */
  readonly stop: AbortSignal
  readonly onProgress: (progress: FollowProgress) => void
}

export type FollowProgress = {
  readonly chains: number
  readonly done: number
  readonly failed: number
  readonly active: number
  readonly requests: number
  /** That were seen lately. */
  readonly workers: number
}

const LOOK_MS = 500

/**
 * Waits for the end of a run, whoever makes it, also while the database is away.
 * @throws ExportError `config` when the run is there no more; `interrupted` when the wait is ended
 */
export async function followRun(
  run: string,
  database: Database,
  options: FollowOptions,
): Promise<RunSummary> {
  const { clock, stop, onProgress } = options
  try {
    for (;;) {
      const [row] = await database.insist(
        `SELECT status, outcome, waiting, active, done, failed, halt,
           sent(run)::float8 AS requests,
           (SELECT count(*) FROM workers WHERE seen_at > clock_timestamp() - interval '15 seconds')::integer AS workers
         FROM runs WHERE run = $1`,
        [run],
        stop,
      )
      if (row === undefined) throw gone('The run is not in the database any more', run)
      const [done, failed, active] = [Number(row.done), Number(row.failed), Number(row.active)]
      const chains = done + failed + active + Number(row.waiting)
      onProgress({
        chains,
        done,
        failed,
        active,
        requests: Number(row.requests),
        workers: Number(row.workers),
      })
      if (row.status === 'stopped' || row.status === 'ended') {
        if (row.outcome !== null) return summaryFrom(row.outcome as Outcome)
        throw gone((row.halt as { what: string } | null)?.what ?? 'The run was given up', run)
      }
      await clock.sleep(LOOK_MS, stop)
    }
  } catch (error) {
    if (!stop.aborted) throw error
    throw new ExportError(
      'interrupted',
      'Nobody waits for the run any more; workers go on with it',
      run,
      'Submit it again with --wait to see its end.',
    )
  }
}

function gone(what: string, run: string): ExportError {
  return new ExportError('config', what, `run ${run}`, 'Submit the pipeline again.')
}
