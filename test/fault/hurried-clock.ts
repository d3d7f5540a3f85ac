import { type Clock, systemClock } from '../../src/core/index.ts'

/** Waits in no time while it waits for heartbeats, so that twenty seconds without one are over at once. */
export function hurriedClock(): Clock {
  let ahead = 0
  return {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + ahead,
    sleep: async (ms, signal) => {
      if (ms !== 500) return systemClock.sleep(ms, signal)
      ahead += ms
    },
  }
}
