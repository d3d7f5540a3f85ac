import { randomUUID } from 'node:crypto'
import {
  ExportError,
  type NamedPipeline,
  nullIf,
  type OwnedStore,
  type Pipeline,
  type Store,
} from '../../core/index.ts'
import { frozenSettings, sinceBegun } from '../../pipeline/index.ts'
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
  type SettingChange,
  type Settings,
  schemaToJson,
  settingChanges,
} from '../../state/index.ts'
import { openStore } from '../open-store.ts'
import type { DataSetOptions } from '../options.ts'
import { type Invalidation, planRedo, redoEntry } from '../redo/invalidate.ts'
import { findState, readState, requireSuppression } from './find-state.ts'
import { requireShards } from './look.ts'
import { openChecked } from './open-checked.ts'
import { newNames, requireSameNames } from './same-queries.ts'

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

/** What `redo` names is exported again. @throws ExportError `config` or `damaged`; nothing is changed then */
export async function openOwnJournal(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: Continuation & Pick<DataSetOptions, 'redo' | 'onLog'>,
): Promise<OwnJournal> {
  const { header, requireFit } = admission(pipeline, options)
  let redo: Invalidation | null = null
  const journal = await openChecked(store, header, async (found) => {
    await requireFit(found)
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
  { redo: patterns, clock, onLog }: Pick<DataSetOptions, 'redo' | 'clock' | 'onLog'>,
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

/** With the checks of {@link openOwnJournal}; null: there is none. Changes nothing, and works also during a run. */
export async function readOwnCheckpoint(
  pipeline: NamedPipeline,
  store: Store,
  options: Continuation,
): Promise<CheckpointState | null> {
  const { state: found, manifest, isClearing } = await findState(store)
  await admission(pipeline, options).requireFit(found)
  // The next command that changes the data set removes the rest of what was there.
  if (isClearing) return null
  await requireSuppression(store, { manifest, state: found })
  await requireShards(store, found)
  return found
}

/** @throws ExportError `config` where the data set is another pipeline's, or has other settings; the key is not compared */
export async function requireFit(pipeline: Pipeline): Promise<void> {
  const state = await readState(openStore(pipeline)).catch(nullIf())
  if (state !== null) requireOwnCheckpoint(pipeline, state)
}

/** Refuses the checkpoint of another pipeline, or of other settings; the mask key is not compared. @throws ExportError */
export function requireOwnCheckpoint(pipeline: Pipeline, found: CheckpointState): void {
  checkContinues(pipeline, found, settingsSince(found.header.settings, pipeline, null))
}

export type Continuation = Pick<DataSetOptions, 'clock' | 'maskKey'> & Partial<Pick<DataSetOptions, 'redo'>>

function admission(pipeline: NamedPipeline, { clock, maskKey, redo = [] }: Continuation) {
  const header: HeaderEntry = {
    kind: 'header',
    version: 5,
    pipeline: pipeline.name,
    data_set_id: randomUUID(),
    created_at: new Date(clock.now()).toISOString(),
    settings: { ...frozenSettings(pipeline), ...maskKeySetting(maskKey) } as HeaderEntry['settings'],
    schema: schemaToJson(schemaOf(pipeline)),
  }
  const requireFit = async (found: CheckpointState | null): Promise<void> => {
    if (found === null) return
    const changes = settingsSince(found.header.settings, pipeline, maskKey)
    const columns = redo.includes(ALL) ? [] : columnChanges(pipeline, found.schemas.at(-1)!)
    checkContinues(pipeline, found, [...changes, ...columns])
    requireSameNames(pipeline, found, maskKey)
  }
  return { header, requireFit }
}

/** @param maskKey null: there is none, or it is not compared */
export function settingsSince(
  settings: Settings,
  pipeline: Pipeline | NamedPipeline,
  maskKey: Uint8Array | null,
): readonly SettingChange[] {
  const now = { ...frozenSettings(pipeline), ...maskKeySetting(maskKey) }
  return settingChanges(sinceBegun(settings, pipeline), now)
}

/** The glob of everything: a data set that is exported anew may have other columns. */
const ALL = '*'

/** Changes of columns that shards cannot follow. */
export function columnChanges(pipeline: Pipeline | NamedPipeline, newest: Schema): readonly SettingChange[] {
  const { added, changed } = schemaDifference(withSchema(pipeline, newest), pipeline)
  if (pipeline.load.format.kind === 'parquet' || added.length === 0) return changed
  return [
    ...changed,
    {
      key: 'transform.columns',
      text: `there are further columns (${added.join(', ')}), which CSV shards cannot get`,
    },
  ]
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

function checkContinues(
  pipeline: Pipeline | NamedPipeline,
  found: CheckpointState,
  changes: readonly SettingChange[],
): void {
  if (found.header.pipeline !== pipeline.name) {
    throw new ExportError({
      kind: 'config',
      what: `The folder belongs to the pipeline "${found.header.pipeline}", not to "${pipeline.name}"`,
      where: pipeline.load.pathAsGiven,
      next: 'Give each pipeline a load.path of its own, restore the name, or start over with --fresh.',
    })
  }
  if (changes.length > 0) throw changedSettings(changes, pipeline, remedyFor(changes))
}

function remedyFor(changes: readonly SettingChange[]): string | undefined {
  if (!changes.every(({ key }) => COLUMN_KEYS.includes(key))) return undefined
  return `Restore them, export everything anew with --redo '${ALL}' (it requests everything again; what is exported stays until then), or write to another load.path.`
}

const COLUMN_KEYS = [
  'extract.include',
  'transform.columns',
  'transform.extra_columns',
  'transform.secret_facts',
]
