import { type Clock, systemClock } from '../../src/core/index.ts'

/** A clock that skips the waits for heartbeats, so that twenty seconds without one pass at once. */
export function hurriedClock(): Clock {
  let skippedMs = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + skippedMs,
    sleep: async (ms, signal) => {
      if (ms !== 500) return systemClock.sleep(ms, signal)
      skippedMs += ms
    },
  }
}
