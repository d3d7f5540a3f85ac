export type RateLimit = {
  /** Takes a request's permission; false when it comes too early, which costs nothing. */
  take(nowMs: number): boolean
}

/**
 * A token bucket that holds one token. Requests may come a touch early (timers and sockets jitter), but
 * the touch is lent, not given: the long-run rate never passes the limit.
 * @param perSecond 0 = unlimited
 */
export function rateLimit(perSecond: number, toleranceMs: number): RateLimit {
  let readyAtMs = Number.NEGATIVE_INFINITY
  return {
    take(nowMs) {
      if (perSecond === 0) return true
      if (nowMs < readyAtMs - toleranceMs) return false
      readyAtMs = Math.max(nowMs, readyAtMs) + 1000 / perSecond
      return true
    },
  }
}
