import { type Clock, ExportError, formatInstant, type Log, type Pipeline, rulesOf } from '../../core/index.ts'

/** A larger difference is worth a warning, even where it changes nothing. */
const NOTABLE_MS = 60_000

/** `Date` has whole seconds. */
const DATE_STEP_MS = 1000

/**
 * Compares this machine's clock with the service's, by its first successful response after now. Windows end by the
 * service's time: rows that are imported after a window is done would never be exported.
 *
 * Only what the response proves counts as a difference, whatever time it took: the service's time was at most its `Date`
 * (and a second) when the windows were planned, and at least its `Date` when it arrived.
 * @returns to be called with the `Date` of each response. It throws ExportError `config`, for all responses, if the
 *   clocks differ by more than `extract.lag` and windows depend on the present time
 */
export function clockCheck(pipeline: Pipeline, clock: Clock, log: Log): (dateMs: number) => void {
  const { windows } = pipeline.extract
  const plannedMs = clock.now()
  let verdict: ExportError | null | undefined
  return (dateMs) => {
    if (verdict === undefined) {
      const nowMs = clock.now()
      const differenceMs = Math.max(plannedMs - dateMs - DATE_STEP_MS, dateMs - nowMs)
      const isWrong = dependsOnNow(pipeline, Math.min(plannedMs, dateMs)) && differenceMs > windows!.lagMs
      verdict = isWrong ? wrongClock(nowMs, dateMs) : null
      if (verdict === null && differenceMs > NOTABLE_MS) {
        const fields = { event: 'clock', clock: seconds(nowMs), service: seconds(dateMs) }
        log('warn', "this machine's clock and the service's differ by more than a minute", fields)
      }
    }
    if (verdict !== null) throw verdict
  }
}

/** Whether windows of a pipeline end by the present time. */
export function dependsOnNow({ extract: { resource, windows } }: Pipeline, nowMs: number): boolean {
  if (windows === null || rulesOf(resource).reading === 'feed') return false
  return windows.until === 'now' || windows.until > (nowMs - windows.lagMs) * 1000
}

function wrongClock(nowMs: number, dateMs: number): ExportError {
  return new ExportError({
    kind: 'config',
    what: `This machine's clock says ${seconds(nowMs)}, the service's ${seconds(dateMs)}: they differ by more than extract.lag, and windows end by the service's time`,
    where: 'extract.windows.until',
    next: 'Set the clock right and run again; nothing was marked done.',
  })
}

function seconds(epochMs: number): string {
  return formatInstant(Math.floor(epochMs / 1000) * 1_000_000)
}
