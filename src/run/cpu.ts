import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type BufferPool, type DecodedPage, type DecodePlan, ExportError } from '../core/index.ts'
import type { EncodedChunk, EncodePlan, PlacedChunk } from '../load/index.ts'
import type { Cpu, CpuAnswer, CpuCall, CpuPlans } from './cpu-calls.ts'
import { inlineCpu } from './cpu-inline.ts'

/**
 * Does the work in one worker thread, so that the thread that receives, writes and flushes is free for it;
 * with one processor, or run straight from TypeScript, in the calling thread. Buffers change hands, they
 * are not copied. The thread is started by the first call.
 * @param buffers gets the buffers of answers back once they are decoded
 */
export function openCpu(decodePlan: DecodePlan, encodePlan: EncodePlan, buffers: BufferPool): Cpu {
  if (availableParallelism() > 1 && !import.meta.url.endsWith('.ts')) {
    return workerCpu({ decodePlan, encodePlan }, buffers)
  }
  const cpu = inlineCpu(decodePlan, encodePlan)
  return {
    ...cpu,
    decode: (body, context) => cpu.decode(body, context).finally(() => buffers.give(body.buffer)),
  }
}

type Waiting = { resolve(value: never): void; reject(error: unknown): void }

function workerCpu(plans: CpuPlans, buffers: BufferPool): Cpu {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | null = null
  let calls = 0
  // Once the thread is gone nobody answers any more, and what it was given is gone with it.
  let gone: unknown = null

  const failAll = (error: unknown): void => {
    gone ??= outOfMemory(error) ?? error
    for (const { reject } of waiting.values()) reject(gone)
    waiting.clear()
  }
  const start = (): Worker => {
    const started = new Worker(new URL('./cpu-worker.js', import.meta.url), { workerData: plans })
    started.on('message', (answer: CpuAnswer) => {
      const call = waiting.get(answer.id)
      waiting.delete(answer.id)
      if (answer.body !== undefined) buffers.give(answer.body)
      if (answer.ok) call?.resolve(answer.value as never)
      else call?.reject(thrown(answer.error))
    })
    started.on('error', failAll)
    started.on('exit', () => failAll(new Error('the worker thread ended while it was needed')))
    return started
  }
  const ask = <T>(work: CpuCall['work'], transfer: ArrayBuffer[] = []): Promise<T> => {
    if (gone !== null) return Promise.reject(gone)
    worker ??= start()
    const id = calls++
    return new Promise<T>((resolve, reject) => {
      waiting.set(id, { resolve, reject })
      worker?.postMessage({ id, work } satisfies CpuCall, transfer)
    })
  }

  return {
    decode: (body, context) => ask<DecodedPage>({ kind: 'decode', body, context }, [body.buffer]),
    coder: {
      header: () => ask<Uint8Array>({ kind: 'header' }),
      encode: (frames) =>
        ask<EncodedChunk>(
          { kind: 'encode', frames },
          frames.map(({ buffer }) => buffer),
        ),
      footer: (chunks: readonly PlacedChunk[]) => ask<Uint8Array>({ kind: 'footer', chunks }),
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
function thrown(error: Extract<CpuAnswer, { ok: false }>['error']): Error {
  if (error.kind === null) return new Error(error.message)
  return new ExportError(error.kind, error.what, error.where, error.next)
}
