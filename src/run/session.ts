import { randomUUID } from 'node:crypto'
import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import {
  admitRun,
  columnChanges,
  type Invalidation,
  invalidationOf,
  isOfCatalog,
  newNames,
  openChecked,
  planRedo,
  redoEntry,
  settle,
  unmark,
  writingOf,
} from '../data-set/index.ts'
import { lostShards, ShardSet } from '../load/index.ts'
import { frozenSettings } from '../pipeline/index.ts'
import { joined, type Schema, schemaDifference, schemaOf, withSchema } from '../rows/index.ts'
import {
  bringSuppression,
  type CheckpointState,
  changedSettings,
  type HeaderEntry,
  isInOrder,
  type Journal,
  manifestShard,
  maskKeySetting,
  presentOf,
  schemaToJson,
} from '../state/index.ts'
import type { Decoder } from '../transform/index.ts'
import { decodersOf } from './decoding.ts'
import type { RunOptions } from './options.ts'

/** The columns of what a run exports from now on. */
type OwnSchema = {
  /** Its number: the newest of the data set, or the next. */
  readonly number: number
  readonly schema: Schema
}

/** What a run holds open on its data set. */
export type Session = {
  readonly journal: Journal
  readonly sealed: { shards: number; bytes: number }
  readonly shards: ShardSet
  /** The columns of what this run begins. */
  readonly own: OwnSchema
  /** All schemas by their numbers, that one too. */
  readonly schemas: readonly Schema[]
  /** Decodes pages of a schema. */
  readonly decoderOf: (schema: number) => Decoder
  nextChain(): number
  close(): Promise<void>
}

/**
 * Opens the data set, or begins it. What `redo` names, and what needs lost bytes of the log, is exported again.
 * @throws ExportError `config` or `damaged`
 */
export async function openSession(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: RunOptions,
): Promise<Session> {
  let redo: Invalidation | null = null
  const journal = await openChecked(store, headerOf(pipeline, options), async (found) => {
    admitRun(pipeline, found, options)
    redo = await redone(pipeline, found, options)
    return redo?.former.map(({ shard }) => shard) ?? []
  })
  try {
    const { state } = journal
    const suppress = await bringSuppression(store, journal)
    await journal.append([
      ...(redo === null ? [] : [redoEntry(redo)]),
      ...newNames(pipeline, state, options.maskKey),
    ])
    const own = ownSchema(pipeline, state)
    const schemas = [...state.schemas]
    schemas[own.number] = own.schema
    const decoderOf = decodersOf(pipeline, schemas, options.maskKey, suppress)
    const { write } = writingOf(store, pipeline, schemas, options)
    const sealed = { shards: 0, bytes: 0 }
    await giveUpLost(journal, options)
    // What an earlier command has not finished.
    if (!state.isSettled) {
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
    let chains = state.nextChain
    const close = (): Promise<void> => shards.close().finally(() => journal.close())
    return { journal, sealed, own, schemas, decoderOf, shards, nextChain: () => chains++, close }
  } catch (error) {
    await journal.close().catch(() => {})
    throw error
  }
}

function headerOf(pipeline: NamedPipeline, { clock, maskKey }: RunOptions): HeaderEntry {
  return {
    kind: 'header',
    version: 5,
    pipeline: pipeline.name,
    data_set_id: randomUUID(),
    created_at: new Date(clock.now()).toISOString(),
    settings: { ...frozenSettings(pipeline), ...maskKeySetting(maskKey) } as HeaderEntry['settings'],
    schema: schemaToJson(schemaOf(pipeline)),
  }
}

async function redone(
  pipeline: NamedPipeline,
  state: CheckpointState,
  { redo: patterns, clock, onLog }: RunOptions,
): Promise<Invalidation | null> {
  // Before the lock, `runPipeline` has matched them with what a new data set will hold.
  if (patterns.length === 0) return null
  const redo = await planRedo(pipeline, state, patterns, clock.now())
  requireColumnsKept(pipeline, state, redo)
  if (redo === null) return null
  const { partitions, rows, former } = redo
  onLog('info', 'what is exported again stays until it is replaced', {
    partitions: partitions.size,
    rows,
    shards: former.length,
  })
  return redo
}

/** A column that goes, or is another, may not stay in shards of what is no longer requested. */
function requireColumnsKept(
  pipeline: NamedPipeline,
  state: CheckpointState,
  redo: Invalidation | null,
): void {
  const changes = columnChanges(pipeline, state.schemas.at(-1)!)
  if (changes.length === 0) return
  const goes = new Set(redo?.former.map(({ shard }) => shard))
  for (const { shard, path, rows } of state.shards) {
    if (rows === 0 || goes.has(shard)) continue
    throw changedSettings(
      changes,
      pipeline,
      `${path} keeps its columns, since its query or window is no longer requested: put it back into the file, or write to another load.path.`,
    )
  }
}

/** Another order of columns is no change: added ones stand behind those that there are. */
function ownSchema(pipeline: NamedPipeline, { schemas }: CheckpointState): OwnSchema {
  const newest = schemas.at(-1)!
  const { added, changed } = schemaDifference(withSchema(pipeline, newest), pipeline)
  if (added.length + changed.length === 0) return { number: schemas.length - 1, schema: newest }
  const schema = schemaOf(pipeline)
  return { number: schemas.length, schema: changed.length === 0 ? joined(newest, schema) : schema }
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
