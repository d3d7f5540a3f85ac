import { fraction, hash32 } from './words.ts'

export type Timeline = {
  readonly total: number
  /** Microseconds since 1970 at which the record at a position was imported; never falls. */
  at(position: number): number
  /** The first position imported at or after an instant; `total` when there is none. */
  firstAtOrAfter(micros: number): number
}
const SECOND_MICROS = 1_000_000
const JITTER = 101
const TIE = 102
/** One day in so many has records exactly at its midnight (month starts always have). */
const MIDNIGHTS = 10
/** One block in so many shares one microsecond. */
const TIES = 40

/**
 * Spreads records over [from, until), in microseconds. Position g belongs to domain g % slots, so a window is one range
 * for all domains. Some neighbours share an instant: those that a careless exporter loses or doubles at an edge.
 */
export function timeline(
  seed: number,
  slots: number,
  perSlot: number,
  from: number,
  until: number,
): Timeline {
  const total = slots * perSlot
  const span = until - from
  const step = span / Math.max(1, total)
  const months = monthStarts(from, until)
  // With hardly any data, whole blocks would leave no ordinary records.
  const roomy = perSlot / 4 >= 4 * months.length
  const blockSize = slots * (roomy ? 4 : 1)
  const snapped = new Map<number, number>()
  if (roomy) {
    for (const month of months) snapped.set(Math.floor((month - from) / step / blockSize), month)
  }

  const blockInstant = (block: number): number | null => {
    const month = snapped.get(block)
    if (month !== undefined) return month
    const start = from + block * blockSize * step
    const end = from + (block + 1) * blockSize * step
    const bits = hash32(seed, block, TIE)
    const midnight = Math.ceil(start / DAY_MICROS) * DAY_MICROS
    if (roomy && midnight < end && bits % MIDNIGHTS === 0) return midnight
    if ((bits >>> 8) % TIES !== 0) return null
    const second = Math.ceil(start / SECOND_MICROS) * SECOND_MICROS
    return second < end ? second : Math.ceil(start)
  }

  let lastBlock = -1
  let lastInstant: number | null = null
  const at = (position: number): number => {
    const block = Math.floor(position / blockSize)
    if (block !== lastBlock) {
      lastBlock = block
      lastInstant = blockInstant(block)
    }
    // The last block may reach beyond the end, where no record may lie.
    if (lastInstant !== null && lastInstant < until) return lastInstant
    const micros = from + Math.floor((position + fraction(seed, position, JITTER)) * step)
    return Math.min(micros, until - 1)
  }

  return { total, at, firstAtOrAfter: (micros) => firstIndex(total, (position) => at(position) >= micros) }
}

/** The first index from which on a test holds, by bisection; `length`: it holds for none. */
export function firstIndex(length: number, holds: (index: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

function monthStarts(from: number, until: number): number[] {
  const starts: number[] = []
  const first = new Date(from / 1000)
  for (let month = first.getUTCMonth(); ; month++) {
    const micros = Date.UTC(first.getUTCFullYear(), month, 1) * 1000
    if (micros >= until) return starts
    if (micros >= from) starts.push(micros)
  }
}

const DAY_MICROS = 86_400_000_000

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?)?$/i

/**
 * ISO 8601 as microseconds since 1970. No offset is UTC, no time midnight. Further digits are rounded, so that an
 * inclusive bound neither gains nor loses one. @returns null: no date-time, or a day that does not exist
 */
export function parseTimestamp(text: string, round: 'up' | 'down' = 'down'): number | null {
  const match = ISO.exec(text)
  if (!match) return null
  const [, year, month, day, hour = '0', minute = '0', second = '0', digits = '', offset = 'Z'] = match
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day))
  const date = new Date(ms)
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return null
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null
  let micros = Number(digits.slice(0, 6).padEnd(6, '0'))
  if (round === 'up' && /[1-9]/.test(digits.slice(6))) micros += 1
  const seconds = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  return ms * 1000 + seconds * 1_000_000 + micros - offsetMinutes(offset) * 60_000_000
}

/** As Python's `isoformat` writes it: the published sample looks like it. @param bare no fraction where it is zero */
export function formatTimestamp(micros: number, offset = '+00:00', bare = false): string {
  const local = micros + offsetMinutes(offset) * 60_000_000
  const ms = Math.floor(local / 1000)
  const text = new Date(ms).toISOString()
  const fraction = `${text.slice(20, 23)}${String(local - ms * 1000).padStart(3, '0')}`
  return `${text.slice(0, 19)}${bare && fraction === '000000' ? '' : `.${fraction}`}${offset}`
}

function offsetMinutes(offset: string): number {
  if (offset === 'Z' || offset === 'z') return 0
  const minutes = Number(offset.slice(1, 3)) * 60 + Number(offset.slice(-2))
  return offset.startsWith('-') ? -minutes : minutes
}
