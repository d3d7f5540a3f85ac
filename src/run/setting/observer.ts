/** How a run speaks while it is at work. Nothing here ever holds a secret or a value of a record. */
export type RunObserver = {
  log(level: LogLevel, message: string, fields?: LogFields): void
  progress(progress: Progress): void
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, string | number | boolean | null>>

export type Progress = {
  readonly partitionsTotal: number
  readonly partitionsDone: number
  readonly partitionsFailed: number
  /** Rows, requests, retries and quarantined items of this run. */
  readonly rows: number
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
  /** What the service said last; null while it has not. */
  readonly searchesRemaining: number | null
  /** While the service has everybody wait: until when, epoch milliseconds. */
  readonly pausedUntilMs: number | null
}

export const silentObserver: RunObserver = { log: () => {}, progress: () => {} }
