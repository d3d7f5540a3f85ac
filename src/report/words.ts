import type { Between, Share, Shown, Verdict } from './data.ts'
import { MIN_ROWS } from './disclosure.ts'

export const NOT_SHOWN = 'not shown'

export function few(rows: Shown): string {
  return rows === null ? NOT_SHOWN : number(rows)
}

/** `1,234,567` */
export function number(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `6 partitions`, `1 partition` */
export function counted(value: number, what: string): string {
  return `${number(value)} ${what}${value === 1 ? '' : 's'}`
}

export function size(bytes: number): string {
  const units = ['kB', 'MB', 'GB', 'TB']
  let value = bytes / 1000
  let unit = 0
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000
  return `${value >= 10 ? Math.ceil(value) : Math.ceil(value * 10) / 10} ${units[unit]}`
}

/** `2024-07-22 19:25`, a date alone for midnights. */
export function time(text: string): string {
  return text.slice(0, 16).replace('T00:00', '').replace('T', ' ')
}

export function shareText(share: Share): string {
  if (typeof share === 'number') return `${share} %`
  return share === 'few' ? `< ${MIN_ROWS} rows` : share
}

/** Bounds that are closer than this are shown as one number of two digits. */
const CLOSE = 1.2

/** `57`, `1,234`, `1.2k`, `1–9`, `≥100`, `–` */
export function betweenText({ least, most }: Between): string {
  if (least === 0 && most === null) return '–'
  if (least === most) return number(least)
  if (most !== null && most < 10) return `${least}–${most}`
  return most !== null && least > 0 && most / least < CLOSE ? short(least) : `≥${short(least)}`
}

/** The first two digits, truncated: `1.2k`, `5.0k`, `340`, `56M`. */
function short(value: number): string {
  const step = 10 ** Math.max(0, String(value).length - 2)
  const cut = Math.floor(value / step) * step
  const unit = cut >= 1e9 ? 3 : cut >= 1e6 ? 2 : cut >= 1e3 ? 1 : 0
  const shown = cut / 1000 ** unit
  return unit > 0 && shown < 10 ? `${shown.toFixed(1)}${UNITS[unit]}` : `${shown}${UNITS[unit]}`
}

const UNITS = ['', 'k', 'M', 'G']

/** How passwords and their hashes are masked. */
export const SECRETS: Readonly<Record<string, string>> = {
  redact: 'removed',
  drop: 'removed, with their column',
  partial: 'first and last character only',
  hmac: 'keyed digests (HMAC-SHA256)',
  plaintext: 'in clear',
}

/** How addresses and other identities are masked. */
export const IDENTITIES: Readonly<Record<string, string>> = {
  keep: 'in clear',
  hmac: 'keyed digests (HMAC-SHA256)',
  drop: 'removed, with their column',
}

/** Why a partition failed, and what to do, by the kind of its error. */
export const FAILURES: Readonly<Record<string, readonly [reason: string, next: string]>> = {
  transient: ['the service or the network did not give a usable response', 'run again'],
  refused: ['the service rejected the search', 'correct what spillway status names, then run again'],
  cursor: ['the service rejected a cursor, or repeated one', 'run again; spillway status says more'],
  data: ['the responses are not as documented', 'inspect _quarantine and spillway status, then run again'],
  damaged: ['files were damaged', 'run again; spillway verify says more'],
  storage: ['the storage refused', 'make room or correct permissions, then run again'],
}

/** The verdict in one sentence. */
export function verdictText(verdict: Verdict): string {
  const { left_out } = verdict
  return `${stateText(verdict)}${left_out.length === 0 ? '' : `, but ${left_out.join(', and ')}`}`
}

function stateText({ complete, partitions, span }: Verdict): string {
  if (partitions === null) {
    return complete ? 'Complete' : 'INCOMPLETE: it has no _SUCCESS; the figures below may be too low'
  }
  const { total, done, failed, partial, pending } = partitions
  if (complete) {
    const range = span === null ? '' : `, ${rangeText(span.from, span.until)}`
    return total === 1
      ? `Complete: its one partition${range}`
      : `Complete: all ${number(total)} partitions${range}`
  }
  if (done === total) return 'INCOMPLETE: it has no _SUCCESS; the figures below may be too low'
  const parts = [
    [failed, 'failed'],
    [partial, 'not finished'],
    [pending, 'not begun'],
  ] as const
  const said = parts.filter(([count]) => count > 0)
  const text = said.map(
    ([count, what], i) => `${number(count)}${i === 0 ? ` of ${counted(total, 'partition')}` : ''} ${what}`,
  )
  return `INCOMPLETE: ${text.join(', ')}; the figures below are too low`
}

/** A range as people read it: `2024-01-01 to 2024-12-31`, its last day included. */
export function rangeText(from: string, until: string): string {
  return `${time(from)} to ${until === 'now' ? 'now' : lastOf(until)}`
}

/** The last day before a midnight, or the instant itself. */
export function lastOf(until: string): string {
  if (!/^[\d-]+(?:T00:00:00Z)?$/.test(until)) return time(until)
  return new Date(Date.parse(until) - 1).toISOString().slice(0, 10)
}
