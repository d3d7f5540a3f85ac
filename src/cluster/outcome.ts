import { fromPlainError, type PlainError, plainError } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'

/** A summary as the database keeps it. */
export type Outcome = Omit<RunSummary, 'error'> & { readonly error: PlainError | null }

export function outcomeJson({ error, ...summary }: RunSummary): Outcome {
  return { ...summary, error: error && plainError(error) }
}

export function summaryFrom({ error, ...summary }: Outcome): RunSummary {
  return { ...summary, error: error && fromPlainError(error) }
}
