import type { Progress } from '../run/index.ts'
import { count, stopwatch } from './quantities.ts'
import type { Style } from './style.ts'

export type ProgressMoment = {
  readonly name: string
  readonly progress: Progress
  /** Partitions that were done when the run began. */
  readonly doneBefore: number
  readonly elapsedMs: number
  /** Epoch milliseconds. */
  readonly nowMs: number
  /** Width of the terminal. */
  readonly columns: number
}

/** How far a run is, in one line that fits the terminal, and a second one while the service has everybody wait. */
export function progressLine(moment: ProgressMoment, style: Style): string {
  const { progress, columns, nowMs } = moment
  const waitMs = (progress.pausedUntilMs ?? 0) - nowMs
  const line = withinColumns(partsOf(moment, style), columns - 1)
  if (waitMs <= 0) return line
  const wait = `the service asks for patience: ${stopwatch(waitMs)}`
  return `${line}\n${style('yellow', wait.slice(0, columns - 1))}`
}

type Part = { readonly text: string; readonly width: number }

/** The most important first: what no longer fits is left out. */
function partsOf({ name, progress, doneBefore, elapsedMs, columns }: ProgressMoment, style: Style): Part[] {
  const { partitionsTotal, partitionsDone, partitionsFailed, rows, requests, searchesRemaining } = progress
  const share = partitionsTotal === 0 ? 1 : (partitionsDone + partitionsFailed) / partitionsTotal
  const short = columns < 60 ? name.slice(0, 12) : name.slice(0, 30)
  const width = columns < 60 ? 8 : 20
  const parts: Part[] = [
    { text: `${style('bold', short)} ${bar(share, width, style)}`, width: short.length + 1 + width },
    plain(`${count(partitionsDone)}/${count(partitionsTotal)}`),
    plain(`${count(rows)} rows`),
  ]
  if (partitionsFailed > 0) {
    const text = `${count(partitionsFailed)} failed`
    parts.splice(2, 0, { text: style('red', text), width: text.length })
  }
  parts.push(plain(timing(progress, doneBefore, elapsedMs)))
  if (elapsedMs >= 1000) parts.push(plain(`${count((rows * 1000) / elapsedMs)} rows/s`))
  parts.push(plain(`${count(requests)} requests`))
  if (searchesRemaining !== null) parts.push(plain(`${count(searchesRemaining)} searches left`))
  return parts
}

function plain(text: string): Part {
  return { text, width: text.length }
}

function bar(share: number, width: number, style: Style): string {
  const full = Math.min(width, Math.floor(share * width))
  return style('cyan', '━'.repeat(full)) + style('dim', '─'.repeat(width - full))
}

/** Partitions differ in size, so what is left can only be guessed; after the first few it is worth saying. */
function timing({ partitionsTotal, partitionsDone }: Progress, before: number, elapsedMs: number): string {
  const doneNow = partitionsDone - before
  const left = partitionsTotal - partitionsDone
  if (doneNow < 3 || left === 0) return stopwatch(elapsedMs)
  return `${stopwatch(elapsedMs)}, about ${stopwatch((elapsedMs / doneNow) * left)} left`
}

function withinColumns(parts: readonly Part[], columns: number): string {
  const separator = '  '
  let line = ''
  let width = 0
  for (const part of parts) {
    const more = width === 0 ? part.width : separator.length + part.width
    if (width > 0 && width + more > columns) continue
    line += width === 0 ? part.text : separator + part.text
    width += more
  }
  return line
}
