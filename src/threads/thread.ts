import type { Worker } from 'node:worker_threads'
import { ExportError, hasCode, isExportError, type PlainError, plainError } from '../core/index.ts'

/** A call of a thread's function. */
type ThreadRequest = { readonly id: number; readonly name: string; readonly args: readonly unknown[] }

/** Its result. An unexpected error is reduced to its name: messages of parsers quote what they parse. */
type ThreadResponse =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: PlainError | { readonly unexpected: string } }

export type Thread = ReturnType<typeof openThread>

/** Threads run built scripts. Without a build (TypeScript run directly), they cannot be started. */
export const canStartThreads = !import.meta.url.endsWith('.ts')

/** Threads work in buffers and allocate few objects, so a small young generation is enough. */
const MAX_YOUNG_MB = 6

/** Opens a worker thread that serves requests, one after the other. @param script calls `serve` */
export function openThread(script: URL, workerData: unknown) {
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()
  let worker: Worker | null = null
  let requests = 0
  // Set once the thread has ended: its requests fail, and buffers transferred to it are lost.
  let failure: unknown = null

  const failAll = (error: unknown): void => {
    failure ??= outOfMemory(error) ?? tooManyFiles(error) ?? error
    for (const { reject } of waiting.values()) reject(failure)
    waiting.clear()
  }
  const running = (): Worker => {
    if (worker !== null) return worker
    // Loaded only when a thread is needed.
    const { Worker } = process.getBuiltinModule('node:worker_threads')
    worker = new Worker(script, { workerData, resourceLimits: { maxYoungGenerationSizeMb: MAX_YOUNG_MB } })
    worker.on('message', (response: ThreadResponse) => {
      const caller = waiting.get(response.id)
      waiting.delete(response.id)
      if (response.ok) caller?.resolve(response.value as never)
      else caller?.reject(thrown(response.error))
    })
    worker.on('error', failAll)
    worker.on('exit', () => failAll(new Error('the worker thread ended while it was needed')))
    return worker
  }

  return {
    /** @param transfer buffers whose ownership moves to the thread */
    request<T>(name: string, args: readonly unknown[] = [], transfer: ArrayBuffer[] = []): Promise<T> {
      if (failure !== null) return Promise.reject(failure)
      const id = requests++
      return new Promise<T>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        running().postMessage({ id, name, args } satisfies ThreadRequest, transfer)
      })
    },
    /** Whether it ended before it was closed. Requests fail then. */
    get hasFailed(): boolean {
      return failure !== null
    },
    async close(): Promise<void> {
      await worker?.terminate()
    },
  }
}

/** The result of a request, and buffers to transfer with it. */
type Reply = { readonly value: unknown; readonly transfer?: readonly ArrayBuffer[] }

/** The worker's side of `openThread`: calls the function that a request names. */
export function serve(replies: Readonly<Record<string, (...args: never[]) => Promise<Reply>>>): void {
  const { parentPort } = process.getBuiltinModule('node:worker_threads')
  parentPort?.on('message', ({ id, name, args }: ThreadRequest) => {
    const respond = (response: ThreadResponse, transfer: readonly ArrayBuffer[] = []): void =>
      parentPort.postMessage(response, transfer)
    replies[name]!(...(args as never[])).then(
      ({ value, transfer }) => respond({ id, ok: true, value }, transfer),
      (error: unknown) => respond({ id, ok: false, error: described(error) }),
    )
  })
}

/** Stops the run. Pages of other partitions in the thread are lost, and the next run requests them again. */
function outOfMemory(error: unknown): ExportError | null {
  if (!hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY')) return null
  return new ExportError({
    kind: 'storage',
    what: 'Out of memory',
    where: 'worker thread',
    next: 'Lower extract.page_size, extract.concurrency or service.max_response_bytes, or give Node more with NODE_OPTIONS=--max-old-space-size=…; the export resumes where it stopped.',
  })
}

/** Restores the class of an error, which messages between threads do not keep. */
function thrown(error: Extract<ThreadResponse, { ok: false }>['error']): Error {
  if ('unexpected' in error) return new Error(error.unexpected)
  return new ExportError(error)
}

/** Buffers to transfer with a message to another thread. Shared memory is not transferred: both threads keep it. */
export function owned(buffer: ArrayBufferLike): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer ? [buffer] : []
}

/** Starting a thread opens files: its script and the modules that it imports. */
function tooManyFiles(error: unknown): ExportError | null {
  if (!isFileLimit(error)) return null
  return new ExportError({
    kind: 'storage',
    what: 'Too many files are open',
    where: 'worker thread',
    next: 'Raise the limit (ulimit -n) or lower extract.concurrency, then run again.',
  })
}

function isFileLimit(error: unknown): boolean {
  if (hasCode(error, 'EMFILE')) return true
  // A thread that cannot start has one code for all system errors. The system's code is only in the message.
  return hasCode(error, 'ERR_WORKER_INIT_FAILED') && /\bE[MN]FILE\b/.test(String(error))
}

function described(thrown: unknown): Extract<ThreadResponse, { ok: false }>['error'] {
  const error = tooManyFiles(thrown) ?? thrown
  if (isExportError(error)) return plainError(error)
  return { unexpected: `unexpected ${error instanceof Error ? error.name : typeof error} in the worker` }
}
