import { inSnakeCase, type Log, type Pipeline } from '../core/index.ts'
import { requestRate } from '../data-set/index.ts'
import {
  type OpeningStep,
  type Progress,
  type RunOptions,
  type RunSummary,
  runPipeline,
} from '../run/index.ts'
import { type RunSettings, runOptions } from '../run-options.ts'
import type { Io } from './command-line/command.ts'
import type { MetricsFile } from './log/metrics-file.ts'
import { type HowItRan, printSummary } from './results/summary.ts'
import type { StopSignals } from './terminal/signals.ts'
import { count, counted, roughly, stopwatch } from './terminal/text.ts'

export type ExportSettings = Pick<RunSettings, 'allowPlaintext' | 'failFast' | 'fresh' | 'redo'> &
  HowItRan & {
    readonly json: boolean
    readonly metrics?: MetricsFile | null
  }

/** @returns the exit code @throws ExportError when the run could not begin */
export async function exportPipeline(
  pipeline: Pipeline,
  settings: ExportSettings,
  { stop, abort }: StopSignals,
  io: Io,
): Promise<number> {
  const { env, run } = io
  const { allowPlaintext, failFast, fresh, redo, metrics } = settings
  const log: Log = (level, message, fields) => io.log(level, message, { pipeline: pipeline.name, ...fields })
  const own = { ...io, log }
  const view = progressView(pipeline, own)
  const onStop = (): void => own.log('info', 'stopping', { event: 'stop', signal: io.signals.received })
  stop.addEventListener('abort', onStop, { once: true })
  const { onOpening } = view
  const onProgress: RunOptions['onProgress'] = (progress) => {
    view.onProgress(progress)
    metrics?.progress(pipeline.name, progress)
  }
  let summary: RunSummary
  metrics?.begin(pipeline.name)
  try {
    const callbacks = { stop, abort, onLog: own.log, onOpening, onProgress }
    const flags = { allowPlaintext, failFast, fresh, redo, runId: run }
    summary = await runPipeline(pipeline, await runOptions(pipeline, { env, ...flags, ...callbacks }))
  } finally {
    own.screen.clear()
    stop.removeEventListener('abort', onStop)
  }
  metrics?.end(summary)
  const { error, failures } = summary
  // Printed already, by the log or at the signal.
  const isPrinted =
    error?.kind === 'interrupted' || failures.some(({ message }) => message === error?.message)
  if (error !== null && !isPrinted) io.reportError(error)
  return printSummary(summary, pipeline, settings, io)
}

/** Tells the screen how far a run is. Without a terminal the plan is said at once. */
function progressView(
  pipeline: Pipeline,
  { screen, logging }: Io,
): Required<Pick<RunOptions, 'onOpening' | 'onProgress'>> {
  const { name } = pipeline
  let startedMs: number | null = null
  screen.isAt(`${name}: begins`)
  return {
    onOpening(step) {
      const sinceMs = Date.now()
      screen.status = () => ({ text: `${name}: ${openingText(step, sinceMs)}`, fields: null })
    },
    onProgress(progress) {
      if (startedMs === null && screen.progress === 'lines' && logging.format === 'pretty')
        screen.write(`${name}: ${planWords(pipeline, progress).join(', ')}\n`)
      startedMs ??= performance.now()
      const beganMs = startedMs
      const { retrying, partitionsAdvanced, requestsAllowed, pausedUntilMs, ...figures } = progress
      screen.status = () => ({
        text: progressText(name, progress, performance.now() - beganMs, Date.now()),
        fields: { pipeline: name, ...inSnakeCase({ ...figures }) },
      })
    },
  }
}

function paceText(pipeline: Pipeline): string {
  const { extract } = pipeline
  const rate = requestRate(pipeline)
  const pages = extract.concurrency === 1 ? 'one page' : `${count(extract.concurrency)} pages`
  return `pace: up to ${rate} ${rate === 1 ? 'request' : 'requests'} a second, ${pages} at a time`
}

function openingText(step: OpeningStep, sinceMs: number): string {
  const nowMs = Date.now()
  switch (step.kind) {
    case 'lock':
      return `waits for a heartbeat of the run that held the lock: ${stopwatch(step.untilMs - nowMs)}`
    case 'checkpoint':
      return `checks the earlier export: ${stopwatch(nowMs - sinceMs)}`
  }
}

/** `144 partitions to do of 150, 6 by earlier runs, pace: …` */
function planWords(pipeline: Pipeline, { partitionsTotal, partitionsDoneBefore }: Progress): string[] {
  const left = partitionsTotal - partitionsDoneBefore
  return [
    `${count(left)} of ${counted(partitionsTotal, 'partition')} to do`,
    ...(partitionsDoneBefore === 0 ? [] : [`${count(partitionsDoneBefore)} done by earlier runs`]),
    ...(left === 0 ? [] : [paceText(pipeline)]),
  ]
}

/** The progress of a run in one line, what matters most first: a terminal cuts it. It begins alike in a pause. */
export function progressText(name: string, progress: Progress, elapsedMs: number, nowMs: number): string {
  const { partitionsTotal, partitionsDone: done, partitionsDoneBefore: before, partitionsFailed } = progress
  const { rows, requests, searchesRemaining, quarantined, retrying, pausedUntilMs } = progress
  const pauseMs = pausedUntilMs === null ? 0 : pausedUntilMs - nowMs
  const parts = [
    `${count(done)} of ${counted(partitionsTotal, 'partition')}${before === 0 ? '' : `, ${count(before)} by earlier runs`}`,
    pauseMs > 0 && `paused by a 429 for ${seconds(pauseMs)}`,
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
