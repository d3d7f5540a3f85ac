import { closeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { ExportError } from '../../core/index.ts'
import { SIGNAL_CODES, type Signal } from './exit-code.ts'
import type { Screen } from './screen.ts'

// Together less than the ten seconds that schedulers leave between SIGTERM and SIGKILL.
const GRACE_MS = 5_000
const LIMIT_MS = 9_000

export type StopSignals = {
  /** Aborts at the first SIGHUP, SIGINT or SIGTERM; the reason is an ExportError `interrupted`. */
  readonly stop: AbortSignal
  /** Aborts five seconds later, if the command has not ended. */
  readonly abort: AbortSignal
}

const SIGNALS = Object.keys(SIGNAL_CODES) as readonly Signal[]

/** The first signal ends the command in order, the second ends the process at once. */
export class Signals {
  /** The signal that came first. */
  received: Signal | null = null

  async during<T>(work: (signals: StopSignals) => Promise<T>, onFirst: (signal: Signal) => void): Promise<T> {
    const stop = new AbortController()
    const abort = new AbortController()
    const timers: NodeJS.Timeout[] = []
    // A closed terminal cannot be distinguished from a file, so terminals are listed before.
    const terminals = [0, 1, 2].filter((fd) => isatty(fd))
    const handler = (signal: Signal): void => {
      // If a terminal is closed, the system and the shell both send SIGHUP.
      if (stop.signal.aborted && signal === 'SIGHUP') return
      if (stop.signal.aborted) process.exit(SIGNAL_CODES[signal])
      this.received = signal
      if (signal === 'SIGHUP') process.once('exit', () => closeTerminals(terminals))
      onFirst(signal)
      const reason = new ExportError({
        kind: 'interrupted',
        what: `Stopped by ${signal}`,
        where: '',
        next: 'Run it again to resume.',
      })
      stop.abort(reason)
      timers.push(
        setTimeout(() => abort.abort(reason), GRACE_MS),
        // Nothing is lost: committed pages are on disk.
        setTimeout(() => process.exit(SIGNAL_CODES[signal]), LIMIT_MS),
      )
      for (const timer of timers) timer.unref()
    }
    for (const signal of SIGNALS) process.on(signal, handler)
    try {
      return await work({ stop: stop.signal, abort: abort.signal })
    } finally {
      for (const signal of SIGNALS) process.off(signal, handler)
      for (const timer of timers) clearTimeout(timer)
    }
  }
}

/** At exit Node.js restores the state of terminals, and aborts if they were closed. */
function closeTerminals(terminals: readonly number[]): void {
  for (const fd of terminals) {
    try {
      closeSync(fd)
    } catch {
      // It was closed before.
    }
  }
}

type Listener = { readonly signals: Signals; readonly screen: Screen }

function announceStop(signal: Signal, { screen }: Listener): void {
  const how = signal === 'SIGINT' ? 'Ctrl-C again' : 'Another signal'
  screen.write(`\nStopping after the work in progress. ${how} ends it at once; nothing is lost.\n`)
}

/** Of work that ends at once. */
export function unannounced(): void {}

export function untilStopped<T>(
  io: Listener,
  work: (signals: StopSignals) => Promise<T>,
  onFirst: (signal: Signal, io: Listener) => void = announceStop,
): Promise<T> {
  return io.signals.during(work, (signal) => onFirst(signal, io))
}
