import {
  ExportError,
  MAX_WINDOWS,
  type Micros,
  type Window,
  type WindowLength,
  type WindowSettings,
} from '../core/index.ts'

const HOUR = 3_600_000_000
const DAY = 24 * HOUR
/** 1970-01-05, a Monday. */
const FIRST_MONDAY = 4 * DAY

/**
 * Splits the range of a pipeline into half-open UTC windows, oldest first. Weeks (from Monday), months and
 * years follow the calendar, so the first and last window may be shorter; hours and days count from `from`.
 *
 * The future is never exported: what is not yet imported would be missed for ever once its window counts as
 * done. With `until: now` only windows that ended at least the lag ago are there; a single window, or an
 * `until` that lies ahead, is cut at the last full hour before that.
 * Source: service spec 4.2, `filters.imported_at`.
 */
export function splitWindows(settings: WindowSettings, now: Micros): readonly Window[] {
  const ripe = now - settings.lagMs * 1000
  const lastHour = Math.floor(ripe / HOUR) * HOUR
  const end = settings.until === 'now' ? (settings.every === null ? lastHour : ripe) : settings.until
  const until = end > ripe ? lastHour : end
  const wholeOnly = settings.until === 'now' && settings.every !== null
  const windows: Window[] = []
  for (let from = settings.from; from < until; ) {
    const next = settings.every === null ? until : windowEnd(from, settings.every, settings.from)
    if (next > until && wholeOnly) break
    if (windows.length === MAX_WINDOWS) throw tooManyWindows()
    windows.push({ from, until: Math.min(next, until) })
    from = next
  }
  return windows
}

function tooManyWindows(): ExportError {
  return new ExportError(
    'config',
    `The range splits into more than ${MAX_WINDOWS} windows, and each costs at least one request for each query`,
    'extract.windows',
    'Choose a later from or a longer every.',
  )
}

function windowEnd(from: Micros, every: WindowLength, origin: Micros): Micros {
  switch (every.unit) {
    case 'hour':
    case 'day': {
      const length = every.count * (every.unit === 'hour' ? HOUR : DAY)
      return origin + (Math.floor((from - origin) / length) + 1) * length
    }
    case 'week':
      return FIRST_MONDAY + (Math.floor((from - FIRST_MONDAY) / (7 * DAY)) + 1) * 7 * DAY
    case 'month': {
      const date = new Date(Math.floor(from / 1000))
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) * 1000
    }
    case 'year':
      return Date.UTC(new Date(Math.floor(from / 1000)).getUTCFullYear() + 1, 0, 1) * 1000
  }
}
