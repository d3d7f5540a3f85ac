import type { Progress } from '../../run/index.ts'
import { cutTo, type Style, widthOf } from '../terminal/screen.ts'
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
  return [
    lineOf(partitions(moment, style), columns),
    lineOf(figures(moment, style), columns),
    style(wait === null ? 'dim' : 'yellow', now),
  ].join('\n')
}

function partitions({ name, progress }: ProgressMoment, style: Style): Part[] {
  const { partitionsTotal, partitionsDone, partitionsDoneBefore, partitionsFailed } = progress
  const parts: Part[] = [
    { rank: 2, text: cutTo(name, MAX_NAME), paint: (text) => style('bold', text) },
    { rank: 3, text: bar(progress), paint: (text) => paintBar(text, style) },
    { rank: 0, text: `${count(partitionsDone)} of ${counted(partitionsTotal, 'partition')}` },
  ]
  if (partitionsDoneBefore > 0) {
    const text = `${count(partitionsDoneBefore)} by earlier runs`
    parts.push({ rank: 4, text, paint: (text) => style('dim', text) })
  }
  if (partitionsFailed > 0) {
    const text = `${count(partitionsFailed)} failed`
    parts.push({ rank: 1, text, paint: (text) => style('red', text) })
  }
  return parts
}

const MAX_NAME = 20
const BAR_WIDTH = 12
const [EARLIER, NOW, LEFT] = ['╍', '━', '─'] as const

function bar({ partitionsTotal, partitionsDoneBefore, ...progress }: Progress): string {
  const cells = (partitions: number): number =>
    partitionsTotal === 0
      ? BAR_WIDTH
      : Math.min(BAR_WIDTH, Math.floor((partitions / partitionsTotal) * BAR_WIDTH))
  const earlier = cells(partitionsDoneBefore)
  const through = cells(partitionsDoneBefore + progress.partitionsAdvanced + progress.partitionsFailed)
  return EARLIER.repeat(earlier) + NOW.repeat(through - earlier) + LEFT.repeat(BAR_WIDTH - through)
}

function paintBar(text: string, style: Style): string {
  return text.replace(/━+/, (now) => style('cyan', now)).replace(/╍+|─+/g, (rest) => style('dim', rest))
}

function figures(moment: ProgressMoment, style: Style): Part[] {
  const { progress, elapsedMs } = moment
  const { rows, requests, searchesRemaining, quarantined } = progress
  const rate = elapsedMs < 1000 ? '' : `, ${count((rows * 1000) / elapsedMs)}/s`
  const parts: Part[] = [
    { rank: 0, text: `${counted(rows, 'row')}${rate}` },
    { rank: 2, text: counted(requests, 'request') },
  ]
  if (searchesRemaining !== null)
    parts.push({ rank: 4, text: `${counted(searchesRemaining, 'search', 'searches')} left` })
  parts.push({ rank: 1, text: stopwatch(elapsedMs) })
  const end = endOf(moment, style)
  if (end !== null) parts.push(end)
  if (quarantined > 0) {
    const text = `${count(quarantined)} quarantined`
    parts.push({ rank: 3, text, paint: (text) => style('yellow', text) })
  }
  return parts
}

/** The least progress from which the end of a run is estimated. */
const MIN_REQUESTS = 5
const MIN_MS = 3000

/** The estimated end of the run: by its pages, or earlier by its budget; null: not known yet. */
function endOf({ progress, elapsedMs }: ProgressMoment, style: Style): Part | null {
  const { requests, requestsAllowed } = progress
  const left = shareLeft(progress)
  if (left === null || requests < MIN_REQUESTS || elapsedMs < MIN_MS) return null
  if (requestsAllowed === null || requestsAllowed.requests >= requests * left)
    return { rank: 1, text: `about ${roughly(elapsedMs * left)} to go` }
  const soon = roughly((elapsedMs / requests) * requestsAllowed.requests)
  const text = `${requestsAllowed.by} ends first, in about ${soon}`
  return { rank: 1, text, paint: (text) => style('yellow', text) }
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

/** A part of a line, and how it is coloured. */
type Part = {
  readonly text: string
  readonly paint?: (text: string) => string
  /** Parts with the lowest rank get space first. */
  readonly rank: number
}

/** A line of as many parts as fit, in the order given. */
function lineOf(parts: readonly Part[], columns: number): string {
  const shown = new Set<Part>()
  let room = columns + GAP.length
  for (const part of [...parts].sort((a, b) => a.rank - b.rank)) {
    const width = GAP.length + widthOf(part.text)
    if (width > room) continue
    room -= width
    shown.add(part)
  }
  const painted = parts
    .filter((part) => shown.has(part))
    .map(({ text, paint = (plain: string) => plain }) => paint(text))
  return painted.join(GAP)
}

/** What a run waits for; null: nothing unusual. */
export function waitText({ pausedUntilMs, waits }: Progress, nowMs: number): string | null {
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
