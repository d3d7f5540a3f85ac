import { type Pipeline, unlessSecret } from '../core/index.ts'
import {
  dotted,
  isMapping,
  type Location,
  locationAt,
  type Path,
  type Tree,
  valueAt,
} from './problems/tree.ts'
import type { ReadOptions } from './read-pipeline.ts'
import { needsMaskKey } from './requirements.ts'
import { checkShape } from './schema/check-shape.ts'
import { pipelineFile } from './schema/file-schema.ts'
import { type Key, keysOf } from './schema/key.ts'
import { type Environment, secretVariables, variable } from './secrets/secrets.ts'
import { expandTree } from './yaml/expand.ts'
import { override, rereadTree } from './yaml/read-tree.ts'

/** A key of a pipeline: its value and its origin. */
export type ExplainedSetting = {
  /** `extract.page_size` */
  readonly key: string
  /** As in a pipeline file. */
  readonly value: unknown
  readonly from: Origin
}

export type Origin =
  | { readonly by: 'flag'; readonly flag: string }
  | {
      readonly by: 'file'
      readonly file: string
      readonly line: number
      readonly column: number
      /** Whether it is in a file that the pipeline file extends. */
      readonly extended: boolean
      /** Environment variables that it was made from. */
      readonly variables: readonly string[]
    }
  | { readonly by: 'default' }

/** A secret by the name of its variable. The secret itself is not read. */
export type ExplainedSecret = {
  readonly variable: string
  readonly isSet: boolean
  /** The variable that names a file with it; null: it is in the variable itself, or not set. */
  readonly fileVariable: string | null
}

export type Explanation = {
  readonly settings: readonly ExplainedSetting[]
  readonly secrets: readonly ExplainedSecret[]
}

/**
 * The value and origin of every key that applies to a pipeline, in the order of the reference. Without what an identity
 * policy hides, and without known secrets.
 * @param pipeline as it was read with the same options
 */
export async function explainPipeline(pipeline: Pipeline, options: ReadOptions): Promise<Explanation> {
  const { tree, problems } = await rereadTree(pipeline.file, options)
  override(tree, options.overrides ?? {})
  expandTree(tree, options.env, problems)
  // Gives numbers that come from variables their type.
  if (isMapping(tree.root)) checkShape(tree, problems)
  const settings = settingsOf(keysOf(pipelineFile), [], { tree, pipeline })
  const names = secretVariables(pipeline).filter(
    (name) => name !== pipeline.transform.maskKeyEnv || needsMaskKey(pipeline),
  )
  return { settings, secrets: names.map((name) => explainSecret(name, options.env)) }
}

type Context = { readonly tree: Tree; readonly pipeline: Pipeline }

function settingsOf(keys: readonly Key[], parent: Path, context: Context): readonly ExplainedSetting[] {
  const { tree, pipeline } = context
  return keys.flatMap((key): readonly ExplainedSetting[] => {
    const path = [...parent, key.name]
    const given = valueAt(tree, path)
    if (given !== undefined) {
      return key.keys === null ? [givenSetting(key, path, context)] : settingsOf(key.keys, path, context)
    }
    if (key.appliesTo?.(pipeline) === false) return []
    const value = key.resolved === undefined ? key.byDefault : key.resolved(pipeline)
    if (value === undefined) return []
    if (key.keys !== null) return settingsOf(key.keys, path, context)
    return [{ key: dotted(path), value, from: { by: 'default' } }]
  })
}

function givenSetting({ item }: Key, path: Path, { tree, pipeline }: Context): ExplainedSetting {
  const given = valueAt(tree, path)
  const { location } = locationAt(tree, path)
  const from = location === null ? ({ by: 'default' } as const) : originOf(location, tree)
  const value = item !== undefined && Array.isArray(given) ? given.map((each) => item(each, pipeline)) : given
  return { key: dotted(path), value: withoutSecrets(value, isMadeOfVariables(tree, path)), from }
}

function originOf(location: Location, tree: Tree): Exclude<Origin, { by: 'default' }> {
  if (location.from === 'flag') return { by: 'flag', flag: location.flag }
  const { file, lineAt } = location.source
  const { line, col } = lineAt?.(location.value) ?? { line: 1, col: 1 }
  const extended = location.source.path !== tree.source.path
  return { by: 'file', file, line, column: col, extended, variables: location.variables }
}

function isMadeOfVariables(tree: Tree, path: Path): boolean {
  const { location } = locationAt(tree, path)
  if (location?.from === 'file' && location.variables.length > 0) return true
  const value = valueAt(tree, path)
  return Array.isArray(value) && value.some((_, i) => isMadeOfVariables(tree, [...path, i]))
}

/** Variables may hold anything, so in their values short secrets are hidden, too. */
function withoutSecrets(value: unknown, isFromOutside: boolean): unknown {
  if (typeof value === 'string') return unlessSecret(value, isFromOutside ? 'any' : 'long')
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, isFromOutside))
  return value
}

function explainSecret(name: string, env: Environment): ExplainedSecret {
  const file = `${name}_FILE`
  const isThere = variable(name, env) !== ''
  const isInFile = !isThere && variable(file, env) !== ''
  return { variable: name, isSet: isThere || isInFile, fileVariable: isInFile ? file : null }
}
