import { inSnakeCase, type Log, type Pipeline, requestRate } from '../../core/index.ts'
import type { OpeningStep, Progress, RunOptions } from '../../run/index.ts'
import type { Io } from '../command-line/command.ts'
import { isShownToPeople } from '../log/log.ts'
import { cutTo, styleFor, wantsColour } from '../terminal/screen.ts'
import { count, counted, stopwatch } from '../terminal/text.ts'
import { progressLines, waitText } from './progress-lines.ts'

// Faster changes cannot be read.
const REDRAW_MS = 250
const LOG_MS = 30_000

type ProgressView = Required<Pick<RunOptions, 'onLog' | 'onOpening' | 'onProgress'>> & { close(): void }

/**
 * Shows the progress of a run in lines that are redrawn in place, or, without a terminal, in a log line every half
 * minute.
 * @param stop aborts when the run is stopped
 * @param quiet the user wants no redrawn lines
 */
export function progressView(pipeline: Pipeline, io: Io, stop: AbortSignal, quiet: boolean): ProgressView {
  const redraws = io.screen.canRedraw && io.logging.format === 'pretty' && !quiet
  return redraws ? redrawnLines(pipeline, io, stop) : logLines(pipeline, io, quiet)
}

function redrawnLines(pipeline: Pipeline, { screen, env, log }: Io, stop: AbortSignal): ProgressView {
  const { name } = pipeline
  const ticker = everyHalfMinute(log)
  const style = styleFor(wantsColour(screen.stream, env))
  let opening: { readonly step: OpeningStep; readonly sinceMs: number } | null = null
  let latest: Progress | null = null
  let startedMs = 0
  const draw = (): void => {
    const elapsedMs = performance.now() - startedMs
    const nowMs = Date.now()
    if (latest !== null) {
      const pace = stop.aborted ? STOPPING : paceText(pipeline)
      const moment = { name, progress: latest, elapsedMs, nowMs, columns: screen.columns, pace }
      screen.show(progressLines(moment, style))
    } else if (opening !== null) {
      screen.show(cutTo(`${name}: ${openingText(opening.step, opening.sinceMs, nowMs)}`, screen.columns - 1))
    }
  }
  const timer = setInterval(draw, REDRAW_MS)
  timer.unref()
  return {
    onLog: log,
    onOpening(step) {
      opening = { step, sinceMs: Date.now() }
    },
    onProgress(progress) {
      if (latest === null) startedMs = performance.now()
      latest = progress
      ticker.onProgress(progress)
    },
    close() {
      ticker.close()
      clearInterval(timer)
      screen.clear()
    },
  }
}

const STOPPING = 'stopping: pages in flight are committed'

/** The rate of a run that waits for nothing unusual. */
function paceText(pipeline: Pipeline): string {
  const { extract } = pipeline
  const rate = requestRate(pipeline)
  const pages = extract.concurrency === 1 ? 'one page' : `${count(extract.concurrency)} pages`
  return `pace: up to ${rate} ${rate === 1 ? 'request' : 'requests'} a second, ${pages} at a time`
}

function openingText(step: OpeningStep, sinceMs: number, nowMs: number): string {
  switch (step.kind) {
    case 'lock':
      return `waits for a heartbeat of the run that held the lock: ${stopwatch(step.untilMs - nowMs)}`
    case 'checkpoint':
      return `checks the earlier export: ${stopwatch(nowMs - sinceMs)}`
  }
}

/** Without a terminal: the plan at once, then a line every half minute. */
function logLines(pipeline: Pipeline, { log, logging, screen }: Io, quiet: boolean): ProgressView {
  const isSilent = quiet || logging.format === 'json' || !isShownToPeople(logging.level)
  const say = (words: readonly string[]): void => {
    if (!isSilent) screen.write(`${pipeline.name}: ${words.join(', ')}\n`)
  }
  let startedMs: number | null = null
  const ticker = everyHalfMinute(log, (progress) =>
    say(progressWords(progress, performance.now() - (startedMs ?? 0), Date.now())),
  )
  return {
    ...ticker,
    onLog: log,
    onOpening(step) {
      const sinceMs = Date.now()
      if (!isSilent) screen.status = () => `${pipeline.name}: ${openingText(step, sinceMs, Date.now())}`
    },
    onProgress(progress) {
      if (startedMs === null) {
        screen.status = null
        startedMs = performance.now()
        say(planWords(pipeline, progress))
      }
      ticker.onProgress(progress)
    },
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

function progressWords(progress: Progress, elapsedMs: number, nowMs: number): string[] {
  const { partitionsTotal, partitionsDone, partitionsFailed, rows, requests, quarantined } = progress
  const wait = waitText(progress, nowMs)
  return [
    `${count(partitionsDone)} of ${counted(partitionsTotal, 'partition')} done`,
    ...(partitionsFailed === 0 ? [] : [`${count(partitionsFailed)} failed`]),
    counted(rows, 'row'),
    counted(requests, 'request'),
    ...(quarantined === 0 ? [] : [`${count(quarantined)} quarantined`]),
    stopwatch(elapsedMs),
    ...(wait === null ? [] : [wait]),
  ]
}

/** Logs the progress every half minute. @param also is called then */
function everyHalfMinute(
  log: Log,
  also: (progress: Progress) => void = () => {},
): Pick<ProgressView, 'onProgress' | 'close'> {
  let latest: Progress | null = null
  const timer = setInterval(() => {
    if (latest === null) return
    const { waits, partitionsAdvanced, requestsAllowed, pausedUntilMs, ...figures } = latest
    log('info', 'progress', { event: 'progress', ...inSnakeCase({ ...figures }) })
    also(latest)
  }, LOG_MS)
  timer.unref()
  return {
    onProgress(progress) {
      latest = progress
    },
    close: () => clearInterval(timer),
  }
}
