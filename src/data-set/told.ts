import { numberOf, type Pipeline } from '../core/index.ts'
import { withFrozen } from '../pipeline/index.ts'
import { joined, schemaOf, withSchema } from '../rows/index.ts'
import {
  asExported,
  type CheckpointState,
  type Manifest,
  type Scope,
  type Settings,
  schemaFromJson,
} from '../state/index.ts'
import { columnChanges, settingsSince } from './admission.ts'
import { otherScope, withScope } from './plan/scope.ts'
import { withNames } from './queries.ts'

/** What a data set says of itself: its checkpoint, or as much of it as the manifest has. */
export type Told = Pick<CheckpointState, 'schemas' | 'scope'> & {
  readonly header: { readonly pipeline: string; readonly settings: Settings }
  readonly shards: Iterable<{ readonly schema?: number | undefined }>
}

export function toldByManifest(manifest: Manifest): Told {
  const { scope, shards, schema_settings } = manifest
  return { header: manifest, schemas: schema_settings.map(schemaFromJson), scope, shards }
}

export function asToldBy(given: Pipeline, told: Told): Pipeline {
  const { header, scope } = told
  const exported = asExported(withFrozen({ ...given, name: header.pipeline }, header.settings), told)
  const unfiltered = { ...exported, extract: { ...exported.extract, unfiltered: null } }
  return scope === null ? unfiltered : withScope(unfiltered, scope)
}

/** What runs may change stays as the file has it. */
export function withChanges(exported: Pipeline, { transform, load }: Pipeline): Pipeline {
  const { onInvalid, maxQuarantined } = transform
  return {
    ...exported,
    transform: { ...exported.transform, onInvalid, maxQuarantined },
    load: { ...exported.load, shardRows: load.shardRows },
  }
}

/** Without a key, names of queries that need one are those of the data set alone. */
export function plannedBy(pipeline: Pipeline, given: Pipeline, maskKey: Uint8Array | null): Pipeline {
  const { queries, windows, unfiltered } = pipeline.extract
  const schema = joined(schemaOf(given), schemaOf(pipeline))
  const described = withSchema(given, schema, given.transform.lacking)
  const planned = { ...described, extract: { ...described.extract, queries, windows, unfiltered } }
  return withNames(planned, maskKey) ?? described
}

export function differences(
  pipeline: Pipeline,
  { header: { pipeline: name, settings }, schemas, scope }: Told,
  maskKey: Uint8Array | null,
): readonly string[] {
  const named = withNames(pipeline, maskKey)
  const other =
    scope === null ? null : named === null ? otherNumber(scope, pipeline) : otherScope(scope, named)
  const changes = [...settingsSince(settings, pipeline, null), ...columnChanges(pipeline, schemas.at(-1)!)]
  return [
    ...(name === pipeline.name ? [] : [`it is of the pipeline "${name}", not of "${pipeline.name}"`]),
    ...changes.map(({ text }) => text),
    ...(other === null ? [] : [`it ${other}`]),
  ]
}

/** All that is known of queries whose names need the mask key, where it is not there. */
function otherNumber(scope: Scope, { extract: { queries } }: Pipeline): string | null {
  if (queries.length === scope.queries.length) return null
  return `was exported for ${numberOf(scope.queries.length, 'query', 'queries')}, and the file has ${queries.length}; the mask key tells which`
}
