import { randomUUID } from 'node:crypto'
import type { NamedPipeline, OwnedStore } from '../../core/index.ts'
import { frozenSettings } from '../../pipeline/index.ts'
import {
  joined,
  type Schema,
  type SuppressList,
  schemaDifference,
  schemaOf,
  withSchema,
} from '../../rows/index.ts'
import {
  bringSuppression,
  type CheckpointState,
  changedSettings,
  type HeaderEntry,
  type Journal,
  maskKeySetting,
  schemaToJson,
} from '../../state/index.ts'
import { admit, columnChanges } from '../admission.ts'
import type { WriteOptions } from '../options.ts'
import { newNames } from '../queries.ts'
import { type Invalidation, planRedo, redoEntry } from '../redo/invalidate.ts'
import { openChecked } from './open-checked.ts'

/** The columns of what a run exports from now on. */
export type OwnSchema = {
  /** Its number: the newest of the data set, or the next. */
  readonly number: number
  readonly schema: Schema
}

type OwnJournal = {
  readonly journal: Journal
  readonly suppress: SuppressList | null
  readonly own: OwnSchema
}

type OwnOptions = Pick<WriteOptions, 'clock' | 'maskKey' | 'onLog'> & { readonly redo: readonly string[] }

/** What `redo` names is exported again. @throws ExportError `config` or `damaged`; nothing is changed then */
export async function openOwnJournal(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: OwnOptions,
): Promise<OwnJournal> {
  let redo: Invalidation | null = null
  const journal = await openChecked(store, headerOf(pipeline, options), async (found) => {
    await admit('run', { pipeline, store, state: found, ...options })
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
    return { journal, suppress, own: ownSchema(pipeline, state) }
  } catch (error) {
    await journal.close()
    throw error
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

async function redone(
  pipeline: NamedPipeline,
  state: CheckpointState | null,
  { redo: patterns, clock, onLog }: OwnOptions,
): Promise<Invalidation | null> {
  // Before the lock, `runPipeline` has matched them with what a new data set will hold.
  if (state === null || patterns.length === 0) return null
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

function headerOf(pipeline: NamedPipeline, { clock, maskKey }: OwnOptions): HeaderEntry {
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
