import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import {
  invalidationOf,
  isOfCatalog,
  type OwnSchema,
  openOwnJournal,
  redoEntry,
  settle,
  unmark,
  writingOf,
} from '../data-set/index.ts'
import { lostShards, ShardSet } from '../load/index.ts'
import type { Schema } from '../rows/index.ts'
import { isInOrder, type Journal, manifestShard, presentOf } from '../state/index.ts'
import type { Decoder } from '../transform/index.ts'
import { decodersOf } from './decoding.ts'
import type { RunOptions } from './options.ts'

/** What a run holds open on its data set. */
export type Session = {
  readonly journal: Journal
  readonly sealed: { shards: number; bytes: number }
  readonly shards: ShardSet
  /** The columns of what this run begins. */
  readonly own: OwnSchema
  /** All schemas by their numbers, that one too. */
  readonly schemas: readonly Schema[]
  /** Decodes pages of a schema. They repeat no known secret. */
  readonly decoderOf: (schema: number) => Decoder
  nextChain(): number
  close(): Promise<void>
}

/** Opens the data set. What needs lost bytes of the log is invalidated. @throws ExportError `config` or `damaged` */
export async function openSession(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: RunOptions,
): Promise<Session> {
  const { journal, suppress, own } = await openOwnJournal(pipeline, store, options)
  try {
    const schemas = [...journal.state.schemas]
    schemas[own.number] = own.schema
    const decoderOf = decodersOf(pipeline, schemas, options.maskKey, suppress)
    const { write } = writingOf(store, pipeline, schemas, options)
    const sealed = { shards: 0, bytes: 0 }
    await giveUpLost(journal, options)
    // What an earlier command has not finished.
    if (!journal.state.isSettled) {
      await settle(pipeline, store, journal, options).catch((error: unknown) => {
        // A catalog out of reach keeps no row from being exported. The end of the run tries again.
        if (!isOfCatalog(error)) throw error
      })
    }
    const { onLog, onShard } = options
    // A feed that was read to its end has _SUCCESS until a shard comes that the manifest does not name.
    let unmarked: Promise<void> | null = null
    const shards = await ShardSet.open({
      store,
      writer: write,
      log: journal,
      readsCost: pipeline.load.location.kind !== 'disk',
      shardRows: pipeline.load.shardRows,
      onSealed: ({ path, rows, bytes }) => {
        sealed.shards++
        sealed.bytes += bytes
        onLog('info', 'shard sealed', { event: 'shard.sealed', path, rows, bytes })
        unmarked ??= unmark(store)
        return unmarked
      },
      onPublished: (entry) => {
        onLog('info', 'shard published', { event: 'shard.published', path: entry.path })
        onShard?.(manifestShard(entry))
      },
    })
    let chains = journal.state.nextChain
    const close = (): Promise<void> => shards.close().finally(() => journal.close())
    return { journal, sealed, own, schemas, decoderOf, shards, nextChain: () => chains++, close }
  } catch (error) {
    await journal.close().catch(() => {})
    throw error
  }
}

/** If bytes in the log are lost, all that needs them is exported again. */
async function giveUpLost(journal: Journal, { onLog }: Pick<RunOptions, 'onLog'>): Promise<void> {
  const shards = await lostShards(journal)
  const partitions = [...(await lostRejections(journal)), ...(await lostChains(journal))]
  if (shards.size + partitions.length === 0) return
  const given = invalidationOf(journal.state, { partitions, shards })
  await journal.append([redoEntry(given)])
  const message =
    'rows or ids in the log were damaged, or a cursor is lost; the partitions concerned are exported anew'
  onLog('warn', message, { partitions: given.partitions.size, rows: given.rows })
}

async function lostRejections(journal: Journal): Promise<readonly string[]> {
  const lost: string[] = []
  const { rejected, redo } = journal.state
  for (const [partition, blobs] of [...rejected, ...redo.rejected]) {
    for (const ref of blobs) if ((await journal.read(ref)) === null) lost.push(partition)
  }
  return lost
}

/** Partitions of searches that cannot go on: their cursor is lost, or ids by which rows are known. */
async function lostChains(journal: Journal): Promise<readonly string[]> {
  const { state } = journal
  const lost: string[] = []
  for (const folded of state.chains.values()) {
    if (folded.feed !== null) continue
    let isLost = folded.lost
    for (const ref of folded.ids) isLost ||= (await journal.read(ref)) === null
    if (!isLost) continue
    // Late rows may be left of windows that were done.
    const names = folded.windows.names.slice(isInOrder(folded) ? folded.watermark : 0)
    const keys = names.map((name) => `${folded.query}/${name}`)
    lost.push(...keys.filter((key) => presentOf(state, key) !== undefined))
  }
  return lost
}
