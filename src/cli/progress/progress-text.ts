import type { Progress } from '../../run/index.ts'
import { count, counted, roughly, stopwatch } from '../terminal/text.ts'

export type ProgressMoment = {
  readonly name: string
  readonly progress: Progress
  readonly elapsedMs: number
  /** Epoch milliseconds. */
  readonly nowMs: number
}

/** The progress of a run in one line, what matters most first: a terminal cuts it. */
export function progressText({ name, progress, elapsedMs, nowMs }: ProgressMoment): string {
  const { partitionsTotal, partitionsDone: done, partitionsDoneBefore: before, partitionsFailed } = progress
  const { rows, requests, searchesRemaining, quarantined, retrying, pausedUntilMs } = progress
  const pauseMs = pausedUntilMs === null ? 0 : pausedUntilMs - nowMs
  const parts = [
    pauseMs > 0 && `the service responded with 429; requests go on in ${seconds(pauseMs)}`,
    `${count(done)} of ${counted(partitionsTotal, 'partition')}${before === 0 ? '' : `, ${count(before)} by earlier runs`}`,
    partitionsFailed > 0 && `${count(partitionsFailed)} failed`,
    `${counted(rows, 'row')}${elapsedMs < 1000 ? '' : `, ${count((rows * 1000) / elapsedMs)}/s`}`,
    stopwatch(elapsedMs),
    endOf(progress, elapsedMs),
    counted(requests, 'request'),
    retrying > 0 && `${count(retrying)} to be sent again`,
    searchesRemaining !== null && `${counted(searchesRemaining, 'search', 'searches')} left`,
    quarantined > 0 && `${count(quarantined)} quarantined`,
  ]
  return `${name}: ${parts.filter((part) => part !== false && part !== null).join(', ')}`
}

/** The least progress from which the end of a run is estimated. */
const MIN_REQUESTS = 5
const MIN_MS = 3000

/** The estimated end of the run: by its pages, or earlier by its budget; null: not known yet. */
function endOf(progress: Progress, elapsedMs: number): string | null {
  const { partitionsTotal, partitionsFailed, partitionsDoneBefore, partitionsAdvanced } = progress
  const { requests, requestsAllowed } = progress
  const undone = partitionsTotal - partitionsFailed - partitionsDoneBefore - partitionsAdvanced
  if (partitionsAdvanced <= 0 || undone <= 0 || requests < MIN_REQUESTS || elapsedMs < MIN_MS) return null
  // As a share of what is done.
  const left = undone / partitionsAdvanced
  if (requestsAllowed === null || requestsAllowed.requests >= requests * left)
    return `about ${roughly(elapsedMs * left)} to go`
  const soon = roughly((elapsedMs / requests) * requestsAllowed.requests)
  return `${requestsAllowed.by} ends first, in about ${soon}`
}

/** `8 s`, `1:40` */
function seconds(ms: number): string {
  return ms < 99_500 ? `${Math.max(0, Math.ceil(ms / 1000))} s` : stopwatch(ms)
}
