import {
  ExportError,
  type Int64,
  locationOf,
  MAX_WINDOWS,
  type Micros,
  type NamedPipeline,
  type NamedQuery,
  type Partition,
  parseWindow,
  type Window,
  type WindowLength,
  type WindowSettings,
  windowRange,
} from '../../core/index.ts'
import { type Begun, chainsOf, type Named, type PlannedChain } from './chains.ts'

/** Returns what has begun of a query, by its name; null: nothing. */
export type BegunQueries = (query: string) => Begun | null

export type Plan = {
  /** Every partition, query by query in the order of windows; made on demand, so that a million cost little. */
  partitions(): Iterable<Partition>
  /** The chains that export what is not done; made on demand. */
  chains(): Iterable<PlannedChain>
}

/**
 * Queries × windows, less what earlier runs have covered: no row is exported twice if `every` or `until` change.
 * @throws ExportError `config` when a partly exported window would have to be cut
 */
export function planPartitions(pipeline: NamedPipeline, now: Micros, lookUp: BegunQueries): Plan {
  const begunOf: BegunQueries = (query) => withHeldWindows(lookUp(query))
  const { queries, windows: settings, order } = pipeline.extract
  const wanted = (settings === null ? [null] : splitWindows(settings, now)).map(named)
  const common = new Set(wanted.map(({ name }) => name))
  /** The windows of queries for which earlier runs changed them. */
  const reshaped = new Map<NamedQuery, readonly Named[]>()
  for (const query of queries) {
    const begun = begunOf(query.name)?.windows
    if (begun !== undefined && [...begun.keys()].some((name) => !common.has(name)))
      reshaped.set(query, fitWindows(wanted, begun, query.name, locationOf(pipeline, 'extract.windows')))
  }
  return {
    *partitions() {
      for (const query of queries)
        for (const { name, window } of reshaped.get(query) ?? wanted)
          yield { key: `${query.name}/${name}`, query, window }
    },
    *chains() {
      const options = { order, perChain: settings?.perChain ?? null }
      for (const query of queries)
        yield* chainsOf(query, reshaped.get(query) ?? wanted, begunOf(query.name), options)
    },
  }
}

function named(window: Window | null): Named {
  return { name: windowRange(window), window }
}

/** A chain of unordered rows has to finish all windows between those that have rows, so a plan keeps their bounds. */
function withHeldWindows(begun: Begun | null): Begun | null {
  if (begun === null || begun.chains.length === 0) return begun
  const windows = new Map(begun.windows)
  for (const { windows: own, watermark } of begun.chains) {
    const { names } = own
    const last = names.findLastIndex((name) => begun.windows.get(name)?.done === false)
    if (last < 0) continue
    for (const name of names.slice(watermark, Math.max(last, watermark) + 1)) {
      if (!windows.has(name)) windows.set(name, { done: false })
    }
  }
  return { ...begun, windows }
}

/** The begun windows within the wanted range, unchanged, and the parts of the wanted windows that they do not cover. */
function fitWindows(
  wanted: readonly Named[],
  begun: ReadonlyMap<string, { readonly done: boolean }>,
  query: string,
  where: string,
): readonly Named[] {
  const windows = wanted.map(({ window }) => window).filter((window) => window !== null)
  if (windows.length < wanted.length || begun.has(windowRange(null))) {
    throw new ExportError({
      kind: 'config',
      what: `${query} was exported ${windows.length < wanted.length ? 'in windows' : 'without windows'} before, and extract.windows has changed since`,
      where,
      next: 'Restore extract.windows, choose another load.path, or start over with --fresh.',
    })
  }
  const [from, until] = [windows[0]?.from ?? 0, windows.at(-1)?.until ?? 0]
  const kept: Window[] = []
  for (const [name, { done }] of begun) {
    const window = parseWindow(name)
    if (window === null || window.until <= from || window.from >= until) continue
    if (!done && (window.from < from || window.until > until)) {
      throw new ExportError({
        kind: 'config',
        what: `${query}/${name} is partly exported, and the new windows would cut it`,
        where,
        next: 'Finish it first with the earlier extract.windows, choose another load.path, or start over with --fresh.',
      })
    }
    kept.push(window)
  }
  kept.sort((a, b) => a.from - b.from)
  return [...kept, ...subtract(windows, kept)].sort((a, b) => a.from - b.from).map(named)
}

