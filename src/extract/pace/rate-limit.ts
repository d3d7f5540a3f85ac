import { type Clock, getOrInsert, isSecondSearch, type ServiceSettings } from '../../core/index.ts'

/** Each tier has its own rate limit; everything but searches and feeds shares one. */
export type Tier = 'search' | 'basic' | 'feed'

/** The rate limit of one tier. It gives permits in the order of requests, one at a time, never faster than allowed. */
export type RateLimit = ReturnType<typeof rateLimit>

// Requests take different times on their way: at 1/s one may be 13 ms late, and the next is not too early.
const MARGIN = 1.013
// A machine with much to do may take longer. A response that comes within this share of the interval tells when at latest.
const LATE = 0.1
// The very first request runs cold code with cold caches on both sides and may arrive later than that.
const FIRST_MS = 100
// Each 429 shows that the margin was not enough. It grows to at most a tenth: a 429 costs far more than a slower pace.
const WIDER = 1.02
const WIDEST = 1.1
// A rate that was halved is doubled after a minute without a 429. If that brings one, the next attempt comes later.
const FIRST_PATIENCE_MS = 60_000
const MAX_PATIENCE_MS = 30 * 60_000
// Timers have a resolution of 1 ms or more. If the interval is as short as that, a late timer may be compensated.
const CATCH_UP_MS = 20

/** @param options.slowestPerSecond if the service's limit is not known: each 429 halves the rate, down to this */
export function rateLimit(options: { requestsPerSecond: number; slowestPerSecond?: number; clock: Clock }) {
  const { clock, requestsPerSecond, slowestPerSecond = requestsPerSecond } = options
  const fastestMs = 1000 / requestsPerSecond
  let exactMs = fastestMs
  const slowestMs = 1000 / Math.min(slowestPerSecond, requestsPerSecond)
  let intervalMs = exactMs * MARGIN
  let first = true
  let nextAt = Number.NEGATIVE_INFINITY
  let takenAt = Number.NEGATIVE_INFINITY
  let pausedUntil = Number.NEGATIVE_INFINITY
  let incidentAt = Number.NEGATIVE_INFINITY
  /** When the rate last changed, and last grew. */
  let changedAt = Number.NEGATIVE_INFINITY
  let raisedAt = Number.NaN
  let patienceMs = FIRST_PATIENCE_MS
  /** Resolves when the last permit requested so far has ended. */
  let lastEnded: Promise<void> = Promise.resolve()

  /** Waits for earlier callers, then until `dueMs`. @returns a function that lets the next caller in */
  async function enter(dueMs: () => number, signal: AbortSignal): Promise<() => void> {
    const leftMs = (): number => dueMs() - clock.monotonicMs()
    signal.throwIfAborted()
    const previous = lastEnded
    let end = (): void => {}
    lastEnded = new Promise((resolve) => {
      end = resolve
    })
    try {
      await orAborted(previous, signal)
      // Timers may fire early, so the clock decides.
      for (let waitMs = leftMs(); waitMs > 0; waitMs = leftMs()) await clock.sleep(waitMs, signal)
      return end
    } catch (error) {
      // Later callers still wait for the earlier ones.
      void previous.then(end)
      throw error
    }
  }

  function setRate(exact: number): void {
    exactMs = exact
    intervalMs = exact * MARGIN
  }

  function take(requestedAt: number): boolean {
    const now = clock.monotonicMs()
    if (now < pausedUntil) return false
    if (exactMs > fastestMs && now - changedAt >= patienceMs) {
      setRate(Math.max(exactMs / 2, fastestMs))
      changedAt = now
      raisedAt = now
    }
    // Lateness is compensated only if this caller was already waiting at the moment it was due.
    const mayCatchUp = intervalMs < CATCH_UP_MS && requestedAt <= nextAt
    const from = mayCatchUp ? Math.max(nextAt, now - CATCH_UP_MS) : now
    takenAt = now
    nextAt = from + intervalMs + (first ? FIRST_MS : 0)
    first = false
    return true
  }

  return {
    /** Resolves when the caller may send. The permit is held until the request is written or aborted. */
    async permit(signal: AbortSignal) {
      const requestedAt = clock.monotonicMs()
      // A pause may begin while we sleep.
      const dueMs = (): number => Math.max(nextAt, pausedUntil)
      const end = await enter(dueMs, signal)
      return {
        /** Called when the request is written: the interval begins here. @returns false: paused, send nothing */
        take(): boolean {
          const taken = take(requestedAt)
          if (taken) end()
          return taken
        },
        /** Lets the next caller continue; does nothing after a successful `take`. */
        end,
      }
    },
    /** @param sentMs when the request was sent whose response begins: it arrived before */
    responded(sentMs: number): void {
      const now = clock.monotonicMs()
      if (sentMs >= takenAt && now - sentMs <= LATE * exactMs) nextAt = Math.max(nextAt, now + exactMs)
    },
    /** Nobody sends before this moment of the monotonic clock. */
    pauseUntil(monotonicMs: number): void {
      pausedUntil = Math.max(pausedUntil, monotonicMs)
    },
    /** What was in flight at a 429 is one incident. @returns whether it is new */
    slowDown(sentMs: number): boolean {
      if (sentMs <= incidentAt) return false
      incidentAt = clock.monotonicMs()
      if (changedAt === raisedAt) patienceMs = Math.min(2 * patienceMs, MAX_PATIENCE_MS)
      changedAt = incidentAt
      if (exactMs < slowestMs) setRate(Math.min(exactMs * 2, slowestMs))
      else intervalMs = Math.min(intervalMs * WIDER, exactMs * WIDEST)
      return true
    },
    /** Milliseconds left of the pause; 0: none. */
    pausedForMs: () => Math.max(0, pausedUntil - clock.monotonicMs()),
  }
}

/** Waits for a promise; rejects with the signal's reason as soon as it aborts. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const stop = (): void => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

type RateLimits = Readonly<Record<Tier, RateLimit>>

/** By address, token and pace. They outlive a run: the next pipeline of the process may be the same organization's. */
const known = new WeakMap<Clock, Map<string, RateLimits>>()

/** The rate limits of the tiers. @param search the address of the credential search */
export function rateLimits(settings: ServiceSettings, search: URL, clock: Clock): RateLimits {
  const { baseUrl, auth, requestsPerSecond, basicRequestsPerSecond } = settings
  const { pathname } = search
  const key = JSON.stringify([baseUrl, auth.secretIn, requestsPerSecond, basicRequestsPerSecond, pathname])
  if (!known.has(clock)) known.set(clock, new Map())
  return getOrInsert(known.get(clock)!, key, () => newRateLimits(settings, pathname, clock))
}

/** The tier of the feeds is not known, so they have a limit of their own. */
function newRateLimits(
  { requestsPerSecond, basicRequestsPerSecond }: ServiceSettings,
  searchPath: string,
  clock: Clock,
): RateLimits {
  // The rate limit of the second search is not known: sources name four requests a second, and one.
  const slowest = isSecondSearch(searchPath) ? { slowestPerSecond: 1 } : {}
  return {
    search: rateLimit({ requestsPerSecond, clock, ...slowest }),
    basic: rateLimit({ requestsPerSecond: basicRequestsPerSecond, clock }),
    feed: rateLimit({ requestsPerSecond, slowestPerSecond: requestsPerSecond / 8, clock }),
  }
}
