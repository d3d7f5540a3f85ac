import { ExportError, isExportError } from '../../core/index.ts'

export type ShardReader = {
  readonly size: number
  /** The bytes `[start, end)`. */
  slice(start: number, end: number): Promise<Uint8Array>
  stream(): AsyncIterable<Uint8Array>
}

/** The error for a damaged shard. `what` must not quote values of the file. */
export function damaged(what: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what,
    where: '',
    next: 'Run `verify`, which names the damaged shards and prints the command that exports them again.',
  })
}

/** Replaces an error that may quote the file. ExportErrors stay as they are. */
export function withoutQuotes(error: unknown, what: string): unknown {
  return isExportError(error) ? error : damaged(what)
}
