import { ExportError, type NamedPipeline, nullIf, type Pipeline, type Store } from '../core/index.ts'
import { requireTablesToFollow } from '../open-tables/index.ts'
import { frozenSettings, sinceBegun } from '../pipeline/index.ts'
import { type Schema, schemaDifference, withSchema } from '../rows/index.ts'
import {
  type CheckpointState,
  changedSettings,
  maskKeySetting,
  type SettingChange,
  type Settings,
  settingChanges,
} from '../state/index.ts'
import { knownState } from './open/find-state.ts'
import { openStore } from './open-store.ts'
import { requireSameNames } from './queries.ts'
import { requireOwnTables } from './settle/update-tables.ts'

/** What has to hold of a data set before pages come. @param redo patterns of what is exported again @throws ExportError */
export function admitRun(
  pipeline: NamedPipeline,
  state: CheckpointState,
  { maskKey, redo = [] }: { readonly maskKey: Uint8Array | null; readonly redo?: readonly string[] },
): void {
  const columns = redo.includes(ALL) ? [] : columnChanges(pipeline, state.schemas.at(-1)!)
  checkContinues(pipeline, state, [...settingsSince(state.header.settings, pipeline, maskKey), ...columns])
  requireSameNames(pipeline, state, maskKey)
}

/** The same before shards change. */
export async function admitChange(
  pipeline: Pipeline | NamedPipeline,
  store: Store,
  state: CheckpointState,
): Promise<void> {
  requireOwnCheckpoint(pipeline, state)
  const tables = { ...pipeline.load.tables, dataSetId: state.header.data_set_id }
  await requireTablesToFollow(store, tables, state.tables)
}

/** The same before what is there is brought in line, listed or signed. @param rebuild whether tables are made anew */
export async function admitMark(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  rebuild: boolean,
): Promise<void> {
  requireOwnCheckpoint(pipeline, state)
  await requireOwnTables(pipeline, store, rebuild)
}

/** @throws ExportError `config` where the data set is another pipeline's, or has other settings; the key is not compared */
export async function requireFit(pipeline: Pipeline): Promise<void> {
  const known = await knownState(openStore(pipeline)).catch(nullIf())
  if (known?.state) requireOwnCheckpoint(pipeline, known.state)
}

/** Refuses the checkpoint of another pipeline, or of other settings; the mask key is not compared. @throws ExportError */
function requireOwnCheckpoint(pipeline: Pipeline | NamedPipeline, found: CheckpointState): void {
  checkContinues(pipeline, found, settingsSince(found.header.settings, pipeline, null))
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
