import { dirname, isAbsolute, join, resolve } from 'node:path'
import { Problems } from '../problems/problems.ts'
import {
  define,
  isMapping,
  located,
  locationsIn,
  type Mapping,
  type Path,
  type Tree,
  valueAt,
  withValue,
} from '../problems/tree.ts'
import type { Environment } from '../secrets/secrets.ts'
import { readText } from '../values/read-text.ts'
import { expand } from './expand.ts'
import { type NamedText, type ParsedFile, parseYaml } from './parse-yaml.ts'

/**
 * Merges YAML over the file that it `extends`, key by key. An empty value removes an inherited scalar; `x-` keys go.
 * @returns the tree, with the problems that were found in it
 * @throws ExportError 'config' with the syntax errors of one file
 */
export async function readTree(source: NamedText, env: Environment): Promise<Problems> {
  const first = parseYaml(source)
  const sources: [ParsedFile, ...ParsedFile[]] = [first]
  const problems = new Problems({ root: first.root, sources })
  for (let file: ParsedFile | null = first; file !== null; ) {
    for (const [offset, text] of file.faults) problems.addAt(offset, text, file)
    if (file.root === undefined) throw problems.error()
    file = await baseOf(file, sources, problems, env)
    if (file !== null) sources.push(file)
  }
  problems.tree = { root: mergedRoot(sources), sources }
  return problems
}

/** The file that a file extends; null: none, or none that can be read, which is reported. */
async function baseOf(
  { file, path, root }: ParsedFile,
  before: readonly ParsedFile[],
  problems: Problems,
  env: Environment,
): Promise<ParsedFile | null> {
  const given = valueAt(root, ['extends'])
  if (given === undefined) return null
  const report = (text: string): null => {
    const location = locationsIn(root).get('extends')
    if (location?.from === 'file') problems.addAt(location.value, `extends: ${text}`, location.source)
    return null
  }
  if (typeof given !== 'string' || given === '')
    return report(`expected the path of one pipeline file, found ${Array.isArray(given) ? 'a list' : 'none'}`)
  const { text: name, faults } = expand(given, env)
  if (faults.length > 0) return report(faults.join('; '))
  const refuse = (why: string): null =>
    report(`expected a pipeline file, found "${given.slice(0, 60)}", which ${why}`)
  const named = resolve(dirname(path), name)
  if (before.some((other) => other.path === named))
    return refuse(`${before.length > 1 ? 'in the end ' : ''}extends itself`)
  const read = await readText(named)
  if (!read.ok) return refuse(read.reason)
  const label = isAbsolute(name) ? name : join(dirname(file), name)
  const base = parseYaml({ file: label, path: named, text: read.text })
  return isMapping(base.root ?? {}) ? base : refuse('holds no keys')
}

/** The sections that may say nothing. */
const EMPTY: Mapping = { transform: {}, load: {} }

function mergedRoot(sources: readonly ParsedFile[]): unknown {
  const [first] = sources
  if (!isMapping(first?.root)) return first?.root
  return sources
    .map(({ root }) => (isMapping(root) ? ownKeys(root) : {}))
    .reduceRight((under, over) => merged(over, under) as Mapping, EMPTY)
}

function ownKeys(root: Mapping): Mapping {
  const own = {}
  for (const [key, value] of Object.entries(root))
    if (!key.startsWith('x-') && key !== 'extends') define(own, key, value)
  return located(own, locationsIn(root))
}

/** A section whose lines are all comments says nothing, so only scalars can be blanked. */
function merged(over: unknown, under: unknown): unknown {
  if (over === null) return typeof under === 'object' ? under : undefined
  if (!isMapping(over) || !isMapping(under)) return over
  const both: { [key: string]: unknown } = { ...under }
  for (const [key, value] of Object.entries(over)) {
    const below = valueAt(under, [key])
    const result = below === undefined ? value : merged(value, below)
    if (result === undefined) delete both[key]
    else define(both, key, result)
  }
  return located(both, new Map([...locationsIn(under), ...locationsIn(over)]))
}

/** Command line flags. Flags override the file, the file overrides defaults. */
export type Overrides = {
  readonly from?: string | undefined
  readonly until?: string | undefined
  /** Choose among the queries of the file, or are those of a file that names none. */
  readonly domains?: readonly string[] | undefined
  readonly output?: string | undefined
  readonly format?: string | undefined
  readonly maxRequests?: number | 'none' | undefined
  readonly concurrency?: number | undefined
}

/** Overrides the file by flags, so that both have the same checks and messages name the flag. */
export function override(tree: Tree, given: Overrides): Tree {
  let { root } = tree
  const extract = valueAt(root, ['extract'])
  const isSearched = ['domains', 'domains_file', 'queries'].some((key) => {
    const value = valueAt(extract, [key])
    return value !== undefined && !(Array.isArray(value) && value.length === 0)
  })
  for (const [path, value, flag] of [
    [['extract', 'domains'], isSearched ? undefined : given.domains, '--domain'],
    [['extract', 'windows', 'from'], given.from, '--from'],
    [['extract', 'windows', 'until'], given.until, '--until'],
    [['extract', 'max_requests'], given.maxRequests, '--max-requests'],
    [['extract', 'concurrency'], given.concurrency, '--concurrency'],
    [['load', 'path'], given.output, '--output'],
    [['load', 'format'], given.format, '--format'],
  ] as const satisfies readonly (readonly [Path, unknown, string])[]) {
    // A parent that is no mapping is reported.
    const isInMapping = path.every((_, i) => isMapping(valueAt(root, path.slice(0, i)) ?? {}))
    if (value !== undefined && isInMapping) root = withValue(root, path, value, { from: 'flag', flag })
  }
  return { ...tree, root }
}
