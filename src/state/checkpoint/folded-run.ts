import type { Month, PlainError } from '../../core/index.ts'
import type { Entry, JournalEntry, RunBy, RunEndEntry, RunFigures, RunStatus } from '../journal-entry.ts'

export type RunCounts = {
  readonly rows: number
  /** With retries. After a kill: only those of committed pages and of failed partitions. */
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

export type FoldedRun = RunCounts & {
  readonly run: string
  readonly started_at: string
  readonly finished_at: string | null
  readonly status: RunStatus | null
  readonly version: string
  readonly by: RunBy
  /** Months (UTC) after its first one, and the searches of the run before each. */
  readonly months: readonly { readonly month: string; readonly searches: number }[]
  readonly repeated: number
  readonly forgotten: number
  readonly failures: number
  readonly reasons: Readonly<Record<string, number>>
  /** Why it is not complete; null: it is, is at work, or was killed. */
  readonly error: PlainError | null
}

export const NEW_RUN = {
  by: { organization: null, tenant: null, host: '' },
  ...NO_RUN_COUNTS,
  finished_at: null,
  status: null,
  repeated: 0,
  forgotten: 0,
  failures: 0,
  reasons: {},
  error: null,
}

type MutableRun = { -readonly [K in keyof FoldedRun]: FoldedRun[K] }

export class Runs {
  readonly all: MutableRun[] = []

  /** Begins a run, or resumes the last one, whose figures count as well. @returns false if it resumes */
  begin({ run, started_at, version, by }: Entry<'run'>): boolean {
    const last = this.all.at(-1)
    if (last?.run === run) {
      Object.assign(last, { finished_at: null, status: null, error: null, version, by })
      return false
    }
    this.all.push({ ...NEW_RUN, run, started_at, version, by, months: [] })
    return true
  }

  /** What an entry leaves out stays as it is: the sums over the pages of the run. */
  take({ kind: _, run: name, ...entry }: RunEndEntry | Entry<'unfinished'>): void {
    const { searches: searchesSpent, searches_remaining: searchesRemaining, ...others } = entry
    const given = Object.entries({ ...others, searchesSpent, searchesRemaining })
    const run = this.#find(name)
    if (run !== undefined)
      Object.assign(run, Object.fromEntries(given.filter(([, value]) => value !== undefined)))
  }

  beginMonth({ run: name, month, searches }: Entry<'month'>): void {
    const run = this.#find(name)
    if (run !== undefined) run.months = [...run.months, { month, searches }]
  }

  /** Adds to the figures of the current run. The end entry replaces them; a killed run has no end entry. */
  count(change: (run: MutableRun) => void): void {
    const run = this.all.at(-1)
    if (run !== undefined && run.finished_at === null) change(run)
  }

  #find(name: string): MutableRun | undefined {
    return this.all.findLast(({ run }) => run === name)
  }
}

/** The entries of a run in a checkpoint: they have the figures of its pages, too. */
export function* runEntries(folded: FoldedRun): Generator<JournalEntry> {
  const { run, started_at, version, by, finished_at, status, error, months, ...counts } = folded
  yield { kind: 'run', run, started_at, version, by }
  for (const month of months) yield { kind: 'month', run, ...month }
  const { rows, quarantined, repeated, forgotten, failures } = counts
  const ofPages = { rows, quarantined, repeated, forgotten, failures }
  if (finished_at !== null && status !== null)
    yield { ...endEntry(run, { finished_at, status, error }, counts), ...ofPages }
  else yield { kind: 'unfinished', ...figuresOf(run, counts), ...ofPages }
}

type EndFigures = Pick<FoldedRun, keyof Omit<RunCounts, 'rows' | 'quarantined'> | 'reasons'>

export function endEntry(
  run: string,
  { finished_at, status, error }: Pick<FoldedRun, 'error'> & Pick<RunEndEntry, 'finished_at' | 'status'>,
  figures: EndFigures,
): RunEndEntry {
  const { retries, reasons } = figures
  return {
    kind: 'end',
    ...figuresOf(run, figures),
    finished_at,
    status,
    retries,
    reasons: Object.keys(reasons).length === 0 ? undefined : reasons,
    error: error ?? undefined,
  }
}

function figuresOf(run: string, { requests, searchesSpent, searchesRemaining }: EndFigures): RunFigures {
  return {
    run,
    requests,
    searches: searchesSpent ?? undefined,
    searches_remaining: searchesRemaining ?? undefined,
  }
}

/** Searches of the quota that the runs of a data set have spent, by calendar month (UTC). */
export function searchesByMonth(runs: readonly FoldedRun[]): ReadonlyMap<Month, number> {
  const sums = new Map<Month, number>()
  const add = (month: Month, searches: number): void => {
    // A killed run counts only committed pages, so its sum may be less than what it spent before a month began.
    sums.set(month, (sums.get(month) ?? 0) + Math.max(0, searches))
  }
  for (const { started_at, months, searchesSpent } of runs) {
    let month = started_at.slice(0, 7)
    let before = 0
    for (const next of months) {
      add(month, next.searches - before)
      month = next.month
      before = next.searches
    }
    add(month, (searchesSpent ?? 0) - before)
  }
  return sums
}
