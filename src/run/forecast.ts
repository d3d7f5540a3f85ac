import { getOrInsert, type NamedPipeline, parseWindow, type Window } from '../core/index.ts'
import type { CheckpointState } from '../state/index.ts'

/** Estimates the rows of new windows from earlier ones. */
export type Forecast = {
  /** By the median of rows a day in its last windows, or in those of all queries; null: there are none. */
  rowsOf(query: string, range: Window | null): number | null
}

const LAST = 12
const SAMPLE = 1000

const MICROS_A_DAY = 86_400_000_000

export function forecast(pipeline: NamedPipeline, state: CheckpointState | null): Forecast {
  const rates = new Map<string, number | null>()
  const rateOf = (query: string): number | null => getOrInsert(rates, query, () => rowsADay(state, query))
  let common: number | null | undefined
  const commonRate = (): number | null => {
    const sample = pipeline.extract.queries.slice(0, SAMPLE)
    common ??= median(sample.flatMap(({ name }) => rateOf(name) ?? []))
    return common
  }
  return {
    rowsOf(query, range) {
      if (range === null) return null
      const rate = rateOf(query) ?? commonRate()
      return rate === null ? null : (rate * (range.until - range.from)) / MICROS_A_DAY
    },
  }
}

function rowsADay(state: CheckpointState | null, query: string): number | null {
  const windows = state?.partitions.branches.get(query)
  if (windows === undefined) return null
  const done: string[] = []
  for (const [name, folded] of windows) if (folded.state === 'done') done.push(name)
  // Names begin with the beginning of the window, so they sort by time.
  const last = done.sort().slice(-LAST)
  return median(
    last.flatMap((name) => {
      const window = parseWindow(name)
      if (window === null) return []
      return (windows.get(name)!.rows * MICROS_A_DAY) / (window.until - window.from)
    }),
  )
}

function median(values: readonly number[]): number | null {
  if (values.length === 0) return null
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
