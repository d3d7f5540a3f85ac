import { ExportError, isExportError } from '../../core/index.ts'

/** The error for a damaged shard. `what` must not quote values of the file. */
export function damaged(what: string): ExportError {
  return new ExportError('damaged', what, '', 'Restore the file from a copy, or start again with --fresh.')
}

/** Runs a reader whose errors may quote the file, and replaces them. ExportErrors stay as they are. */
export async function guarded<T>(what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw isExportError(error) ? error : damaged(what)
  }
}

/** {@link guarded} for bytes that come in chunks. */
export async function* guardedStream(
  what: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    throw isExportError(error) ? error : damaged(what)
  }
}
