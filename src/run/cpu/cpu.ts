import { availableParallelism } from 'node:os'
import {
  type BufferPool,
  type DecodedPage,
  type DecodePage,
  type DecodePlan,
  decodeFrame,
} from '../../core/index.ts'
import { createEncoder, type EncodedChunk, type EncodePlan, type ShardCoder } from '../../load/index.ts'
import { canStartThreads, openThread } from '../../threads/index.ts'
import { createDecoder } from '../../transform/index.ts'

/** The work that costs processor time: answers to rows, rows to shard bytes. */
export type Cpu = {
  readonly decode: DecodePage
  readonly coder: ShardCoder
  /** Gets ready ahead of the first call. */
  start(): void
  close(): Promise<void>
}

/**
 * Decodes in one thread and encodes in another, so that the calling thread is free to receive, write and
 * flush; with one processor, or run straight from TypeScript, everything is done in the calling thread.
 * Buffers are shared or change hands, they are not copied.
 * @param buffers gets the buffers of answers back once they are decoded
 */
export function openCpu(decodePlan: DecodePlan, encodePlan: EncodePlan, buffers: BufferPool): Cpu {
  return availableParallelism() > 1 && canStartThreads
    ? threadedCpu(decodePlan, encodePlan, buffers)
    : inlineCpu(decodePlan, encodePlan, buffers)
}

function inlineCpu(decodePlan: DecodePlan, encodePlan: EncodePlan, buffers: BufferPool): Cpu {
  const decode = createDecoder(decodePlan)
  const encoder = createEncoder(encodePlan)
  return {
    async decode(body, context) {
      try {
        return decode(body, context)
      } finally {
        buffers.give(body.buffer)
      }
    },
    coder: {
      header: async () => encoder.header(),
      encode: (frames) => encoder.encode(frames.map(decodeFrame)),
      footer: (chunks) => encoder.footer(chunks),
    },
    start() {},
    async close() {},
  }
}

function threadedCpu(decodePlan: DecodePlan, encodePlan: EncodePlan, buffers: BufferPool): Cpu {
  const decoder = openThread(new URL('./decode-worker.js', import.meta.url), decodePlan)
  const encoder = openThread(new URL('./encode-worker.js', import.meta.url), encodePlan)
  return {
    async decode(body, context) {
      try {
        return await decoder.ask<DecodedPage>('decode', [body, context], owned(body.buffer))
      } finally {
        buffers.give(body.buffer)
      }
    },
    coder: {
      header: () => encoder.ask<Uint8Array>('header'),
      encode: (frames) =>
        encoder.ask<EncodedChunk>(
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

/** Shared memory stays with both threads; anything else changes hands. */
function owned(buffer: ArrayBufferLike): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer ? [buffer] : []
}
