import { ExportError } from '../core/index.ts'
import { SIGNAL_CODES, type Signal } from './exit-code.ts'
import type { Screen } from './screen.ts'

// Together less than the ten seconds that schedulers leave between SIGTERM and SIGKILL.
const GRACE_MS = 5_000
const LIMIT_MS = 9_000

export type StopSignals = {
  /** Aborts at the first SIGINT or SIGTERM; the reason is an ExportError `interrupted`. */
  readonly stop: AbortSignal
  /** Aborts when what was in hand then is not finished five seconds later. */
  readonly abort: AbortSignal
  release(): void
}

/** SIGINT and SIGTERM: the first asks for an orderly end, the second ends the process at once. */
export class Signals {
  #received: Signal | null = null

  /** The signal that came first. */
  get received(): Signal | null {
    return this.#received
  }

  /** Listens until released. `onFirst` tells people what happens now. */
  listen(onFirst: (signal: Signal) => void): StopSignals {
    const stop = new AbortController()
    const abort = new AbortController()
    const timers: NodeJS.Timeout[] = []
    const handler = (signal: Signal): void => {
      if (stop.signal.aborted) process.exit(SIGNAL_CODES[signal])
      this.#received = signal
      onFirst(signal)
      const reason = new ExportError('interrupted', `Stopped by ${signal}`, '', 'Run it again to go on.')
      stop.abort(reason)
      timers.push(
        setTimeout(() => abort.abort(reason), GRACE_MS),
        // What is committed is on disk, so nothing is lost by not waiting for what hangs.
        setTimeout(() => process.exit(SIGNAL_CODES[signal]), LIMIT_MS),
      )
      for (const timer of timers) timer.unref()
    }
    process.on('SIGINT', handler).on('SIGTERM', handler)
    return {
      stop: stop.signal,
      abort: abort.signal,
      release() {
        process.off('SIGINT', handler).off('SIGTERM', handler)
        for (const timer of timers) clearTimeout(timer)
      },
    }
  }
}

/** What people read at the first signal. */
export function announceStop(signal: Signal, screen: Screen): void {
  const how = signal === 'SIGINT' ? 'Ctrl-C again' : 'another signal'
  screen.write(`\nStopping: what is in hand is brought to its end. ${how} ends at once; nothing is lost.\n`)
}
