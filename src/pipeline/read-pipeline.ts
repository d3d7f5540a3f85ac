import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ExportError, nullIf, type Pipeline, type Query, type Selection } from '../core/index.ts'
import { didYouMean } from './problems/describe.ts'
import type { Problems } from './problems/problems.ts'
import { dotted, isMapping, lineOf, locationAt, type Path, type Tree, valueAt } from './problems/tree.ts'
import { refuseIdleKeys } from './resolve/refuse-idle-keys.ts'
import { resolveExtract } from './resolve/resolve-extract.ts'
import { resolveLoad, STORE_KINDS, storeOf } from './resolve/resolve-load.ts'
import { resolveService } from './resolve/resolve-service.ts'
import { resolveTransform } from './resolve/resolve-transform.ts'
import { checkShape } from './schema/check-shape.ts'
import { asSettings, type PipelineFile, type PipelineSettings } from './schema/file-schema.ts'
import type { Environment } from './secrets/secrets.ts'
import { readText } from './values/read-text.ts'
import { expandTree, UNKNOWN_SERVICE } from './yaml/expand.ts'
import type { NamedText } from './yaml/parse-yaml.ts'
import { type Overrides, override, readTree } from './yaml/read-tree.ts'

export type ReadOptions = {
  readonly env: Environment
  readonly overrides?: Overrides
  /** Working directory: relative paths of the pipeline file itself and of the output start there. */
  readonly cwd: string
  /** Variables that only requests need may be unset. Default: false. */
  readonly sendsNothing?: boolean
}

/**
 * Reads a pipeline file, with flags, which override it, and defaults.
 * @throws ExportError 'config' that names every problem with file, line and column, or with the flag
 */
export async function readPipeline(file: string, options: ReadOptions): Promise<Pipeline> {
  return readSource(await sourceOf(file, options), options)
}

/** Where a data set lies: a pipeline as far as the file makes one, and what is wrong with the rest; null: nothing. */
export type GivenPlace = { readonly pipeline: Pipeline; readonly unknown: ExportError | null }

/**
 * Reads where a data set lies.
 * @param given a pipeline file, of which only that needs to be valid, or the path of a data set
 * @throws ExportError 'config' when the file does not say where
 */
export async function readPlace(given: string, options: ReadOptions): Promise<GivenPlace> {
  const isFolder = await stat(resolve(options.cwd, given)).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isFolder && storeOf(given) === undefined)
    return placeOf(await resolved(await sourceOf(given, options), options))
  const settings = { name: 'data-set', service: { base_url: UNKNOWN_SERVICE }, extract: {} }
  const text = JSON.stringify({ ...settings, load: { path: given } }).replaceAll('${', () => '$${')
  const source = { file: given, path: resolve(options.cwd, given), text, isMade: true }
  const place = placeOf(await resolved(source, options))
  const unknown = new ExportError({
    kind: 'config',
    what: 'There is no data set',
    where: given,
    next: 'Name a pipeline file, or the folder that has _manifest.json.',
  })
  return { ...place, unknown }
}

function placeOf({ pipeline, problems }: Resolved): GivenPlace {
  const keys = ['path', ...STORE_KINDS].map((key) => ['load', key])
  if (problems.isReported(['name'], ...keys)) throw problems.error()
  // Nothing of the service is needed.
  const isKnown = !problems.isReported(['extract'], ['transform'], ['load'])
  return { pipeline, unknown: isKnown ? null : problems.error() }
}

export async function sourceOf(file: string, options: ReadOptions): Promise<NamedText> {
  const path = resolve(options.cwd, file)
  const read = await readText(path)
  if (!read.ok) {
    throw new ExportError({
      kind: 'config',
      what: `The pipeline file ${read.reason}`,
      where: file,
      next: 'Name a pipeline file in YAML; `spillway init` writes one to begin with.',
    })
  }
  return { file, path, text: read.text }
}

/**
 * A pipeline from settings, or from the text of a pipeline file. Relative paths in it start in the working directory.
 * @throws ExportError 'config' that names every problem with its key, in a text also with line and column
 */
export function pipelineFrom(settings: PipelineSettings | string, options: ReadOptions): Promise<Pipeline> {
  const isMade = typeof settings !== 'string'
  // JSON is YAML.
  const text = isMade ? JSON.stringify(settings) : settings
  const file = isMade ? 'settings' : 'pipeline.yaml'
  return readSource({ file, path: resolve(options.cwd, file), text, isMade }, options)
}

/**
 * The settings of a pipeline file, complete: with what it extends, flags, variables expanded, the domains of
 * `domains_file`, and absolute paths. {@link pipelineFrom} makes the same pipeline of it in any directory, except
 * for `file`.
 * @param pipeline as it was read with the same options
 */
export async function readSettings(pipeline: Pipeline, options: ReadOptions): Promise<PipelineSettings> {
  const { file, extract, load } = pipeline
  const { tree, problems } = await readTree(await sourceOf(file, options), options.env)
  override(tree, options.overrides ?? {})
  expandTree(tree, options.env, problems)
  // Gives values of variables their type.
  checkShape(tree, problems)
  if (!problems.none) throw problems.error()
  const settings = asSettings(tree.root)
  settings.load = { ...settings.load, path: load.path }
  const { domains_file } = settings.extract
  if (domains_file !== undefined) {
    const domains = extract.queries.flatMap((query) =>
      query.type === 'domain' && query.as === undefined ? [query.fqdn] : [],
    )
    const { domains_file: _, ...rest } = settings.extract
    settings.extract = { ...rest, domains }
  }
  // All variables are expanded, so a remaining `${` is text.
  return JSON.parse(JSON.stringify(settings).replaceAll('${', () => '$${'))
}

