import { inSnakeCase, type Pipeline } from '../../core/index.ts'
import type { OpeningStep, Progress, RunOptions } from '../../run/index.ts'
import { requestRate } from '../../run/index.ts'
import type { Io } from '../command-line/command.ts'
import { cutTo, styleFor, wantsColour } from '../terminal/screen.ts'
import { count, counted, stopwatch } from '../terminal/text.ts'
import { progressLines, waitText } from './progress-lines.ts'

// Faster changes cannot be read.
const REDRAW_MS = 250

type ProgressView = Required<Pick<RunOptions, 'onOpening' | 'onProgress'>> & { close(): void }

/**
 * Shows the progress of a run in lines that are redrawn in place, or, without a terminal, the plan at once and then how
 * far it is, each half minute.
 * @param stop aborts when the run is stopped
 */
export function progressView(
  pipeline: Pipeline,
  { screen, env, logging }: Io,
  stop: AbortSignal,
): ProgressView {
  const { name } = pipeline
  const style = styleFor(wantsColour(screen.stream, env))
  let opening: { readonly step: OpeningStep; readonly sinceMs: number } | null = null
  let latest: Progress | null = null
  let startedMs = performance.now()
  const openingLine = (): string =>
    opening === null
      ? `${name}: begins`
      : `${name}: ${openingText(opening.step, opening.sinceMs, Date.now())}`
  const draw = (): void => {
    const elapsedMs = performance.now() - startedMs
    const columns = screen.columns
    if (latest !== null) {
      const pace = stop.aborted ? STOPPING : paceText(pipeline)
      const moment = { name, progress: latest, elapsedMs, nowMs: Date.now(), columns, pace }
      screen.show(progressLines(moment, style))
    } else if (opening !== null) screen.show(cutTo(openingLine(), columns - 1))
  }
  screen.status = () => {
    if (latest === null) return { text: openingLine(), fields: null }
    const { waits, partitionsAdvanced, requestsAllowed, pausedUntilMs, ...figures } = latest
    const words = progressWords(latest, performance.now() - startedMs, Date.now())
    return {
      text: `${name}: ${words.join(', ')}`,
      fields: { pipeline: name, ...inSnakeCase({ ...figures }) },
    }
  }
  const timer = setInterval(draw, REDRAW_MS).unref()
  return {
    onOpening(step) {
      opening = { step, sinceMs: Date.now() }
    },
    onProgress(progress) {
      if (latest === null) {
        startedMs = performance.now()
        if (screen.progress === 'lines' && logging.format === 'pretty')
          screen.write(`${name}: ${planWords(pipeline, progress).join(', ')}\n`)
      }
      latest = progress
    },
    close() {
      screen.status = null
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
