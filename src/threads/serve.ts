import { parentPort } from 'node:worker_threads'
import { isExportError, plainError } from '../core/index.ts'
import type { ThreadRequest, ThreadResponse } from './thread.ts'
import { tooManyFiles } from './too-many-files.ts'

/** The result of a request, and buffers to transfer with it. */
type Reply = { readonly value: unknown; readonly transfer?: readonly ArrayBuffer[] }

/** The worker's side of `openThread`: calls the function that a request names. */
export function serve(replies: Readonly<Record<string, (...args: never[]) => Promise<Reply>>>): void {
  parentPort?.on('message', ({ id, name, args }: ThreadRequest) => {
    replies[name]!(...(args as never[])).then(
      ({ value, transfer = [] }) =>
        parentPort?.postMessage({ id, ok: true, value } satisfies ThreadResponse, [...transfer]),
      (error: unknown) =>
        parentPort?.postMessage({ id, ok: false, error: described(error) } satisfies ThreadResponse),
    )
  })
}

function described(thrown: unknown): Extract<ThreadResponse, { ok: false }>['error'] {
  const error = tooManyFiles(thrown) ?? thrown
  if (isExportError(error)) return plainError(error)
  return { unforeseen: `unexpected ${error instanceof Error ? error.name : typeof error} in the worker` }
}