async function readSource(source: NamedText, options: ReadOptions): Promise<Pipeline> {
  const { from, until, domains, ...rest } = options.overrides ?? {}
  const own =
    domains === undefined ? null : await wanted(source, { ...options, overrides: { ...rest, from, until } })
  const pipeline = await resolvePipeline(source, options, own)
  if (from === undefined && until === undefined && domains === undefined) return pipeline
  const whole = await wanted(source, { ...options, overrides: rest })
  return { ...pipeline, extract: { ...pipeline.extract, unfiltered: whole } }
}

/** @param own what the file requests without `--domain`; null: it is invalid without, or there is no such flag */
async function resolvePipeline(
  source: NamedText,
  options: ReadOptions,
  own: Selection | null = null,
): Promise<Pipeline> {
  const { pipeline, problems } = await resolved(source, options, own)
  if (!problems.none) throw problems.error()
  return pipeline
}

type Resolved = { readonly pipeline: Pipeline; readonly problems: Problems }

/** The pipeline of the keys that are valid, and the problems of the others. */
async function resolved(
  source: NamedText,
  options: ReadOptions,
  own: Selection | null = null,
): Promise<Resolved> {
  const { tree, problems } = await readTree(source, options.env)
  if (tree.root === null) {
    problems.add([], 'the file is empty; `spillway init` writes one to begin with')
    throw problems.error()
  }
  override(tree, options.overrides ?? {})
  expandTree(
    tree,
    options.env,
    problems,
    ([section]) => options.sendsNothing === true && section === 'service',
  )
  const settings = checkShape(tree, problems)

  refuseIdleKeys(settings, problems)
  const service = resolveService(settings.service, problems)
  const whole = await resolveExtract(settings, problems)
  const extract = own === null ? whole : { ...whole, queries: chosen(own, settings, problems) }
  const transform = resolveTransform(settings, problems)
  const load = resolveLoad(settings, transform.columns, problems, {
    cwd: options.cwd,
    folder: dirname(source.path),
  })
  const secrets = secretPaths(settings)
  const pipeline = {
    name: settings.name,
    file: source.file,
    locations: locationsOf(tree, [...pathsIn(tree), ...secrets.map(([, path]) => path)]),
    secretKeys: Object.fromEntries(secrets.map(([variable, path]) => [variable, dotted(path)])),
    service,
    extract,
    transform,
    load,
  }
  return { pipeline, problems }
}

const MAX_NAMED = 5

/**
 * The queries of the file that `--domain` names. A domain that the file lacks is reported: it is probably mistyped, and
 * what is exported once stays in the data set.
 */
function chosen(own: Selection, settings: PipelineFile, problems: Problems): readonly Query[] {
  const known = new Set(own.queries.flatMap((query) => (query.type === 'domain' ? [query.fqdn] : [])))
  const given = problems.isReported(['extract', 'domains']) ? [] : (settings.extract.domains ?? [])
  for (const [i, fqdn] of given.entries()) {
    if (known.has(fqdn)) continue
    const path = ['extract', 'domains', i]
    const named = [...known].slice(0, MAX_NAMED)
    const more = known.size > named.length ? ` and ${known.size - named.length} more` : ''
    const ofFile = known.size === 0 ? 'which names none' : `${named.join(', ')}${more}`
    const found = `${problems.found(path)}${didYouMean(fqdn, known)}`
    problems.add(path, `expected a domain of the file (${ofFile}; one to add belongs there), found ${found}`)
  }
  const names = new Set(given)
  return own.queries.filter((query) => query.type === 'domain' && names.has(query.fqdn))
}

/** The path of each secret query's variable, by that variable. */
function secretPaths({ extract }: PipelineFile): readonly (readonly [string, Path])[] {
  return (extract.queries ?? []).flatMap((query, i) =>
    query.type === 'secret' ? [[query.secret_env, ['extract', 'queries', i, 'secret_env']] as const] : [],
  )
}

/** The paths of all keys below a path, except in lists: a list may have tens of thousands. */
function* pathsIn(tree: Tree, path: Path = []): Generator<Path> {
  const value = valueAt(tree, path)
  if (!isMapping(value)) return
  for (const key of Object.keys(value)) {
    yield [...path, key]
    yield* pathsIn(tree, [...path, key])
  }
}

function locationsOf(tree: Tree, paths: Iterable<Path>): Pipeline['locations'] {
  const locations: Record<string, string> = {}
  for (const path of paths) {
    const { location, exact } = locationAt(tree, path)
    if (!exact || location === null) continue
    locations[dotted(path)] = location.from === 'flag' ? location.flag : lineOf(location.source, location.key)
  }
  return locations
}

/** What the file requests without flags; null: it is invalid without them, so they narrow nothing. */
async function wanted(source: NamedText, options: ReadOptions): Promise<Selection | null> {
  const pipeline = await resolvePipeline(source, options).catch(nullIf('config'))
  return pipeline?.extract ?? null
}
