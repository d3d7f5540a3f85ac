import { type ErrorKind, ExportError } from '../core/index.ts'
import type { RunSummary } from '../run/index.ts'

/** A summary as the database keeps it. */
export type Outcome = Omit<RunSummary, 'error'> & {
  readonly error: {
    readonly kind: ErrorKind
    readonly what: string
    readonly where: string
    readonly next: string
  } | null
}

export function outcomeJson({ error, ...summary }: RunSummary): Outcome {
  if (error === null) return { ...summary, error }
  const { kind, what, where, next } = error
  return { ...summary, error: { kind, what, where, next } }
}

export function summaryFrom({ error, ...summary }: Outcome): RunSummary {
  return {
    ...summary,
    error: error === null ? null : new ExportError(error.kind, error.what, error.where, error.next),
  }
}
