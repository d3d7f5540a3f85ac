import { ExportError, nullIf, type Pipeline, type Store } from '../core/index.ts'
import { mayHaveTables } from '../open-tables/index.ts'
import { withFrozen } from '../pipeline/index.ts'
import { joined, type Schema, schemaOf, withSchema, withSchemas } from '../rows/index.ts'
import {
  isKeyOf,
  readCheckpoint,
  readManifest,
  type Scope,
  type Settings,
  schemaFromJson,
  usedSchemas,
} from '../state/index.ts'
import { columnChanges, settingsSince } from './open/open-checkpoint.ts'
import { namingLocations, openStore } from './open-store.ts'
import { otherScope, withScope } from './plan/scope.ts'
import { withNames } from './queries.ts'

export type Place = {
  /** What the file says. Only the place, tables, `load.keep` and the name of the mask key are taken from it. */
  readonly pipeline: Pipeline
  /** Why the rest of it is not known; null: it is. */
  readonly unknown: ExportError | null
  /** Why a run with the file would be refused; null: it is valid, or only the path of a data set was given. */
  readonly invalid?: ExportError | null
  /** The names of queries may need it; null: there is none. */
  readonly maskKey?: Uint8Array | null
}

export type Described = {
  /** As if its file still said what the data set was exported with. */
  readonly pipeline: Pipeline
  /** The same, with the queries, windows and columns that the file plans, where it is known. */
  readonly planned: Pipeline
  /** How the file differs from that; empty: it does not, or is not known. */
  readonly differences: readonly string[]
  readonly invalid: ExportError | null
}

/** Readers know it by its manifest; its checkpoint may be ahead. Where shards are replaced, tables have to follow. */
export type Use = 'read' | 'status' | 'change'

/** Before anything is exported, the file decides. @throws ExportError `config` when it does not say what to export */
export function describeDataSet(
  { pipeline, unknown, invalid = null, maskKey = null }: Place,
  use: Use,
): Promise<Described> {
  return namingLocations(pipeline, async () => {
    const store = openStore(pipeline)
    const told = await toldBy(store, use)
    if (use === 'change' && unknown !== null && mayHaveTables(await store.list('')))
      throw new ExportError({
        kind: 'config',
        what: 'There are tables over the shards, and only the pipeline file says which and where they are',
        where: '.',
        next: 'Give the pipeline file in place of the path.',
      })
    if (told === null) {
      if (unknown !== null) throw unknown
      return { pipeline, planned: pipeline, differences: [], invalid }
    }
    const exported = asToldBy(pipeline, told)
    if (unknown !== null) return { pipeline: exported, planned: exported, differences: [], invalid }
    // What runs may change stays as the file has it.
    const { onInvalid, maxQuarantined } = pipeline.transform
    const described = {
      ...exported,
      transform: { ...exported.transform, onInvalid, maxQuarantined },
      load: { ...exported.load, shardRows: pipeline.load.shardRows },
    }
    const key = isKeyOf(told.settings, maskKey) ? maskKey : null
    return {
      pipeline: described,
      planned: plannedBy(pipeline, described, key),
      differences: differences(pipeline, told, key),
      invalid,
    }
  })
}

/** Without a key, names of queries that need one are those of the data set alone. */
function plannedBy(pipeline: Pipeline, given: Pipeline, maskKey: Uint8Array | null): Pipeline {
  const { queries, windows, unfiltered } = pipeline.extract
  const schema = joined(schemaOf(given), schemaOf(pipeline))
  const described = withSchema(given, schema, given.transform.lacking)
  const planned = { ...described, extract: { ...described.extract, queries, windows, unfiltered } }
  return withNames(planned, maskKey) ?? described
}

type Told = {
  readonly name: string
  readonly settings: Settings
  readonly schemas: readonly Schema[]
  /** Those of its shards. */
  readonly used: readonly Schema[]
  readonly scope: Scope | null
}

/** What cannot be read is for the command to report. */
async function toldBy(store: Store, use: Use): Promise<Told | null> {
  const byManifest = async (): Promise<Told | null> => {
    const manifest = await readManifest(store).catch(nullIf('damaged'))
    if (manifest === null) return null
    const { pipeline: name, settings, scope, shards } = manifest
    const schemas = manifest.schema_settings.map(schemaFromJson)
    return { name, settings, schemas, used: usedSchemas(schemas, shards), scope }
  }
  const byCheckpoint = async (): Promise<Told | null> => {
    const state = await readCheckpoint(store).catch(nullIf('damaged', 'config'))
    if (state === null) return null
    const { header, schemas, shards, scope } = state
    const used = usedSchemas(schemas, shards)
    return { name: header.pipeline, settings: header.settings, schemas, used, scope }
  }
  const [first, second] = use === 'read' ? [byManifest, byCheckpoint] : [byCheckpoint, byManifest]
  return (await first()) ?? (await second())
}

function differences(
  pipeline: Pipeline,
  { name, settings, schemas, scope }: Told,
  maskKey: Uint8Array | null,
): readonly string[] {
  const named = withNames(pipeline, maskKey)
  const other = named === null || scope === null ? null : otherScope(scope, named)
  const changes = [...settingsSince(settings, pipeline, null), ...columnChanges(pipeline, schemas.at(-1)!)]
  return [
    ...(name === pipeline.name ? [] : [`it is of the pipeline "${name}", not of "${pipeline.name}"`]),
    ...changes.map(({ text }) => text),
    ...(other === null ? [] : [`it ${other}`]),
  ]
}

function asToldBy(given: Pipeline, { name, settings, used, scope }: Told): Pipeline {
  const exported = withSchemas(withFrozen({ ...given, name }, settings), used)
  const unfiltered = { ...exported, extract: { ...exported.extract, unfiltered: null } }
  return scope === null ? unfiltered : withScope(unfiltered, scope)
}
