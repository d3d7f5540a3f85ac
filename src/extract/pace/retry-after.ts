import type { IncomingHttpHeaders } from 'node:http'

/**
 * Milliseconds that an answer asks to wait, from its `Retry-After` header: seconds or an HTTP date.
 * A date is compared with the answer's own `Date` where it has one: the two clocks need not agree.
 * @returns null when there is no such header, or nothing that can be read
 */
export function retryAfterMs(headers: IncomingHttpHeaders, nowMs: number): number | null {
  const value = headers['retry-after']?.trim()
  if (value === undefined) return null
  if (/^\d+(\.\d+)?$/.test(value)) return Math.min(Number(value) * 1000, LONGEST_MS)
  const until = httpDate(value)
  if (until === null) return null
  const waitMs = until - (httpDate(headers.date) ?? nowMs)
  return Math.min(Math.max(0, waitMs), LONGEST_MS)
}

// A year: whatever is longer means the same, and sums with it stay valid dates.
const LONGEST_MS = 366 * 86_400_000

/** Only dates of the HTTP form (RFC 9110 5.6.7 begins each with a day's name): Date.parse takes much more. */
function httpDate(value: string | undefined): number | null {
  if (value === undefined || !/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(value)) return null
  const ms = Date.parse(value)
  return Number.isNaN(ms) ? null : ms
}
