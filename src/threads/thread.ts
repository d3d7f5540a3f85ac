import type { Worker } from 'node:worker_threads'
import { ExportError, fromPlainError, type PlainError } from '../core/index.ts'
import { tooManyFiles } from './too-many-files.ts'

/** What a thread is asked. */
export type Question = { readonly id: number; readonly name: string; readonly args: readonly unknown[] }

/** What it answers. Only the kind of an error that was not foreseen: the messages of parsers quote what they parse. */
export type Answer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly error: PlainError | { readonly unforeseen: string } }

export type Thread = {
  /** @param transfer buffers that change hands */
  ask<T>(name: string, args?: readonly unknown[], transfer?: ArrayBuffer[]): Promise<T>
  /** Whether it ended before it was closed: nobody answers any more. */
  readonly isGone: boolean
  close(): Promise<void>
}

/** A thread runs a built script: there is none when the source is run as it stands. */
export const canStartThreads = !import.meta.url.endsWith('.ts')

/** Threads work in buffers; what they leave in the young generation is small, and not worth letting it grow for. */
const MAX_YOUNG_MB = 6

/** A worker thread that answers questions, one after the other. @param script calls `serve` */
export function openThread(script: URL, workerData: unknown): Thread {
  const waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()
  let worker: Worker | null = null
  let questions = 0
  // Once the thread is gone nobody answers any more, and what it was given is gone with it.
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
    worker.on('message', (answer: Answer) => {
      const asker = waiting.get(answer.id)
      waiting.delete(answer.id)
      if (answer.ok) asker?.resolve(answer.value as never)
      else asker?.reject(thrown(answer.error))
    })
    worker.on('error', failAll)
    worker.on('exit', () => failAll(new Error('the worker thread ended while it was needed')))
    return worker
  }

  return {
    ask<T>(name: string, args: readonly unknown[] = [], transfer: ArrayBuffer[] = []) {
      if (gone !== null) return Promise.reject(gone)
      const id = questions++
      return new Promise<T>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        running().postMessage({ id, name, args } satisfies Question, transfer)
      })
    },
    get isGone() {
      return gone !== null
    },
    async close() {
      await worker?.terminate()
    },
  }
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
function thrown(error: Extract<Answer, { ok: false }>['error']): Error {
  if ('unforeseen' in error) return new Error(error.unforeseen)
  return fromPlainError(error)
}
