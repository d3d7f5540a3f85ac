import {
  type BufferPool,
  bufferPool,
  type DecodePage,
  hidesQueries,
  type NamedPipeline,
} from '../core/index.ts'
import type { Owner, QuerySecrets } from '../data-set/index.ts'
import {
  encodePlan,
  invalidationOf,
  openOwnCheckpoint,
  readForgotten,
  readSuppression,
  redoEntry,
  requireForgotten,
  shardSetOptions,
} from '../data-set/index.ts'
import { ShardSet, type ShardSetOptions } from '../load/index.ts'
import type { OpenLog } from '../state/index.ts'
import { type Cpu, openCpu } from './cpu/cpu.ts'
import { decodePlan } from './cpu/decode-plan.ts'
import type { RunOptions } from './options.ts'
import { pagesWithoutSecrets } from './pages-without-secrets.ts'

/** What a run holds open on its data set. */
export type Session = {
  readonly checkpoint: OpenLog
  /** The shards that were sealed since the beginning. */
  readonly sealed: {
    readonly shards: number
    readonly bytes: number
    /** NUL characters that became U+FFFD, in CSV. */
    readonly replacedNuls: number
  }
  readonly shards: ShardSet
  readonly cpu: Cpu
  /** Decodes in `cpu`; its pages repeat no known secret. */
  readonly decode: DecodePage
  /** For the bodies of responses. */
  readonly buffers: BufferPool
  /** A number that no other chain of the data set has. */
  nextChain(): number
  close(): Promise<void>
}

/**
 * Opens checkpoint and shards and makes them consistent: finished shards are published and open ones continued. If
 * bytes of the log are lost, the partitions that need them are invalidated.
 * @throws ExportError `config` or `damaged` when the run may not resume
 */
export async function openSession(
  pipeline: NamedPipeline,
  owner: Owner,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<Session> {
  // One for each response in flight or not committed yet, and one more for responses that grow.
  const buffers = bufferPool(pipeline.extract.concurrency + 1)
  const suppress = await readSuppression(pipeline, owner.store, options)
  const plans = [decodePlan(pipeline, options.maskKey, suppress), encodePlan(pipeline, options)] as const
  const cpu = openCpu(...plans, buffers, options.thread ?? null)
  try {
    for (;;) {
      const session = await openOnce(pipeline, owner, secrets, { cpu, buffers }, options)
      if (session !== null) return session
    }
  } catch (error) {
    await cpu.close()
    throw error
  }
}

/** @returns null when something was invalidated: then everything has to be opened again */
async function openOnce(
  pipeline: NamedPipeline,
  owner: Owner,
  secrets: QuerySecrets,
  { cpu, buffers }: Pick<Session, 'cpu' | 'buffers'>,
  options: RunOptions,
): Promise<Session | null> {
  const checkpoint = await openOwnCheckpoint(pipeline, owner, secrets, options)
  const { state } = checkpoint
  const log = options.onLog
  try {
    if (state.erasures.length > 0) requireForgotten(await readForgotten(owner.store), state)
    const sealed = { shards: 0, bytes: 0, replacedNuls: 0 }
    const onSealed: ShardSetOptions['onSealed'] = ({ path, rows, bytes, replaced = 0 }) => {
      sealed.shards++
      sealed.bytes += bytes
      sealed.replacedNuls += replaced
      log('info', 'shard sealed', { event: 'shard.sealed', path, rows, bytes })
    }
    const shardOptions = shardSetOptions(pipeline, owner, cpu, checkpoint, options)
    const opened = await ShardSet.open({ ...shardOptions, onSealed }, state.openShards.values())
    const rejected = await lostRejections(checkpoint)
    if ('set' in opened && rejected.length === 0) {
      const shards = opened.set
      let chains = state.nextChain
      return {
        checkpoint,
        sealed,
        cpu,
        decode: pagesWithoutSecrets(cpu.decode, cpu.release, hidesQueries(pipeline)),
        buffers,
        shards,
        nextChain: () => chains++,
        async close() {
          await shards.close()
          await cpu.close()
          await checkpoint.close()
        },
      }
    }
    if ('set' in opened) await opened.set.close()
    const given = invalidationOf(state, {
      partitions: rejected,
      shards: 'lost' in opened ? opened.lost : [],
    })
    await checkpoint.append([redoEntry(given)])
    await checkpoint.close()
    log('warn', 'rows that wait in the log were damaged; the partitions concerned are exported anew', {
      partitions: given.partitions.size,
      rows: given.rows,
    })
    return null
  } catch (error) {
    await checkpoint.close()
    throw error
  }
}

/** Partitions whose rejected items in the log are lost. */
async function lostRejections(checkpoint: OpenLog): Promise<readonly string[]> {
  const lost: string[] = []
  for (const [partition, blobs] of checkpoint.state.rejected) {
    for (const ref of blobs) if ((await checkpoint.read(ref)) === null) lost.push(partition)
  }
  return lost
}
