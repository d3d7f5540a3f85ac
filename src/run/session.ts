import { type BufferPool, bufferPool, type NamedPipeline, type Store } from '../core/index.ts'
import { chunkRows, ShardSet, shardExtension } from '../load/index.ts'
import { type Checkpoint, type CheckpointState, idPath, type Line, sweepIds } from '../state/index.ts'
import { type Cpu, openCpu } from './cpu/index.ts'
import type { CommittedPage } from './export-partition.ts'
import { openOwnCheckpoint } from './open-checkpoint.ts'
import type { RunOptions } from './options.ts'
import { decodePlan, encodePlan } from './plans.ts'
import type { QuerySecrets } from './query-secrets.ts'
import { rollBack } from './recover.ts'

/** What a run holds open on its data set. */
export type Session = {
  readonly checkpoint: Checkpoint
  readonly shards: ShardSet<CommittedPage>
  readonly cpu: Cpu
  /** For the bodies of answers. */
  readonly buffers: BufferPool
  /** Called with the lines of every commit, once they are durable. */
  onRecorded: (lines: readonly Line[]) => void
  close(): Promise<void>
}

/**
 * Opens checkpoint and shards and brings them into agreement: finished shards get their names, open ones
 * are taken up, and where bytes of those did not survive the checkpoint goes back to before their pages.
 * @throws ExportError `config` or `damaged` when the run may not go on from what is there
 */
export async function openSession(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<Session> {
  // One for each answer that is on its way or not committed yet, and one more for answers that grow.
  const buffers = bufferPool(pipeline.extract.concurrency + 1)
  const cpu = openCpu(decodePlan(pipeline, options.maskKey), encodePlan(pipeline, options), buffers)
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

/** @returns null when the checkpoint had to be rolled back: then everything is to be opened anew */
async function openOnce(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  { cpu, buffers }: Pick<Session, 'cpu' | 'buffers'>,
  options: RunOptions,
): Promise<Session | null> {
  const checkpoint = await openOwnCheckpoint(pipeline, store, secrets, options)
  const { state } = checkpoint
  let shards: ShardSet<CommittedPage> | null = null
  try {
    const session: Session = {
      checkpoint,
      cpu,
      buffers,
      shards: new ShardSet<CommittedPage>({
        store,
        coder: cpu.coder,
        extension: shardExtension(pipeline.load.format),
        chunkRows: chunkRows(pipeline.load.format),
        shardRows: pipeline.load.shardRows,
        nextShard: state.nextShard,
        partsOf: (folder) => state.partsOf.get(folder) ?? 0,
        record: async (lines) => {
          await checkpoint.append(lines as readonly Line[])
          session.onRecorded(lines as readonly Line[])
        },
        warn: (message) => options.observer.log('warn', message),
      }),
      onRecorded: () => {},
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
    const pages = await rollBack(store, state, lost)
    options.observer.log('warn', 'open shards were damaged; the pages concerned are asked for again', {
      pages,
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
  for (const [key, { ids }] of state.partitions) if (ids !== null) paths.add(idPath(key, ids.file))
  return paths
}
