import {
  type BufferPool,
  bufferPool,
  type JournalEntry,
  type NamedPipeline,
  type Store,
} from '../../core/index.ts'
import type { ShardSet } from '../../load/index.ts'
import { type Checkpoint, type CheckpointState, idPath, sweepIds } from '../../state/index.ts'
import { openOwnCheckpoint } from '../admission/index.ts'
import { type Cpu, openCpu } from '../cpu/index.ts'
import { giveUp, withAllThatGoes } from '../data-set/index.ts'
import type { QuerySecrets, RunOptions } from '../setting/index.ts'
import { openShards } from './open-shards.ts'
import { decodePlan, encodePlan } from './plans.ts'

/** What a run holds open on its data set. */
export type Session = {
  readonly checkpoint: Checkpoint
  readonly shards: ShardSet<JournalEntry>
  readonly cpu: Cpu
  /** For the bodies of answers. */
  readonly buffers: BufferPool
  /** Called with the lines of every commit, once they are durable. */
  onRecorded: (facts: readonly JournalEntry[]) => void
  /** A number that no other chain of the data set has. */
  nextChain(): number
  close(): Promise<void>
}

/**
 * Opens checkpoint and shards and brings them into agreement: finished shards get their names, open ones
 * are taken up, and where bytes of those did not survive their partitions are given up.
 * @throws ExportError `config` or `damaged` when the run may not go on from what is there
 */
export async function openSession(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<Session> {
  // One for each answer that is on its way or not committed yet, and one more for answers that grow.
  const shared = options.cpu ?? null
  const buffers = shared?.buffers ?? bufferPool(pipeline.extract.concurrency + 1)
  const plans = [decodePlan(pipeline, options.maskKey), encodePlan(pipeline, options)] as const
  const cpu = await openCpu(...plans, buffers, shared)
  try {
    for (;;) {
      const session = await openOnce(pipeline, store, secrets, { cpu, buffers }, options)
      if (session !== null) return session
    }
  } catch (error) {
    await cpu.close()
    throw error
  }
}

/** @returns null when something had to be given up: then everything is to be opened anew */
async function openOnce(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  { cpu, buffers }: Pick<Session, 'cpu' | 'buffers'>,
  options: RunOptions,
): Promise<Session | null> {
  const checkpoint = await openOwnCheckpoint(pipeline, store, secrets, options)
  const { state } = checkpoint
  let shards: ShardSet<JournalEntry> | null = null
  let chains = state.nextChain
  try {
    const session: Session = {
      checkpoint,
      cpu,
      buffers,
      shards: openShards(
        pipeline,
        {
          store,
          cpu,
          checkpoint,
          observer: options.observer,
          onRecorded: (facts) => session.onRecorded(facts),
        },
        { nextShard: state.nextShard, partsOf: (folder) => state.partsOf.get(folder) ?? 0 },
      ),
      onRecorded: () => {},
      nextChain: () => chains++,
      async close() {
        await session.shards.close()
        await cpu.close()
        await checkpoint.close()
      },
    }
    shards = session.shards
    const lost = await shards.restore(state.openShards.values())
    if (lost.size === 0) {
      await sweepIds(store, () => idFiles(state))
      return session
    }
    await checkpoint.close()
    const given = withAllThatGoes(state, { partitions: [], shards: lost })
    await giveUp(store, state, given)
    options.observer.log('warn', 'open shards were damaged; the partitions concerned are exported anew', {
      partitions: given.partitions.size,
      rows: given.rows,
    })
    return null
  } catch (error) {
    await shards?.close()
    await checkpoint.close()
    throw error
  }
}

/** The files that hold the ids of chains which are not at their end. */
function idFiles(state: CheckpointState): ReadonlySet<string> {
  const paths = new Set<string>()
  for (const { chain, ids } of state.chains.values()) if (ids !== null) paths.add(idPath(chain, ids.file))
  return paths
}
