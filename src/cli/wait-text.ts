import type { Progress } from '../run/index.ts'
import { plainLine } from './plain-text.ts'
import { count, stopwatch } from './quantities.ts'

// What takes less is the usual course of things.
const LONG_MS = 3000

/** What a run waits for right now, in words; null: for nothing but its pace, answers and the disk as usual. */
export function waitText({ pausedUntilMs, waits }: Progress, nowMs: number): string | null {
  const { retry, retries, tokenSinceMs, answerSinceMs, diskSinceMs } = waits
  if (pausedUntilMs !== null && pausedUntilMs > nowMs) {
    return `the service answered 429 and wants a pause: goes on in ${seconds(pausedUntilMs - nowMs)}`
  }
  if (retry !== null) {
    const { number, of, untilMs, reason } = retry
    const others = retries > 1 ? `, and ${count(retries - 1)} more` : ''
    return `retry ${number} of ${of} in ${seconds(untilMs - nowMs)}${others}: ${plainLine(reason)}`
  }
  const longest = [
    { sinceMs: tokenSinceMs, what: 'a token' },
    { sinceMs: diskSinceMs, what: 'the disk' },
    { sinceMs: answerSinceMs, what: 'an answer' },
  ].find(({ sinceMs }) => sinceMs !== null && nowMs - sinceMs >= LONG_MS)
  return longest === undefined ? null : `waits for ${longest.what}: ${seconds(nowMs - longest.sinceMs!)}`
}

/** `8 s`, `1:40` */
function seconds(ms: number): string {
  return ms < 99_500 ? `${Math.max(0, Math.ceil(ms / 1000))} s` : stopwatch(ms)
}
