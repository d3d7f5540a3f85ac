import { randomUUID } from 'node:crypto'
import { ExportError, type NamedPipeline, type OwnedStore, type Pipeline, type Store } from '../core/index.ts'
import {
  type CheckpointState,
  checkSettings,
  frozenSettings,
  type HeaderEntry,
  type Journal,
  type Settings,
} from '../state/index.ts'
import { findState } from './find-state.ts'
import { requireShards } from './look.ts'
import type { DataSetOptions } from './options.ts'
import { openChecked } from './recover.ts'
import { type Invalidation, planRedo, redoEntry } from './redo/invalidate.ts'
import { newNames, requireSameNames } from './same-queries.ts'
import { readSuppression, type Suppression } from './suppression.ts'

/** What `redo` names is exported again. @throws ExportError `config` or `damaged`; nothing is changed then */
export async function openOwnJournal(
  pipeline: NamedPipeline,
  store: OwnedStore,
  options: Continuation & Pick<DataSetOptions, 'redo' | 'onLog' | 'readSecret'>,
): Promise<{ readonly journal: Journal; readonly suppress: Suppression['lists'] }> {
  const { header, requireFit } = admission(pipeline, options)
  let suppression: Suppression = { lists: [], name: null }
  let redo: Invalidation | null = null
  const journal = await openChecked(store, header, async (found) => {
    await requireFit(found)
    suppression = await readSuppression(pipeline, store, found, options)
    redo = await redone(pipeline, found, options)
    return [...(redo?.shards ?? [])]
  })
  try {
    const { state } = journal
    const { lists, name } = suppression
    await journal.append([
      ...(redo === null ? [] : [redoEntry(redo)]),
      ...newNames(pipeline, state, options.maskKey),
      ...(name === state.suppression || name === null ? [] : [{ kind: 'suppression', list: name } as const]),
    ])
    return { journal, suppress: lists }
  } catch (error) {
    await journal.close()
    throw error
  }
}

async function redone(
  pipeline: NamedPipeline,
  state: CheckpointState | null,
  { redo: patterns, clock, onLog }: Pick<DataSetOptions, 'redo' | 'clock' | 'onLog'>,
): Promise<Invalidation | null> {
  // Before the lock, `runPipeline` has matched them with what a new data set will hold.
  if (state === null || patterns.length === 0) return null
  const redo = await planRedo(pipeline, state, patterns, clock.now())
  if (redo === null) return null
  const { partitions, rows, invalidated } = redo
  onLog('info', 'what is exported again stays until it is replaced', {
    partitions: partitions.size,
    rows,
    shards: invalidated.length,
  })
  return redo
}

/** With the checks of {@link openOwnJournal}; null: there is none. Changes nothing, and works also during a run. */
export async function readOwnCheckpoint(
  pipeline: NamedPipeline,
  store: Store,
  options: Continuation,
): Promise<CheckpointState | null> {
  const { state: found, isClearing } = await findState(store)
  await admission(pipeline, options).requireFit(found)
  // The next command that changes the data set removes the rest of what was there.
  if (isClearing) return null
  await requireShards(store, found, (shard) => found!.redo.shards.has(shard))
  return found
}

/** Refuses the checkpoint of another pipeline, or of other settings; the mask key is not compared. @throws ExportError */
export function requireOwnCheckpoint(pipeline: Pipeline, found: CheckpointState): void {
  checkContinues(pipeline, found, frozenSettings(pipeline, null))
}

export type Continuation = Pick<DataSetOptions, 'clock' | 'maskKey'>

function admission(pipeline: NamedPipeline, { clock, maskKey }: Continuation) {
  const header: HeaderEntry = {
    kind: 'header',
    version: 5,
    pipeline: pipeline.name,
    data_set_id: randomUUID(),
    created_at: new Date(clock.now()).toISOString(),
    settings: frozenSettings(pipeline, maskKey) as HeaderEntry['settings'],
  }
  const requireFit = async (found: CheckpointState | null): Promise<void> => {
    if (found === null) return
    checkContinues(pipeline, found, header.settings)
    requireSameNames(pipeline, found, maskKey)
  }
  return { header, requireFit }
}

function checkContinues(pipeline: Pipeline, found: CheckpointState, settings: Settings): void {
  if (found.header.pipeline !== pipeline.name) {
    throw new ExportError({
      kind: 'config',
      what: `The folder belongs to the pipeline "${found.header.pipeline}", not to "${pipeline.name}"`,
      where: pipeline.load.pathAsGiven,
      next: 'Give each pipeline a load.path of its own, restore the name, or start over with --fresh.',
    })
  }
  checkSettings(found.header.settings, settings, pipeline)
}
