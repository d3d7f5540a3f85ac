import { getOrInsert, type NamedPipeline, type OwnedStore, type Pipeline } from '../core/index.ts'
import {
  invalidationOf,
  isOfCatalog,
  type OwnSchema,
  openOwnJournal,
  redoEntry,
  settle,
  writingOf,
} from '../data-set/index.ts'
import { lostShards, ShardSet } from '../load/index.ts'
import {
  columnsOf,
  type DecodePage,
  type DecodeSettings,
  ownFields,
  type Schema,
  type SuppressList,
  withSchema,
} from '../rows/index.ts'
import { isInOrder, type Journal, manifestShard, presentOf } from '../state/index.ts'
import type { Decoder } from '../transform/index.ts'
import type { RunOptions } from './options.ts'
import { pagesWithoutSecrets } from './pages-without-secrets.ts'

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
  readonly decoderOf: (schema: number) => DecodePage
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
  const closing = [() => journal.close()]
  const close = async (): Promise<void> => {
    for (let end = closing.shift(); end !== undefined; end = closing.shift()) {
      try {
        await end()
      } catch (error) {
        // The others are closed all the same.
        await close().catch(() => {})
        throw error
      }
    }
  }
  try {
    const schemas = [...journal.state.schemas]
    schemas[own.number] = own.schema
    // Made when they are needed: some runs have nothing to decode.
    const decoders = new Map<number, Promise<Decoder>>()
    const decoderOf = (schema: number): DecodePage => {
      const begin = async (): Promise<Decoder> => {
        const { createDecoder } = await import('../transform/index.ts')
        return createDecoder(
          decodeSettings(withSchema(pipeline, schemas[schema]!), options.maskKey, suppress),
        )
      }
      return pagesWithoutSecrets(async (body, context) =>
        (await getOrInsert(decoders, schema, begin))(body, context),
      )
    }
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
      },
      onPublished: (entry) => {
        onLog('info', 'shard published', { event: 'shard.published', path: entry.path })
        onShard?.(manifestShard(entry))
      },
    })
    closing.unshift(() => shards.close())
    let chains = journal.state.nextChain
    const made = { own, schemas, decoderOf }
    return { journal, sealed, ...made, shards, nextChain: () => chains++, close }
  } catch (error) {
    await close().catch(() => {})
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

export function decodeSettings(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  suppress: SuppressList | null,
): DecodeSettings {
  const { extract, transform } = pipeline
  return {
    resource: extract.resource,
    columns: columnsOf(pipeline),
    extras: [...ownFields(extract.resource, extract.include), ...transform.extraColumns],
    secretFacts: transform.secretFacts,
    order: extract.order,
    secret: transform.secret,
    identity: transform.identity,
    maskKey,
    suppress,
  }
}
