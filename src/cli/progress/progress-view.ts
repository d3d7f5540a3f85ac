import { inSnakeCase, type Pipeline } from '../../core/index.ts'
import { type OpeningStep, type Progress, type RunOptions, requestRate } from '../../run/index.ts'
import type { Io } from '../command-line/command.ts'
import { count, counted, stopwatch } from '../terminal/text.ts'
import { progressText } from './progress-text.ts'

/** Tells the screen how far a run is. Without a terminal the plan is said at once. */
export function progressView(
  pipeline: Pipeline,
  { screen, logging }: Io,
): Required<Pick<RunOptions, 'onOpening' | 'onProgress'>> {
  const { name } = pipeline
  let opening: { readonly step: OpeningStep; readonly sinceMs: number } | null = null
  let latest: Progress | null = null
  let startedMs = 0
  screen.status = () => {
    const nowMs = Date.now()
    if (latest === null) {
      const step = opening === null ? 'begins' : openingText(opening.step, opening.sinceMs, nowMs)
      return { text: `${name}: ${step}`, fields: null }
    }
    const elapsedMs = performance.now() - startedMs
    const { retrying, partitionsAdvanced, requestsAllowed, pausedUntilMs, ...figures } = latest
    return {
      text: progressText({ name, progress: latest, elapsedMs, nowMs }),
      fields: { pipeline: name, ...inSnakeCase({ ...figures }) },
    }
  }
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
  }
}

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
