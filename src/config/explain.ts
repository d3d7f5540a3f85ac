import { type Pipeline, unlessSecret } from '../core/index.ts'
import { isMapping, type Location, locationAt, type Path, type Tree, valueAt } from './problems/tree.ts'
import type { ReadOptions } from './read-pipeline.ts'
import { needsMaskKey } from './requirements.ts'
import { checkShape } from './schema/check-shape.ts'
import { pipelineJsonSchema } from './schema/json-schema.ts'
import { type Environment, secretVariables, variable } from './secrets/secrets.ts'
import { parseDomain } from './values/addresses.ts'
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
  const settings = settingsOf(pipelineJsonSchema() as Schema, [], { tree, pipeline })
  const names = secretVariables(pipeline).filter(
    (name) => name !== pipeline.transform.maskKeyEnv || needsMaskKey(pipeline),
  )
  return { settings, secrets: names.map((name) => explainSecret(name, options.env)) }
}

type Schema = { readonly properties?: Readonly<Record<string, Schema>>; readonly default?: unknown }
type Context = { readonly tree: Tree; readonly pipeline: Pipeline }

function settingsOf({ properties = {} }: Schema, parent: Path, context: Context): ExplainedSetting[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const path = [...parent, name]
    const key = path.join('.')
    if (schema.properties !== undefined) {
      return isIdle(key, context) ? [] : settingsOf(schema, path, context)
    }
    const setting = settingOf(key, path, schema, context)
    return setting === null ? [] : [setting]
  })
}

/** Whether a section does not apply. */
function isIdle(key: string, { tree, pipeline }: Context): boolean {
  if (key === 'load.csv' || key === 'load.parquet') return key !== `load.${pipeline.load.format.kind}`
  const byDefaultAbsent = ['extract.windows', 'load.s3', 'load.azure']
  return byDefaultAbsent.includes(key) && valueAt(tree, key.split('.')) === undefined
}

function settingOf(key: string, path: Path, schema: Schema, context: Context): ExplainedSetting | null {
  const { tree, pipeline } = context
  const given = valueAt(tree, path)
  if (given === undefined) {
    const value = Object.hasOwn(RESOLVED, key) ? RESOLVED[key]!(pipeline) : schema.default
    return value === undefined ? null : { key, value, from: { by: 'default' } }
  }
  const { location } = locationAt(tree, path)
  const from = location === null ? ({ by: 'default' } as const) : originOf(location, tree)
  const show = SHOWN[key]
  const value = show !== undefined && Array.isArray(given) ? given.map((item) => show(item, pipeline)) : given
  return { key, value: withoutSecrets(value, isMadeOfVariables(tree, path)), from }
}

function originOf(location: Location, tree: Tree): Exclude<Origin, { by: 'default' }> {
  if (location.from === 'flag') return { by: 'flag', flag: location.flag }
  const { file, lineAt } = location.source
  const { line, col } = lineAt?.(location.value) ?? { line: 1, col: 1 }
  const extended = location.source.path !== tree.source.path
  return { by: 'file', file, line, column: col, extended, variables: location.variables }
}

/** Defaults that depend on other settings; undefined: none. */
const RESOLVED: Readonly<Record<string, (pipeline: Pipeline) => unknown>> = {
  'service.token_env': ({ service }) => (service.auth.kind === 'token' ? service.auth.tokenEnv : undefined),
  'service.token_url': ({ service: { auth } }) => (auth.kind === 'api-key' ? '/tokens/generate' : undefined),
  'service.token_lifetime': ({ service: { auth } }) => (auth.kind === 'api-key' ? '1h' : undefined),
  'extract.lag': ({ extract }) => (extract.windows?.until === 'now' ? '15m' : undefined),
  'transform.columns': ({ transform }) => transform.columns,
  'load.path': ({ load }) => load.pathAsGiven,
  'load.compression': ({ load }) => load.format.compression,
}

/** Values that are shown in another form: domains as they are searched for, a line for each query. */
const SHOWN: Readonly<Record<string, (item: unknown, pipeline: Pipeline) => unknown>> = {
  'extract.domains': (domain) => (typeof domain === 'string' ? parseDomain(domain) : domain),
  'transform.extra_columns': (column) =>
    isMapping(column) ? `${column.name} (${column.path}, ${column.type})` : column,
  'extract.queries': (query, { transform }) => {
    if (!isMapping(query)) return query
    const { type, as, fqdn, email, keyword, secret_env } = query
    const isHidden = transform.identity !== 'keep' && (type === 'email' || type === 'keyword')
    const asked = isHidden ? '(hidden by transform.identity)' : (fqdn ?? email ?? keyword ?? secret_env)
    return `${type} ${as ?? asked}`
  },
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
