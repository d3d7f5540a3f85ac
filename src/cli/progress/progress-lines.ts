import type { Progress } from '../../run/index.ts'
import { cutTo, type Style, styleFor, widthOf } from '../terminal/screen.ts'
import { count, counted, plainLine, roughly, stopwatch } from '../terminal/text.ts'

// Shorter waits are usual.
const LONG_MS = 3000

const GAP = '  '

export type ProgressMoment = {
  readonly name: string
  readonly progress: Progress
  readonly elapsedMs: number
  /** Epoch milliseconds. */
  readonly nowMs: number
  /** Width of the terminal. */
  readonly columns: number
  /** Shown while the run waits for nothing in particular. */
  readonly pace: string
}

/** The progress of a run in three lines that fit the terminal: partitions, figures, and the present wait. */
export function progressLines(moment: ProgressMoment, style: Style): string {
  const columns = moment.columns - 1
  const wait = waitText(moment.progress, moment.nowMs)
  const now = cutTo(wait ?? moment.pace, columns)
  const head: Part[] = [
    [2, style('bold', cutTo(moment.name, MAX_NAME))],
    [3, bar(moment.progress, style)],
  ]
  return [
    lineOf([...head, ...partitions(moment, style)], columns),
    lineOf(figures(moment, style), columns),
    style(wait === null ? 'dim' : 'yellow', now),
  ].join('\n')
}

/** The same in one line of any length, for a log. */
export function progressText(moment: ProgressMoment): string {
  const { name, progress, nowMs } = moment
  const plain = styleFor(false)
  const parts = [...partitions(moment, plain), ...figures(moment, plain)].map(([, text]) => text)
  return `${name}: ${[...parts, waitText(progress, nowMs)].filter((text) => text !== null).join(', ')}`
}

/** A part of a line; null: it is left out. Parts with the lowest rank get space first. */
type Part = readonly [rank: number, text: string | null]

function partitions({ progress }: ProgressMoment, style: Style): Part[] {
  const { partitionsTotal, partitionsDone: done, partitionsDoneBefore: before, partitionsFailed } = progress
  return [
    [0, `${count(done)} of ${counted(partitionsTotal, 'partition')}`],
    [4, before === 0 ? null : style('dim', `${count(before)} by earlier runs`)],
    [1, partitionsFailed === 0 ? null : style('red', `${count(partitionsFailed)} failed`)],
  ]
}

const MAX_NAME = 20
const BAR_WIDTH = 12

function bar({ partitionsTotal, partitionsDoneBefore, ...progress }: Progress, style: Style): string {
  const cells = (partitions: number): number =>
    partitionsTotal === 0
      ? BAR_WIDTH
      : Math.min(BAR_WIDTH, Math.floor((partitions / partitionsTotal) * BAR_WIDTH))
  const earlier = cells(partitionsDoneBefore)
  const through = cells(partitionsDoneBefore + progress.partitionsAdvanced + progress.partitionsFailed)
  return [
    style('dim', '╍'.repeat(earlier)),
    style('cyan', '━'.repeat(through - earlier)),
    style('dim', '─'.repeat(BAR_WIDTH - through)),
  ].join('')
}

function figures(moment: ProgressMoment, style: Style): Part[] {
  const { progress, elapsedMs } = moment
  const { rows, requests, searchesRemaining, quarantined } = progress
  const rate = elapsedMs < 1000 ? '' : `, ${count((rows * 1000) / elapsedMs)}/s`
  const left = searchesRemaining === null ? null : `${counted(searchesRemaining, 'search', 'searches')} left`
  return [
    [0, `${counted(rows, 'row')}${rate}`],
    [2, counted(requests, 'request')],
    [4, left],
    [1, stopwatch(elapsedMs)],
    [1, endOf(moment, style)],
    [3, quarantined === 0 ? null : style('yellow', `${count(quarantined)} quarantined`)],
  ]
}

/** The least progress from which the end of a run is estimated. */
const MIN_REQUESTS = 5
const MIN_MS = 3000

/** The estimated end of the run: by its pages, or earlier by its budget; null: not known yet. */
function endOf({ progress, elapsedMs }: ProgressMoment, style: Style): string | null {
  const { requests, requestsAllowed } = progress
  const left = shareLeft(progress)
  if (left === null || requests < MIN_REQUESTS || elapsedMs < MIN_MS) return null
  if (requestsAllowed === null || requestsAllowed.requests >= requests * left)
    return `about ${roughly(elapsedMs * left)} to go`
  const soon = roughly((elapsedMs / requests) * requestsAllowed.requests)
  return style('yellow', `${requestsAllowed.by} ends first, in about ${soon}`)
}

/** The ratio of what is left of a run to what is done; null: not known yet. */
function shareLeft({
  partitionsTotal,
  partitionsFailed,
  partitionsDoneBefore,
  partitionsAdvanced,
}: Progress) {
  if (partitionsAdvanced <= 0) return null
  const left = partitionsTotal - partitionsFailed - partitionsDoneBefore - partitionsAdvanced
  return left <= 0 ? null : left / partitionsAdvanced
}

/** A line of as many parts as fit, in the order given. */
function lineOf(parts: readonly Part[], columns: number): string {
  const shown = new Set<Part>()
  let room = columns + GAP.length
  for (const part of [...parts].sort(([a], [b]) => a - b)) {
    const width = part[1] === null ? Number.POSITIVE_INFINITY : GAP.length + widthOf(part[1])
    if (width > room) continue
    room -= width
    shown.add(part)
  }
  return parts.flatMap((part) => (shown.has(part) ? [part[1]] : [])).join(GAP)
}

/** What a run waits for; null: nothing unusual. */
function waitText({ pausedUntilMs, waits }: Progress, nowMs: number): string | null {
  const { retry, retries, tokenSinceMs, responseSinceMs, diskSinceMs } = waits
  if (pausedUntilMs !== null && pausedUntilMs > nowMs) {
    return `the service responded with 429; requests go on in ${seconds(pausedUntilMs - nowMs)}`
  }
  if (retry !== null) {
    const { number, of, untilMs, reason } = retry
    const others = retries > 1 ? `, and ${count(retries - 1)} more` : ''
    return `retry ${number} of ${of} in ${seconds(untilMs - nowMs)}${others}: ${plainLine(reason)}`
  }
  const longest = [
    { sinceMs: tokenSinceMs, what: 'a token' },
    { sinceMs: diskSinceMs, what: 'the disk' },
    { sinceMs: responseSinceMs, what: 'a response' },
  ].find(({ sinceMs }) => sinceMs !== null && nowMs - sinceMs >= LONG_MS)
  return longest === undefined ? null : `waits for ${longest.what}: ${seconds(nowMs - longest.sinceMs!)}`
}

/** `8 s`, `1:40` */
function seconds(ms: number): string {
  return ms < 99_500 ? `${Math.max(0, Math.ceil(ms / 1000))} s` : stopwatch(ms)
}
