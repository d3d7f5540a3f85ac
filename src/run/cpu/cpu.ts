import { availableParallelism } from 'node:os'
import {
  type BufferPool,
  bufferPool,
  type DecodedPage,
  type DecodePage,
  type DecodePlan,
} from '../../core/index.ts'
import {
  type EncodeBuffer,
  type EncodedRowGroupWithAggregates,
  type EncodePlan,
  makeEncodeBuffer,
  type ShardCoder,
} from '../../load/index.ts'
import { canStartThreads, openThread, type Thread } from '../../threads/index.ts'
import { owned } from './owned.ts'

/** The work that costs processor time: responses to rows, rows to shard bytes. */
export type Cpu = {
  readonly decode: DecodePage
  /** Takes back the memory of a page's rows; nobody may look at them again. */
  release(page: DecodedPage): void
  readonly coder: ShardCoder
  /** What shards share for encoding. */
  readonly encodeBuffer: EncodeBuffer
  /** Prepares before the first call. */
  start(): void
  close(): Promise<void>
}

/** Threads and buffers of all runs of one process: as many as the machine needs, however many runs there are. */
export type SharedCpu = {
  readonly buffers: BufferPool
  /** Those that serve the fewest runs. */
  take(): ThreadPair
  close(): Promise<void>
}

/** Two threads, and the number that a run has in them. */
type ThreadPair = {
  readonly decoder: Thread
  readonly encoder: Thread
  readonly encodeBuffer: EncodeBuffer
  readonly run: number
  /** Gives them back. */
  end(): Promise<void>
}

/**
 * Decodes in one thread and encodes in another, so that the calling thread is free to receive, write and
 * flush; with one processor, or run straight from TypeScript, everything is done in the calling thread.
 * Buffers are shared or change hands, they are not copied.
 * @param buffers gets the buffers of responses back: once they are decoded, or with the rows that were put into them
 * @param shared where runs share their threads; null: this one has its own
 */
export async function openCpu(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
  buffers: BufferPool,
  shared: SharedCpu | null = null,
): Promise<Cpu> {
  if (availableParallelism() > 1 && canStartThreads) {
    return threadedCpu(decodePlan, encodePlan, buffers, shared?.take() ?? ownPair())
  }
  // Loaded by those who have no threads that do the same.
  const { inlineWork } = await import('./inline-work.ts')
  const { decode, coder } = inlineWork(decodePlan, encodePlan)
  return {
    ...responseMemory(decode, buffers),
    coder,
    encodeBuffer: makeEncodeBuffer(),
    start() {},
    async close() {},
  }
}

/** Two threads for each two processors. @param runs so many at a time */
export function shareCpu(runs: number): SharedCpu {
  const pairs: { readonly threads: Omit<ThreadPair, 'run' | 'end'>; users: number }[] = []
  const most = Math.min(runs, Math.ceil(availableParallelism() / 2))
  let nextRun = 0
  return {
    buffers: bufferPool(2 * most + 2),
    take() {
      // What a thread was given when it ended is lost, not what comes after it.
      const dead = pairs.findIndex(({ threads }) => threads.decoder.isGone || threads.encoder.isGone)
      if (dead >= 0) void closePair(pairs.splice(dead, 1)[0]!.threads)
      let pair = pairs.toSorted((a, b) => a.users - b.users)[0]
      if (pair === undefined || (pair.users > 0 && pairs.length < most)) {
        pair = { threads: openPair(), users: 0 }
        pairs.push(pair)
      }
      pair.users++
      const { threads } = pair
      const run = nextRun++
      return {
        ...threads,
        run,
        async end() {
          pair.users--
          await Promise.all(
            [threads.decoder, threads.encoder].map((each) => each.request('close', [run]).catch(() => {})),
          )
        },
      }
    },
    async close() {
      await Promise.all(pairs.map(({ threads }) => closePair(threads)))
    },
  }
}

function ownPair(): ThreadPair {
  const threads = openPair()
  return { ...threads, run: 0, end: () => closePair(threads) }
}

function openPair(): Omit<ThreadPair, 'run' | 'end'> {
  return {
    decoder: openThread(new URL('./decode-worker.js', import.meta.url), null),
    encoder: openThread(new URL('./encode-worker.js', import.meta.url), null),
    encodeBuffer: makeEncodeBuffer(),
  }
}

async function closePair({ decoder, encoder }: Pick<ThreadPair, 'decoder' | 'encoder'>): Promise<void> {
  await Promise.all([decoder.close(), encoder.close()])
}

function threadedCpu(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
  buffers: BufferPool,
  { decoder, encoder, encodeBuffer, run, end }: ThreadPair,
): Cpu {
  let opened: Promise<readonly [unknown, unknown]> | null = null
  const open = (): Promise<readonly [unknown, unknown]> => {
    opened ??= Promise.all([
      decoder.request('open', [run, decodePlan]),
      encoder.request('open', [run, encodePlan]),
    ])
    return opened
  }
  const encode = async <T>(
    name: string,
    args: readonly unknown[],
    transfer: ArrayBuffer[] = [],
  ): Promise<T> => {
    await open()
    return encoder.request<T>(name, [run, ...args], transfer)
  }
  return {
    ...responseMemory(async (body, context) => {
      await open()
      return decoder.request<DecodedPage>('decode', [run, body, context], owned(body.buffer))
    }, buffers),
    coder: {
      header: () => encode<Uint8Array>('header', []),
      encode: (recordBatches) =>
        encode<EncodedRowGroupWithAggregates>(
          'encode',
          [recordBatches],
          recordBatches.flatMap(({ buffer }) => owned(buffer)),
        ),
      footer: (rowGroups) => encode<Uint8Array>('footer', [rowGroups]),
    },
    encodeBuffer,
    start() {
      // The next caller gets the error.
      open().catch(() => {})
    },
    close: end,
  }
}

/** Returns the memory of every response to its pool. */
function responseMemory(decode: DecodePage, buffers: BufferPool): Pick<Cpu, 'decode' | 'release'> {
  return {
    async decode(body, context) {
      let page: DecodedPage | null = null
      try {
        page = await decode(body, context)
        return page
      } finally {
        // Rows in shared memory lie where the response lay.
        if (!(page?.recordBatch?.buffer instanceof SharedArrayBuffer)) buffers.give(body.buffer)
      }
    },
    release({ recordBatch }) {
      if (recordBatch !== null) buffers.give(recordBatch.buffer)
    },
  }
}
