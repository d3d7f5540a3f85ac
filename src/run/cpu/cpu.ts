import { availableParallelism } from 'node:os'
import {
  type BufferPool,
  bufferPool,
  type DecodedPage,
  type DecodePage,
  type DecodePlan,
  getOrInsert,
} from '../../core/index.ts'
import { type EncodedRowGroup, type EncodePlan, type ShardCoder, shardHashIn } from '../../load/index.ts'
import { canStartThreads, openThread, owned, type Thread } from '../../threads/index.ts'

/** The work that takes processor time: responses to rows, rows to bytes of shards. */
export type Cpu = {
  readonly decode: DecodePage
  /** Returns the memory of a page's rows, which must not be read again. */
  release(page: DecodedPage): void
  readonly coder: ShardCoder
  /** Prepares before the first call. */
  start(): void
  /** Ends the threads, or returns shared ones; nothing is decoded or encoded afterwards. */
  close(): Promise<void>
}

/** Threads and buffers of all runs of one process: as many as the machine needs, however many runs there are. */
export type SharedCpu = {
  readonly buffers: BufferPool
  /** Takes the set that serves the fewest runs. */
  take(): ThreadSet
  close(): Promise<void>
}

/** Threads for two processors. A thread starts with its first request. */
type Threads = {
  /** The second is for runs whose masks compute digests. */
  readonly decoders: readonly [Thread, Thread]
  readonly encoder: Thread
}

/** The same, and the number of a run in them. */
type ThreadSet = Threads & {
  readonly run: number
  /** Returns the threads. @param used the threads in which the run was opened */
  end(used: readonly Thread[]): Promise<void>
}

/**
 * Decodes in one thread and encodes in another, so that the calling thread is free to receive, write and
 * fsync. With one processor, or without a build, everything is done in the calling thread. Buffers are shared or
 * transferred, not copied.
 * @param buffers the pool to which the buffers of responses return: after decoding, or when their rows are released
 * @param shared the threads that runs share; null: this run has its own
 */
export async function openCpu(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
  buffers: BufferPool,
  shared: SharedCpu | null = null,
): Promise<Cpu> {
  if (availableParallelism() > 1 && canStartThreads) {
    return threadedCpu(decodePlan, encodePlan, buffers, shared?.take() ?? ownSet())
  }
  // Loaded only without threads, which do the same.
  const { inlineWork } = await import('./inline-work.ts')
  const { decode, coder } = inlineWork(decodePlan, encodePlan)
  return {
    ...responseMemory(decode, buffers),
    coder,
    start() {},
    async close() {},
  }
}

/** A set of threads for every two processors. @param runs the number of runs at a time */
export function shareCpu(runs: number): SharedCpu {
  const sets: { readonly threads: Threads; users: number }[] = []
  const most = Math.min(runs, Math.ceil(availableParallelism() / 2))
  let nextRun = 0
  return {
    buffers: bufferPool(2 * most + 2),
    take() {
      // The requests of an ended thread are lost; later ones go to a new set.
      const dead = sets.findIndex(({ threads }) => threadsOf(threads).some(({ hasFailed }) => hasFailed))
      if (dead >= 0) void closeSet(sets.splice(dead, 1)[0]!.threads)
      let set = sets.toSorted((a, b) => a.users - b.users)[0]
      if (set === undefined || (set.users > 0 && sets.length < most)) {
        set = { threads: openSet(), users: 0 }
        sets.push(set)
      }
      set.users++
      const { threads } = set
      const run = nextRun++
      return {
        ...threads,
        run,
        async end(used) {
          set.users--
          await Promise.all(used.map((each) => each.request('close', [run]).catch(() => {})))
        },
      }
    },
    async close() {
      await Promise.all(sets.map(({ threads }) => closeSet(threads)))
    },
  }
}

function ownSet(): ThreadSet {
  const threads = openSet()
  return { ...threads, run: 0, end: () => closeSet(threads) }
}

function openSet(): Threads {
  return {
    decoders: [openDecoder(), openDecoder()],
    encoder: openThread(new URL('./encode-worker.js', import.meta.url), null),
  }
}

function openDecoder(): Thread {
  return openThread(new URL('./decode-worker.js', import.meta.url), null)
}

function threadsOf({ decoders, encoder }: Threads): readonly Thread[] {
  return [...decoders, encoder]
}

async function closeSet(threads: Threads): Promise<void> {
  await Promise.all(threadsOf(threads).map((each) => each.close()))
}

function threadedCpu(
  decodePlan: DecodePlan,
  encodePlan: EncodePlan,
  buffers: BufferPool,
  { decoders: [decoder, second], encoder, run, end }: ThreadSet,
): Cpu {
  const decoders = computesDigests(decodePlan) ? [decoder, second] : [decoder]
  let hashes = 0
  let closed: Promise<void> | null = null
  const opened = new Map<Thread, Promise<unknown>>()
  const open = (thread: Thread): Promise<unknown> =>
    getOrInsert(opened, thread, () =>
      thread.request('open', [run, thread === encoder ? encodePlan : decodePlan]),
    )
  const encode = async <T>(
    name: string,
    args: readonly unknown[],
    transfer: ArrayBuffer[] = [],
  ): Promise<T> => {
    await open(encoder)
    return encoder.request<T>(name, [run, ...args], transfer)
  }
  return {
    ...responseMemory(async (body, context) => {
      const idlest = decoders.reduce((a, b) => (b.pending < a.pending ? b : a))
      await open(idlest)
      return idlest.request<DecodedPage>('decode', [run, body, context], owned(body.buffer))
    }, buffers),
    coder: {
      header: () => encode<Uint8Array>('header', []),
      encode: (recordBatches) =>
        encode<EncodedRowGroup>(
          'encode',
          [recordBatches],
          recordBatches.flatMap(({ buffer }) => owned(buffer)),
        ),
      footer: (rowGroups) => encode<Uint8Array>('footer', [rowGroups]),
      hash: () => {
        const hash = hashes++
        return shardHashIn({
          update: (chunks) => encode('hash', [hash, chunks]),
          digest: (chunks) => encode<string>('digest', [hash, chunks]),
        })
      },
    },
    start() {
      // The next request gets the error.
      for (const thread of [decoder, encoder]) open(thread).catch(() => {})
    },
    close() {
      closed ??= end([...opened.keys()])
      return closed
    },
  }
}

/** A digest takes twice as long as the rest of a row, so one thread for decoding would be the bottleneck. */
function computesDigests({ secret, identity, suppress }: DecodePlan): boolean {
  return secret === 'hmac' || identity === 'hmac' || suppress.length > 0
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
        // Rows in shared memory are in the buffer of their response.
        if (!(page?.recordBatch?.buffer instanceof SharedArrayBuffer)) buffers.give(body.buffer)
      }
    },
    release({ recordBatch }) {
      if (recordBatch !== null) buffers.give(recordBatch.buffer)
    },
  }
}
