import { availableParallelism } from 'node:os'
import type { BufferPool, DecodedPage, DecodePage, DecodePlan } from '../../core/index.ts'
import type { EncodePlan, ShardCoder, SummedChunk } from '../../load/index.ts'
import { canStartThreads, openThread } from '../../threads/index.ts'
import { owned } from './owned.ts'

/** The work that costs processor time: answers to rows, rows to shard bytes. */
export type Cpu = {
  readonly decode: DecodePage
  /** Takes back the memory of a page's rows; nobody may look at them again. */
  release(page: DecodedPage): void
  readonly coder: ShardCoder
  /** Gets ready ahead of the first call. */
  start(): void
  close(): Promise<void>
}

/**
 * Decodes in one thread and encodes in another, so that the calling thread is free to receive, write and
 * flush; with one processor, or run straight from TypeScript, everything is done in the calling thread.
 * Buffers are shared or change hands, they are not copied.
 * @param buffers gets the buffers of answers back: once they are decoded, or with the rows that were put into them
 * @param threads false: everything is done in the calling thread
 */
export async function openCpu(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
  buffers: BufferPool,
  threads = availableParallelism() > 1,
): Promise<Cpu> {
  if (threads && canStartThreads) return threadedCpu(decodePlan, encodePlan, buffers)
  // Loaded by those who have no threads that do the same.
  const { inlineWork } = await import('./inline-work.ts')
  const { decode, coder } = inlineWork(decodePlan, encodePlan)
  return { ...answerMemory(decode, buffers), coder, start() {}, async close() {} }
}

function threadedCpu(decodePlan: DecodePlan, encodePlan: EncodePlan, buffers: BufferPool): Cpu {
  const decoder = openThread(new URL('./decode-worker.js', import.meta.url), decodePlan)
  const encoder = openThread(new URL('./encode-worker.js', import.meta.url), encodePlan)
  return {
    ...answerMemory(
      (body, context) => decoder.ask<DecodedPage>('decode', [body, context], owned(body.buffer)),
      buffers,
    ),
    coder: {
      header: () => encoder.ask<Uint8Array>('header'),
      encode: (frames) =>
        encoder.ask<SummedChunk>(
          'encode',
          [frames],
          frames.flatMap(({ buffer }) => owned(buffer)),
        ),
      footer: (chunks) => encoder.ask<Uint8Array>('footer', [chunks]),
    },
    start() {
      decoder.start()
      encoder.start()
    },
    async close() {
      await Promise.all([decoder.close(), encoder.close()])
    },
  }
}

/** Sees to it that the memory of every answer goes back where it came from. */
function answerMemory(decode: DecodePage, buffers: BufferPool): Pick<Cpu, 'decode' | 'release'> {
  return {
    async decode(body, context) {
      let page: DecodedPage | null = null
      try {
        page = await decode(body, context)
        return page
      } finally {
        // Rows in shared memory lie where the answer lay.
        if (!(page?.frame?.buffer instanceof SharedArrayBuffer)) buffers.give(body.buffer)
      }
    },
    release({ frame }) {
      if (frame !== null) buffers.give(frame.buffer)
    },
  }
}
