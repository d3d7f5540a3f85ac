import { dirname, isAbsolute, join, resolve } from 'node:path'
import type { Problems } from '../problems/problems.ts'
import { isMapping, type Mapping, type Path, type Tree } from '../problems/tree.ts'
import type { Environment } from '../secrets/secrets.ts'
import { readText } from '../values/read-text.ts'
import { expand } from './expand.ts'
import { type NamedText, parseYaml } from './parse-yaml.ts'

/** Far from any real pipeline. The number of files could grow exponentially. */
const MAX_FILES = 100

type ReadTree = { readonly tree: Tree; readonly problems: Problems }
/** The files from the pipeline file to this one, and the number of files that were read. */
type ExtendsPath = { readonly paths: readonly string[]; readonly count: { files: number } }

/**
 * Reads YAML and merges it over the files that it `extends`: mappings are merged key by key, other values are replaced,
 * and an empty value removes an inherited one. Every value keeps its location. Top-level keys that begin with `x-` hold
 * anchors and are removed.
 * @throws ExportError 'config' with the syntax errors of one file
 */
export async function readTree(
  source: NamedText,
  env: Environment,
  way: ExtendsPath = { paths: [source.path], count: { files: 0 } },
): Promise<ReadTree> {
  const { tree, problems } = parseYaml(source)
  const { root } = tree
  if (!isMapping(root)) return { tree, problems }
  for (const key of Object.keys(root)) if (key.startsWith('x-')) remove(tree, root, key)
  let inherited: Mapping = Object.create(null)
  // Later files override earlier ones.
  for (const [path, name] of namesOf(tree, problems, env)) {
    const base = await readBase(name, path, { tree, problems }, env, way)
    if (base !== null) inherited = mergeOver(tree, base, inherited)
  }
  remove(tree, root, 'extends')
  mergeOver(tree, root, inherited)
  return { tree, problems }
}

/** The files that `extends` names, each with its location. */
function namesOf(tree: Tree, problems: Problems, env: Environment): readonly (readonly [Path, string])[] {
  const value = isMapping(tree.root) ? tree.root.extends : undefined
  if (value === undefined) return []
  const listed = Array.isArray(value)
  return (listed ? value : [value]).flatMap((text, i) => {
    const path = listed ? ['extends', i] : ['extends']
    if (typeof text !== 'string' || text === '') {
      problems.add(
        path,
        `expected the path of a pipeline file, or a list of them, found ${problems.found(path)}`,
      )
      return []
    }
    const expanded = expand(text, env)
    for (const problem of expanded.problems) problems.add(path, problem)
    return expanded.problems.length > 0 ? [] : [[path, expanded.text] as const]
  })
}

/** The settings of a file that is extended; null if it cannot be read, which is reported. */
async function readBase(
  name: string,
  at: Path,
  { tree, problems }: ReadTree,
  env: Environment,
  { paths, count }: ExtendsPath,
): Promise<Mapping | null> {
  const { source } = tree
  const refuse = (why: string): null => {
    problems.add(at, `expected a pipeline file, found ${problems.found(at)}, which ${why}`)
    return null
  }
  const path = resolve(dirname(source.path), name)
  if (paths.includes(path)) return refuse(`${paths.length > 1 ? 'in the end ' : ''}extends itself`)
  if (++count.files > MAX_FILES) return refuse(`would be one of more than ${MAX_FILES} files`)
  const read = await readText(path)
  if (!read.ok) return refuse(read.reason)
  const file = isAbsolute(name) ? name : join(dirname(source.file), name)
  const base = await readTree({ file, path, text: read.text }, env, { paths: [...paths, path], count })
  problems.addAll(base.problems)
  for (const [container, locations] of base.tree.locations) tree.locations.set(container, locations)
  if (base.tree.root === null) return null
  return isMapping(base.tree.root) ? base.tree.root : refuse('holds no keys')
}

/** Merges `over` over `under`, in place. @returns `over` */
function mergeOver(tree: Tree, over: Mapping, under: Mapping): Mapping {
  const locations = tree.locations.get(over) ?? new Map()
  tree.locations.set(over, locations)
  for (const [key, location] of tree.locations.get(under) ?? []) {
    const [own, other] = [Reflect.get(over, key), Reflect.get(under, key)]
    if (own === null) remove(tree, over, String(key))
    else if (!locations.has(key)) {
      locations.set(key, location)
      Reflect.set(over, key, other)
    } else if (isMapping(own) && isMapping(other)) mergeOver(tree, own, other)
  }
  return over
}

function remove(tree: Tree, mapping: Mapping, key: string): void {
  delete mapping[key]
  tree.locations.get(mapping)?.delete(key)
}

/** Command line flags. Flags override the file, the file overrides defaults. */
export type Overrides = {
  readonly from?: string | undefined
  readonly until?: string | undefined
  /** Choose among the queries of the file, or replace those of a file that is invalid without them. */
  readonly domains?: readonly string[] | undefined
  readonly output?: string | undefined
  readonly format?: string | undefined
  readonly maxRequests?: number | 'none' | undefined
  readonly concurrency?: number | undefined
}

/** Overrides the file by flags, so that both have the same checks and messages name the flag. */
export function override(tree: Tree, flags: Overrides): void {
  const set = (path: Path, value: unknown, flag: string): void => {
    if (value !== undefined) setIn(tree, path, value, flag)
  }
  if (flags.domains !== undefined) {
    const extract = isMapping(tree.root) ? tree.root.extract : null
    for (const key of ['domains', 'domains_file', 'queries'])
      if (isMapping(extract)) remove(tree, extract, key)
  }
  set(['extract', 'domains'], flags.domains && [...flags.domains], '--domain')
  set(['extract', 'windows', 'from'], flags.from, '--from')
  set(['extract', 'windows', 'until'], flags.until, '--until')
  set(['extract', 'max_requests'], flags.maxRequests, '--max-requests')
  set(['extract', 'concurrency'], flags.concurrency, '--concurrency')
  set(['load', 'path'], flags.output, '--output')
  set(['load', 'format'], flags.format, '--format')
}

function setIn(tree: Tree, path: Path, value: unknown, flag: string): void {
  let mapping = tree.root
  for (const key of path.slice(0, -1)) {
    // It is no mapping, which is reported.
    if (!isMapping(mapping)) return
    if (!Object.hasOwn(mapping, key)) mark(tree, mapping, key, Object.create(null), flag)
    mapping = mapping[key]
  }
  if (isMapping(mapping)) mark(tree, mapping, path.at(-1) ?? '', value, flag)
}

function mark(tree: Tree, mapping: Mapping, key: string | number, value: unknown, flag: string): void {
  mapping[key] = value
  const locations = tree.locations.get(mapping) ?? new Map()
  tree.locations.set(mapping, locations.set(key, { from: 'flag', flag }))
  if (Array.isArray(value))
    tree.locations.set(value, new Map(value.map((_, i) => [i, { from: 'flag', flag }])))
}
