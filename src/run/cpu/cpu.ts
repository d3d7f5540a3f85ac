import { availableParallelism } from 'node:os'
import type { BufferPool } from '../../core/index.ts'
import type { EncodedRows, EncodeSettings, ShardCoder, ShardEnd } from '../../load/index.ts'
import type { DecodedPage, DecodePage, DecodeSettings } from '../../rows/index.ts'
import { canStartThreads, openThread, owned, type Thread } from '../../threads/index.ts'
import type { InThisThread } from './in-this-thread.ts'

/** The work that takes processor time: responses to rows, rows to bytes of shards. */
export type Cpu = {
  readonly decode: DecodePage
  /** Returns the memory of a page's rows, which must not be read again. */
  release(page: DecodedPage): void
  readonly coder: ShardCoder
  /** Ends the thread, or its work for this run; nothing is decoded or encoded afterwards. */
  close(): Promise<void>
}

/** The thread of all runs of a process. */
export type SharedThread = {
  take(): RunThread
  close(): Promise<void>
}

/** A thread, and the number of a run in it. */
type RunThread = { readonly thread: Thread; readonly run: number }

/**
 * Smaller responses are decoded in the calling thread: that takes less time than a message and its answer. Pages of the
 * service usually have some hundred rows, of 700 bytes each.
 */
const LARGE_BYTES = 512 << 10

/**
 * Decodes and encodes in the calling thread as long as pages are small. The first large one starts a thread, which from
 * then on decodes large pages and encodes, so that the calling thread is free to receive, write and fsync. With one
 * processor, or without a build, there is no thread. Buffers are shared or transferred, not copied.
 * @param buffers the pool to which the buffers of responses return: after decoding, or when their rows are released
 * @param shared the thread that runs share; null: this run has its own
 */
export function openCpu(
  decodeSettings: DecodeSettings,
  encodeSettings: EncodeSettings,
  buffers: BufferPool,
  shared: SharedThread | null = null,
): Cpu {
  let loaded: Promise<InThisThread> | null = null
  // Loaded when it is needed: some runs have nothing to decode or to encode.
  const here = (): Promise<InThisThread> => {
    loaded ??= import('./in-this-thread.ts').then(({ inThisThread }) =>
      inThisThread(decodeSettings, encodeSettings),
    )
    return loaded
  }
  const thread = shared ?? shareThread()
  const canStart = availableParallelism() > 1 && canStartThreads
  let there: Elsewhere | null = null
  let starting: Promise<void> | null = null
  const start = (): Promise<void> => {
    starting ??= inThread(decodeSettings, encodeSettings, thread.take()).then((started) => {
      there = started
    })
    return starting
  }
  return {
    async decode(body, context) {
      let page: DecodedPage | null = null
      try {
        const isLarge = body.byteLength >= LARGE_BYTES
        // Two threads that decode large pages would need twice the memory.
        if (isLarge && canStart) await start()
        const decoder = isLarge && there !== null ? there : await here()
        page = await decoder.decode(body, context)
        return page
      } finally {
        // Rows in shared memory are in the buffer of their response.
        if (!(page?.recordBatch?.buffer instanceof SharedArrayBuffer)) buffers.give(body.buffer)
      }
    },
    release({ recordBatch }) {
      if (recordBatch !== null) buffers.give(recordBatch.buffer)
    },
    coder: { begin: async () => (there ?? (await here())).coder.begin() },
    async close() {
      await starting
      if (shared === null) await thread.close()
      else await there?.close()
    },
  }
}

/** A thread that the runs of one process share. It starts with the first large page of any of them. */
export function shareThread(): SharedThread {
  let thread = openWorker()
  let runs = 0
  return {
    take() {
      // The requests of an ended thread are lost; later runs get a new one.
      if (thread.hasFailed) {
        void thread.close()
        thread = openWorker()
      }
      return { thread, run: runs++ }
    },
    close: () => thread.close(),
  }
}

function openWorker(): Thread {
  return openThread(new URL('./worker.js', import.meta.url), null)
}

type Elsewhere = Pick<Cpu, 'decode' | 'coder' | 'close'>

async function inThread(
  decodeSettings: DecodeSettings,
  encodeSettings: EncodeSettings,
  { thread, run }: RunThread,
): Promise<Elsewhere> {
  let shards = 0
  const request = <T>(name: string, args: readonly unknown[], transfer: ArrayBuffer[] = []): Promise<T> =>
    thread.request<T>(name, [run, ...args], transfer)
  // The next request gets the error.
  await request('open', [decodeSettings, encodeSettings]).catch(() => {})
  return {
    decode: (body, context) => request<DecodedPage>('decode', [body, context], owned(body.buffer)),
    coder: {
      begin() {
        const shard = shards++
        return {
          encode: (recordBatches) =>
            request<EncodedRows>(
              'encode',
              [shard, recordBatches],
              recordBatches.flatMap(({ buffer }) => owned(buffer)),
            ),
          end: () => request<ShardEnd>('end', [shard]),
        }
      },
    },
    close: () => request<void>('close', []).catch(() => {}),
  }
}
