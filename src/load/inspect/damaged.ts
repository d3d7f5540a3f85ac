import { ExportError, isExportError } from '../../core/index.ts'

/** The shard is not what it should be. `what` must not quote what stands in it. */
export function damaged(what: string): ExportError {
  return new ExportError('damaged', what, '', 'Restore the file from a copy, or start again with --fresh.')
}

/** Runs a reader whose own errors may quote the file: they are replaced; ours, the storage's too, pass. */
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
