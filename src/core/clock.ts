import { setTimeout as delay } from 'node:timers/promises'

/** Time as the pipeline sees it, so that tests can bring their own. */
export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds of a clock that never jumps; only differences mean something. */
  monotonicMs(): number
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: async (ms, signal) => {
    try {
      // A timer set to more than 2^31-1 ms fires at once, so long waits are cut into days.
      for (let left = ms; left > 0; left -= 86_400_000) {
        await delay(Math.min(left, 86_400_000), undefined, { signal })
      }
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  },
}
