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
  const [total, done, before] = [partitionsTotal, partitionsDone, partitionsDoneBefore].map(count)
  const parts: Part[] = [
    { rank: 2, variants: [name, cutTo(name, 20), cutTo(name, 10)], paint: (text) => style('bold', text) },
    { rank: 4, variants: BARS.map((width) => bar(progress, width)), paint: (text) => paintBar(text, style) },
    { rank: 0, variants: [`${done} of ${counted(partitionsTotal, 'partition')}`, `${done}/${total}`] },
  ]
  if (partitionsDoneBefore > 0) {
    parts.push({
      rank: 3,
      variants: [`${before} by earlier runs`, `${before} before`],
      paint: (text) => style('dim', text),
    })
  }
  if (partitionsFailed > 0) {
    const variants = [`${count(partitionsFailed)} failed`]
    parts.push({ rank: 1, variants, paint: (text) => style('red', text) })
  }
  return parts
}

/** Widths of the bar, the widest first. */
const BARS = Array.from({ length: 17 }, (_, i) => 24 - i)
const [EARLIER, NOW, LEFT] = ['╍', '━', '─'] as const

function bar({ partitionsTotal, partitionsDoneBefore, ...progress }: Progress, width: number): string {
  const cells = (partitions: number): number =>
    partitionsTotal === 0 ? width : Math.min(width, Math.floor((partitions / partitionsTotal) * width))
  const earlier = cells(partitionsDoneBefore)
  const through = cells(partitionsDoneBefore + progress.partitionsAdvanced + progress.partitionsFailed)
  return EARLIER.repeat(earlier) + NOW.repeat(through - earlier) + LEFT.repeat(width - through)
}

function paintBar(text: string, style: Style): string {
  return text.replace(/━+/, (now) => style('cyan', now)).replace(/╍+|─+/g, (rest) => style('dim', rest))
}

function figures(moment: ProgressMoment, style: Style): Part[] {
  const { progress, elapsedMs } = moment
  const { rows, requests, searchesRemaining, quarantined } = progress
  const rowsText = counted(rows, 'row')
  const rate = elapsedMs < 1000 ? '' : `, ${count((rows * 1000) / elapsedMs)}/s`
  const left = searchesRemaining === null ? '' : `, ${count(searchesRemaining)} left`
  const searches =
    searchesRemaining === null ? '' : `, ${counted(searchesRemaining, 'search', 'searches')} left`
  const sent = counted(requests, 'request')
  const parts: Part[] = [
    { rank: 0, variants: [`${rowsText}${rate}`, rowsText] },
    {
      rank: 2,
      variants: [`${sent}${searches}`, `${count(requests)} sent${left}`, `${count(requests)} sent`],
    },
    endOf(moment, style),
  ]
  if (quarantined > 0) {
    const variants = [`${count(quarantined)} quarantined`]
    parts.push({ rank: 3, variants, paint: (text) => style('yellow', text) })
  }
  return parts
}

/** The least progress from which the end of a run is estimated. */
const MIN_REQUESTS = 5
const MIN_MS = 3000

/** The elapsed time and the estimated end of the run: by its pages, or earlier by its budget. */
function endOf({ progress, elapsedMs }: ProgressMoment, style: Style): Part {
  const elapsed = stopwatch(elapsedMs)
  const { requests, requestsAllowed } = progress
  const left = shareLeft(progress)
  if (left === null || requests < MIN_REQUESTS || elapsedMs < MIN_MS) {
    return { rank: 1, variants: [elapsed] }
  }
  const end = roughly(elapsedMs * left)
  if (requestsAllowed === null || requestsAllowed.requests >= requests * left) {
    return {
      rank: 1,
      variants: [`${elapsed}, about ${end} to go`, `${elapsed}, ~${end} to go`, `~${end} to go`, `~${end}`],
    }
  }
  const { by } = requestsAllowed
  const soon = roughly((elapsedMs / requests) * requestsAllowed.requests)
  return {
    rank: 1,
    variants: [
      `${elapsed}, ${by} ends in about ${soon}, before the export does (${end})`,
      `${elapsed}, ${by} ends before the export does`,
      `${by} ends before the export does`,
      `${by} ends first`,
    ],
    paint: (text) => style('yellow', text),
  }
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

/** A part of a line: its texts, the longest first, and how the chosen one is coloured. */
type Part = {
  readonly variants: readonly string[]
  readonly paint?: (text: string) => string
  /** Parts with the lowest rank get space first. */
  readonly rank: number
}

/**
 * A line of as many parts as fit, in the order given. First each part gets space for its shortest text, then they grow
 * one after the other.
 */
function lineOf(parts: readonly Part[], columns: number): string {
  const byRank = [...parts].sort((a, b) => a.rank - b.rank)
  /** The variant of each part, and its width. */
  const chosen = new Map<Part, { readonly variant: number; readonly width: number }>()
  let used = -GAP.length
  const choose = (part: Part, variant: number): boolean => {
    const before = chosen.get(part)
    const width = widthOf(part.variants[variant] ?? '')
    const more = before === undefined ? GAP.length + width : width - before.width
    if (used + more > columns) return false
    used += more
    chosen.set(part, { variant, width })
    return true
  }
  let growing = byRank.filter((part) => choose(part, part.variants.length - 1))
  while (growing.length > 0) {
    growing = growing.filter((part) => {
      const { variant } = chosen.get(part)!
      return variant > 0 && choose(part, variant - 1)
    })
  }
  return parts
    .flatMap((part) => {
      const { variant } = chosen.get(part) ?? {}
      if (variant === undefined) return []
      const text = part.variants[variant]!
      return [part.paint === undefined ? text : part.paint(text)]
    })
    .join(GAP)
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
