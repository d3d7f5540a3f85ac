import type { Clock } from '../../core/index.ts'

/** Lets callers in one at a time, in the order in which they came. */
export class InTurn {
  #last: Promise<void> = Promise.resolve()

  /**
   * @param due what the caller waits for once those before have gone on
   * @returns what that came to, and what lets the next caller in
   * @throws the signal's reason, or what `due` throws; those behind still wait for those before
   */
  async enter<T>(due: () => Promise<T>, signal: AbortSignal): Promise<{ readonly due: T; end(): void }> {
    signal.throwIfAborted()
    const previous = this.#last
    let end = (): void => {}
    this.#last = new Promise((resolve) => {
      end = resolve
    })
    try {
      await settled(previous, signal)
      return { due: await due(), end }
    } catch (error) {
      void previous.then(end)
      throw error
    }
  }
}

/** Timers may fire early: only the clock decides. */
export async function sleepUntil(
  monotonicMs: () => number,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const waitMs = monotonicMs() - clock.monotonicMs()
    if (waitMs <= 0) return
    await clock.sleep(waitMs, signal)
  }
}

/** Waits for a promise that never rejects, or until the signal aborts. */
function settled(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    void promise.then(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    })
  })
}
