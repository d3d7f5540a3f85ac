import type { Worker } from 'node:worker_threads'
import { ExportError, fromPlainError, isExportError, type PlainError, plainError } from '../core/index.ts'

/** A call of a thread's function. */
type ThreadRequest = { readonly id: number; readonly name: string; readonly args: readonly unknown[] }

/** Its result. Of an unforeseen error only the kind: parsers quote what they parse in their messages. */
type ThreadResponse =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: PlainError | { readonly unforeseen: string } }

export type Thread = {
  /** @param transfer buffers that change hands */
  request<T>(name: string, args?: readonly unknown[], transfer?: ArrayBuffer[]): Promise<T>
  /** Requests that have no response yet. */
  readonly pending: number
  /** Whether it ended before it was closed; requests fail then. */
  readonly isGone: boolean
  close(): Promise<void>
}

/** A thread runs a built script: there is none when the source is run as it stands. */
export const canStartThreads = !import.meta.url.endsWith('.ts')

/** Threads work in buffers; what they leave in the young generation is small, and not worth letting it grow for. */
const MAX_YOUNG_MB = 6

/** A worker thread that serves requests, one after the other. @param script calls `serve` */
export function openThread(script: URL, workerData: unknown): Thread {
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()
  let worker: Worker | null = null
  let requests = 0
  // Set once the thread is gone: its requests fail, and buffers transferred to it are lost.
  let gone: unknown = null

  const failAll = (error: unknown): void => {
    gone ??= outOfMemory(error) ?? tooManyFiles(error) ?? error
    for (const { reject } of waiting.values()) reject(gone)
    waiting.clear()
  }
  const running = (): Worker => {
    if (worker !== null) return worker
    // Loaded by those who need a thread.
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
    request<T>(name: string, args: readonly unknown[] = [], transfer: ArrayBuffer[] = []) {
      if (gone !== null) return Promise.reject(gone)
      const id = requests++
      return new Promise<T>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        running().postMessage({ id, name, args } satisfies ThreadRequest, transfer)
      })
    },
    get pending() {
      return waiting.size
    },
    get isGone() {
      return gone !== null
    },
    async close() {
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

/** Stops the run: what other partitions had under way is lost with the thread, and is asked for again. */
function outOfMemory(error: unknown): ExportError | null {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')) return null
  return new ExportError(
    'storage',
    'The memory is used up',
    'worker thread',
    'Lower extract.page_size, extract.concurrency or service.max_response_bytes, or give Node more with NODE_OPTIONS=--max-old-space-size=…; the export goes on from where it stopped.',
  )
}

/** An error loses its class on the way between threads. */
function thrown(error: Extract<ThreadResponse, { ok: false }>['error']): Error {
  if ('unforeseen' in error) return new Error(error.unforeseen)
  return fromPlainError(error)
}

/** What of a message to another thread changes hands; shared memory stays with both. */
export function owned(buffer: ArrayBufferLike): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer ? [buffer] : []
}

/** Scripts, and what they import when it is needed, are files as well. */
function tooManyFiles(error: unknown): ExportError | null {
  if (!(error instanceof Error && 'code' in error && isOfFiles(error.code, error.message))) return null
  return new ExportError(
    'storage',
    'Too many files are open',
    'worker thread',
    'Raise the limit (ulimit -n) or lower extract.concurrency, then run again.',
  )
}

function isOfFiles(code: unknown, message: string): boolean {
  // A thread that can't begin has one code for every refusal of the system, whose own code is in the message.
  return code === 'EMFILE' || (code === 'ERR_WORKER_INIT_FAILED' && /\bE[MN]FILE\b/.test(message))
}

function described(thrown: unknown): Extract<ThreadResponse, { ok: false }>['error'] {
  const error = tooManyFiles(thrown) ?? thrown
  if (isExportError(error)) return plainError(error)
  return { unforeseen: `unexpected ${error instanceof Error ? error.name : typeof error} in the worker` }
}
