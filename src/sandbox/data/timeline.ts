import { fraction, hash32 } from './words.ts'

export type Timeline = {
  /** Records in all. */
  readonly total: number
  /** Microseconds since 1970 at which the record at a position was imported; never falls. */
  at(position: number): number
  /** The first position imported at or after an instant; `total` when there is none. */
  firstAtOrAfter(micros: number): number
}

const DAY_MICROS = 86_400_000_000
const SECOND_MICROS = 1_000_000
const JITTER = 101
const TIE = 102
/** One day in so many has records exactly at its midnight (month starts always have). */
const MIDNIGHTS = 10
/** One block in so many shares one microsecond. */
const TIES = 40

/**
 * Spreads records over [from, until), both in microseconds. All domains share one timeline, in turns:
 * position g belongs to domain g % slots. So a window is a range of positions, for every domain at once.
 *
 * Some blocks of neighbouring positions (four records of every domain) fall on one instant: a month
 * start, a midnight, a whole second. They are the records that a careless exporter loses or doubles at
 * the edge of a window or of a page.
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

  const firstAtOrAfter = (micros: number): number => {
    let low = 0
    let high = total
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (at(middle) < micros) low = middle + 1
      else high = middle
    }
    return low
  }
  return { total, at, firstAtOrAfter }
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