/** Subtracts ranges from windows; both are sorted. */
function subtract(windows: readonly Window[], ranges: readonly Window[]): Window[] {
  const left: Window[] = []
  let first = 0
  for (const window of windows) {
    let { from } = window
    while (first < ranges.length && ranges[first]!.until <= from) first++
    for (let at = first; at < ranges.length && ranges[at]!.from < window.until; at++) {
      const range = ranges[at]!
      if (range.from > from) left.push({ from, until: range.from })
      from = Math.max(from, range.until)
    }
    if (from < window.until) left.push({ from, until: window.until })
  }
  return left
}

const HOUR = 3_600_000_000
const DAY = 24 * HOUR
/** 1970-01-05, a Monday. */
const FIRST_MONDAY = 4 * DAY

/**
 * Half-open UTC windows, oldest first. Weeks (from Monday), months and years follow the calendar; others count from
 * `from`. The future is never exported: rows imported later would be missed. With `until: now` windows ended `lag`
 * ago at least, and a single one is cut at the last full hour before. Source: service spec 4.2, `filters.imported_at`.
 */
export function splitWindows(settings: WindowSettings, now: Micros): readonly Window[] {
  const ripe = now - settings.lagMs * 1000
  const lastHour = Math.floor(ripe / HOUR) * HOUR
  const end = settings.until === 'now' ? (settings.every === null ? lastHour : ripe) : settings.until
  const until = end > ripe ? lastHour : end
  const wholeOnly = settings.until === 'now' && settings.every !== null
  const windows: Window[] = []
  for (let from = settings.from; from < until; ) {
    const next = settings.every === null ? until : boundary(from, settings.every, settings.from, 1)
    if (next > until && wholeOnly) break
    if (windows.length === MAX_WINDOWS)
      throw new ExportError({
        kind: 'config',
        what: `The range splits into more than ${MAX_WINDOWS} windows, and each costs at least one request for each query`,
        where: 'extract.windows',
        next: 'Choose a later from or a longer every.',
      })
    windows.push({ from, until: Math.min(next, until) })
    from = next
  }
  return windows
}

/** Windows that have begun and are too young to be exported; of one that is cut, the rest. */
export function waitingWindows(settings: WindowSettings, now: Micros): readonly Window[] {
  const { until, every } = settings
  const end = splitWindows(settings, now).at(-1)?.until ?? settings.from
  if (until !== 'now') return end < Math.min(until, now) ? [{ from: end, until }] : []
  const waiting: Window[] = []
  for (let from = end; every !== null && from < now; from = waiting.at(-1)!.until)
    waiting.push({ from, until: boundary(from, every, settings.from, 1) })
  return waiting
}

/** The window of a length that an instant belongs to, by the UTC calendar; hours and days count from 1970. */
export function windowAt(at: Int64, every: WindowLength): Window {
  // The bounds are whole seconds, so a rounded time is off by one window at most.
  const near = Number(at)
  const begin = boundary(near, every, 0, 0)
  const from = at < begin ? boundary(begin - 1_000_000, every, 0, 0) : begin
  // Names of windows have years of four digits.
  return { from: Math.max(from, FIRST), until: Math.min(boundary(from, every, 0, 1), LAST) }
}

/** 0001-01-01, and the last second of 9999. */
const FIRST = -62_135_596_800_000_000
const LAST = 253_402_300_799_000_000

/** Where the window of an instant begins, or the one `after` it. @param origin from which hours and days count */
function boundary(at: Micros, every: WindowLength, origin: Micros, after: 0 | 1): Micros {
  if (every.unit === 'month' || every.unit === 'year') {
    const date = new Date(Math.floor(at / 1000))
    const [years, months] = every.unit === 'year' ? [after, -date.getUTCMonth()] : [0, after]
    // Years before 100 as they are: `Date.UTC` takes them for years of the last century.
    return new Date(0).setUTCFullYear(date.getUTCFullYear() + years, date.getUTCMonth() + months, 1) * 1000
  }
  const [start, length] =
    'count' in every ? [origin, every.count * (every.unit === 'hour' ? HOUR : DAY)] : [FIRST_MONDAY, 7 * DAY]
  return start + (Math.floor((at - start) / length) + after) * length
}
