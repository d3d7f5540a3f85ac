import { parentPort } from 'node:worker_threads'
import { isExportError, plainError } from '../core/index.ts'
import type { Answer, Question } from './thread.ts'
import { tooManyFiles } from './too-many-files.ts'

/** What a question is answered with. */
type Reply = { readonly value: unknown; readonly transfer?: readonly ArrayBuffer[] }

/** The far end of `openThread`: answers questions by name, with what these make of their arguments. */
export function serve(replies: Readonly<Record<string, (...args: never[]) => Promise<Reply>>>): void {
  parentPort?.on('message', ({ id, name, args }: Question) => {
    replies[name]!(...(args as never[])).then(
      ({ value, transfer = [] }) =>
        parentPort?.postMessage({ id, ok: true, value } satisfies Answer, [...transfer]),
      (error: unknown) =>
        parentPort?.postMessage({ id, ok: false, error: described(error) } satisfies Answer),
    )
  })
}

function described(thrown: unknown): Extract<Answer, { ok: false }>['error'] {
  const error = tooManyFiles(thrown) ?? thrown
  if (isExportError(error)) return plainError(error)
  return { unforeseen: `unexpected ${error instanceof Error ? error.name : typeof error} in the worker` }
}
