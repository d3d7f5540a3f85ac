export const RUN_STATUSES = ['complete', 'failed', 'budget', 'interrupted'] as const

export type RunStatus = (typeof RUN_STATUSES)[number]

export type RunCounts = {
  readonly rows: number
  /** With retries. */
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
  /** Quota spent, by the service's own count, the first page estimated; null: not reported. */
  readonly searchesSpent: number | null
  /** Quota left, by the service's last response; null: not reported. */
  readonly searchesRemaining: number | null
}

export const NO_RUN_COUNTS: RunCounts = {
  rows: 0,
  requests: 0,
  retries: 0,
  quarantined: 0,
  searchesSpent: null,
  searchesRemaining: null,
}
