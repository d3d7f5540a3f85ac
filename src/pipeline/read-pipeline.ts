import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import {
  ExportError,
  isExportError,
  nullIf,
  type Pipeline,
  type Query,
  type Selection,
} from '../core/index.ts'
import { describeDomain, didYouMean, noDomain } from './problems/describe.ts'
import { Problems } from './problems/problems.ts'
import {
  dotted,
  isContainer,
  isMapping,
  located,
  locationAt,
  locationsIn,
  type Mapping,
  type Path,
  type Tree,
  valueAt,
  whereIs,
} from './problems/tree.ts'
import { resolveExtract } from './resolve/resolve-extract.ts'
import { resolveLoad } from './resolve/resolve-load.ts'
import { resolveService } from './resolve/resolve-service.ts'
import { resolveTransform } from './resolve/resolve-transform.ts'
import { checkShape } from './schema/check-shape.ts'
import type { PipelineSettings } from './schema/file-schema.ts'
import { type Environment, USUAL_SECRETS } from './secrets/secrets.ts'
import { STORE_KINDS, storeOf } from './stores.ts'
import { parseDomain } from './values/addresses.ts'
import { readText } from './values/read-text.ts'
import { expand, expandTree, UNKNOWN_SERVICE } from './yaml/expand.ts'
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

/** @throws ExportError 'config' that names every problem with file, line and column, or with the flag */
export async function readPipeline(file: string, options: ReadOptions): Promise<Pipeline> {
  return (await readSource(await sourceOf(file, options), options)).pipeline
}

/** Where a data set lies: a pipeline as far as the file makes one, and what is wrong with the rest; null: nothing. */
type GivenPlace = {
  readonly pipeline: Pipeline
  readonly unknown: ExportError | null
  /** Why a run with the file would be refused; null: it is valid, or a path was given. */
  readonly invalid: ExportError | null
}

/** @param given a file, of which only the place has to be valid, or a data set's path @throws ExportError 'config' */
export async function readPlace(given: string, options: ReadOptions): Promise<GivenPlace> {
  const path = resolve(options.cwd, given)
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory() || storeOf(given) !== undefined) {
    const root = { name: 'data-set', load: { path: given.replaceAll('${', () => '$${') } }
    const tree: Tree = { root, sources: [{ file: given, path, lineAt: null }] }
    const unknown = new ExportError({
      kind: 'config',
      what: 'There is no data set',
      where: given,
      next: 'Name a pipeline file, or the folder that has _manifest.json.',
    })
    return {
      ...(await resolved(withRoot(new Problems(tree), placeIn), options)),
      unknown,
      invalid: null,
    }
  }
  const read = await readTree(await sourceOf(given, options), options.env)
  // Also those of a part that is left out.
  const secrets = secretsOf(read.tree.root, options.env)
  let unknown: ExportError | null = null
  for (const part of [whole, withoutService, withoutRows, placeIn]) {
    try {
      const { pipeline } = await resolved(withRoot(read, part), options, secrets)
      const known = part === withoutService ? null : unknown
      return { pipeline, unknown: known, invalid: known }
    } catch (error) {
      if (!isExportError(error, 'config')) throw error
      unknown = part === placeIn ? unknown : error
    }
  }
  throw unknown
}

/** Parts of a file, each smaller than the one before; the last is what says where a data set lies. */
const whole = (root: Mapping): Mapping => root
const withoutService = (root: Mapping): Mapping => ({
  ...root,
  service: inPlaceOf(root.service, { base_url: UNKNOWN_SERVICE }),
})
const withoutRows = ({ name, service, extract, load }: Mapping): Mapping => ({
  ...withoutService({ name, service, load }),
  // Its rows are known only by the data set.
  extract: inPlaceOf(extract, { resource: 'feed' }),
})
const placeIn = (root: Mapping): Mapping => {
  const { load } = root
  const keys = isMapping(load) ? Object.entries(load).filter(([key]) => PLACE.has(key)) : null
  return withoutRows({ ...root, load: keys === null ? load : inPlaceOf(load, Object.fromEntries(keys)) })
}

const PLACE = new Set(['path', ...STORE_KINDS])

function inPlaceOf(given: unknown, part: Mapping): Mapping {
  return located(part, locationsIn(given))
}

