import { isMapping, type Mapping, type Path, type Tree } from '../problems/tree.ts'

/** Command line flags; a flag beats the file, the file beats the default. */
export type Overrides = {
  readonly from?: string
  readonly until?: string
  /** In place of every query of the file. */
  readonly domains?: readonly string[]
  readonly output?: string
  readonly format?: string
  readonly maxRequests?: number
  readonly concurrency?: number
}

/** Puts flags in the place of what the file says, so that both are checked alike and messages name the flag. */
export function override(tree: Tree, flags: Overrides): void {
  const set = (path: Path, value: unknown, flag: string): void => {
    if (value !== undefined) setIn(tree, path, value, flag)
  }
  if (flags.domains !== undefined) {
    for (const key of ['domains', 'domains_file', 'queries']) removeIn(tree, ['extract', key])
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
    // Something else than a mapping stands there: that is reported, and the flag has nothing to beat.
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

function removeIn(tree: Tree, [section, key]: readonly [string, string]): void {
  if (!isMapping(tree.root)) return
  const mapping = tree.root[section]
  if (!isMapping(mapping)) return
  delete mapping[key]
  tree.locations.get(mapping)?.delete(key)
}