function withRoot(read: Problems, part: (root: Mapping) => Mapping): Problems {
  const { root } = read.tree
  return read.of({ ...read.tree, root: isMapping(root) ? inPlaceOf(root, part(root)) : root })
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

/** Relative paths start in the working directory. @throws ExportError 'config' that names every problem with its key */
export async function pipelineFrom(
  settings: PipelineSettings | string,
  options: ReadOptions,
): Promise<Pipeline> {
  const isMade = typeof settings !== 'string'
  // JSON is YAML.
  const text = isMade ? JSON.stringify(settings) : settings
  const file = isMade ? 'settings' : 'pipeline.yaml'
  return (await readSource({ file, path: resolve(options.cwd, file), text, isMade }, options)).pipeline
}

/** @returns also what the pipeline was made of: `root` with flags and variables expanded, `file` with defaults */
export async function readSource(source: NamedText, options: ReadOptions) {
  return resolved(await readTree(source, options.env), options)
}

/** @throws ExportError 'config' with every problem */
async function resolved(
  read: Problems,
  options: ReadOptions,
  secrets: ReadonlySet<string> = secretsOf(read.tree.root, options.env),
) {
  const { env, cwd, overrides = {}, sendsNothing = false } = options
  const { from, until, domains } = overrides
  const problems = read.of(override(read.tree, overrides))
  for (const text of domains ?? [])
    if (parseDomain(text) === null) problems.addFlag('--domain', noDomain(text))
  if (problems.tree.root === null) {
    problems.add([], 'the file is empty; `spillway init` writes one to begin with')
    throw problems.error()
  }
  problems.tree = expandTree(problems.tree, env, problems, sendsNothing)
  const { tree } = problems
  const { settings, root } = checkShape(problems)
  const [{ file, path }] = tree.sources
  const service = resolveService(settings.service, problems)
  const all = await resolveExtract(settings, problems)
  const transform = resolveTransform(settings, problems)
  const load = resolveLoad(settings, problems, { cwd, folder: dirname(path) })
  const queries = domains === undefined ? all.queries : chosen(domains, all.queries, problems)
  problems.throwIfAny()
  const isNarrowed = from !== undefined || until !== undefined || domains !== undefined
  const extract = { ...all, queries, unfiltered: isNarrowed ? await withoutFlags(read, options) : null }
  const locations = locationsBelow(tree.root, [])
  const variables: (readonly [string, string])[] = []
  for (const [i, query] of (settings.extract.queries ?? []).entries()) {
    if (query.type !== 'secret') continue
    const path = ['extract', 'queries', i, 'secret_env']
    variables.push([query.secret_env, dotted(path)])
    const { location } = locationAt(tree, path)
    if (location !== null) locations[dotted(path)] = whereIs(location)
  }
  const { name } = settings
  // A variable may be named like what every object inherits.
  const secretKeys = Object.fromEntries(variables)
  const pipeline: Pipeline = { name, file, locations, secretKeys, service, extract, transform, load }
  refuseSecrets(tree.root, [], secrets, problems)
  problems.throwIfAny()
  return { pipeline, file: settings, root }
}

/** Variables that hold secrets: those that keys of the file name, and those that are read where no key names one. */
function secretsOf(root: unknown, env: Environment): ReadonlySet<string> {
  const secrets = new Set(USUAL_SECRETS)
  const visit = (value: unknown): void => {
    for (const [key, inner] of isContainer(value) ? Object.entries(value) : []) {
      if (key.endsWith('_env') && typeof inner === 'string') secrets.add(expand(inner, env).text)
      visit(inner)
    }
  }
  visit(root)
  return secrets
}

/** A secret in any other value would become a part of a folder, an address or a message. */
function refuseSecrets(value: unknown, path: Path, secrets: ReadonlySet<string>, problems: Problems): void {
  for (const [key, location] of locationsIn(value)) {
    const at = [...path, key]
    const names = location.from === 'file' ? (location.names ?? []) : []
    for (const name of names.filter((each) => secrets.has(each)))
      problems.add(at, `the variable ${name} holds a secret; name it in a key for that, and nowhere else`)
    refuseSecrets(valueAt(value, [key]), at, secrets, problems)
  }
}

/** What the file requests without flags; null: it is invalid without them, so they narrow nothing. */
async function withoutFlags(read: Problems, options: ReadOptions): Promise<Selection | null> {
  const { from, until, domains, ...rest } = options.overrides ?? {}
  const found = await resolved(read, { ...options, overrides: rest }).catch(nullIf('config'))
  return found?.pipeline.extract ?? null
}

/** The queries that `--domain` names. One that the file lacks is reported: what is exported stays in the data set. */
function chosen(given: readonly string[], queries: readonly Query[], problems: Problems): readonly Query[] {
  const known = new Set(queries.flatMap((query) => (query.type === 'domain' ? [query.fqdn] : [])))
  const wanted = new Set(given.map((text) => parseDomain(text) ?? text))
  for (const fqdn of wanted) {
    if (known.has(fqdn)) continue
    const found = `${describeDomain(fqdn)}${didYouMean(fqdn, known)}`
    problems.addFlag('--domain', `expected a domain of the file (one to add belongs there), found ${found}`)
  }
  return queries.filter((query) => query.type === 'domain' && wanted.has(query.fqdn))
}

/** The locations of all keys, except in lists: a list may have tens of thousands. */
function locationsBelow(value: unknown, path: Path, all: Record<string, string> = {}): typeof all {
  for (const [key, inner] of isMapping(value) ? Object.entries(value) : []) {
    const at = [...path, key]
    const location = locationsIn(value).get(key)
    if (location !== undefined) all[dotted(at)] = whereIs(location)
    locationsBelow(inner, at, all)
  }
  return all
}
