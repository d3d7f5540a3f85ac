import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml'
import type { Offsets, ParsedFile, Path } from '../problems/tree.ts'
import { masked, unmasked } from './mask-references.ts'

/** The text of a file, its name for messages and its absolute path. */
export type NamedText = {
  readonly file: string
  readonly path: string
  readonly text: string
  /** Whether a program made it: its lines are then not shown. */
  readonly isMade?: boolean
}

/** Values that aliases may repeat: a file of a few lines could otherwise unfold to billions. */
const MAX_ALIASED = 10_000

/** Numbers such as 0600 and 0o600 are file modes, which `file_mode` parses: they stay text. */
const MODE = {
  tag: 'tag:yaml.org,2002:str',
  default: true,
  test: /^0[0-9o][0-9]*$/,
  resolve: (text: string) => text,
} as const

/** Reads YAML 1.2 (core schema), with merge keys. References to variables may stand anywhere, also in { }. */
export function parseYaml({ file, path, text, isMade }: NamedText): ParsedFile {
  const lines = new LineCounter()
  const deep = tooDeepAt(text)
  const [document, second] = parseAllDocuments(deep === null ? masked(text) : '', {
    version: '1.2',
    schema: 'core',
    customTags: (tags) => [MODE, ...tags],
    resolveKnownTags: false,
    uniqueKeys: false,
    merge: true,
    lineCounter: lines,
    prettyErrors: false,
  }) as readonly Document.Parsed[]
  const source = { file, path, lineAt: isMade === true ? null : (offset: number) => lines.linePos(offset) }
  const broken = (faults: ParsedFile['faults']) => ({ ...source, root: undefined, faults, find: () => null })
  if (deep !== null) return broken([[deep, `nested deeper than ${MAX_DEPTH} levels`]])
  if (document === undefined) return { ...source, root: null, faults: [], find: () => null }
  if (second !== undefined)
    return broken([[second.range[0], 'a second document begins here; a pipeline file holds one']])
  const syntax = syntaxFaults(document, text, lines)
  if (syntax.length > 0) return broken(syntax)
  const targets = new Map<Alias, Node>()
  try {
    const faults = nodeFaults(document, targets)
    if (faults.some(({ isFatal }) => isFatal)) return broken(faults.map(({ at, text }) => [at, text]))
    const root = unmasked(document.toJS({ maxAliasCount: MAX_ALIASED }))
    return {
      ...source,
      root,
      faults: faults.map(({ at, text }) => [at, text]),
      find: (path) => offsetsOf(document.contents, path, targets),
    }
  } catch (error) {
    // The stack of these recursions ends somewhere.
    if (error instanceof RangeError) return broken([[0, 'not valid YAML: nested too deeply']])
    if (error instanceof ReferenceError)
      return broken([[0, `aliases repeat more than ${MAX_ALIASED} values`]])
    throw error
  }
}

/** Far from any pipeline file. */
const MAX_DEPTH = 100

/**
 * Where a text may nest deeper than that; null: nowhere. The library is recursive, and V8 ends the process if its stack
 * ends while a regular expression is compiled.
 */
function tooDeepAt(text: string): number | null {
  let depth = 0
  for (const { 0: bracket, index } of text.matchAll(/[[\]{}]/g)) {
    depth = bracket === '[' || bracket === '{' ? depth + 1 : Math.max(0, depth - 1)
    if (depth > MAX_DEPTH) return index
  }
  const found = /^(?: {200}| *(?:[-?:] +){100})/m.exec(text)
  return found === null ? null : found.index
}

/** The parser's own messages quote the file, and the file may hold a secret: only the kind of error is kept. */
function syntaxFaults(document: Document.Parsed, text: string, lines: LineCounter): ParsedFile['faults'] {
  // One mistake can cause several errors on a line.
  const byLine = new Map<number, readonly [number, string]>()
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    const offset = Math.min(pos[0], text.length)
    const { line } = lines.linePos(offset)
    // The parser's errors are about the effects of a tab, not about the tab.
    const starts = [lines.lineStarts[line - 1] ?? 0, lines.lineStarts[line] ?? text.length]
    const tab = starts.find((start) => /^ *\t/.test(text.slice(start, start + 100)))
    const sentence =
      SYNTAX[tab === undefined ? code : 'TAB_AS_INDENT'] ?? 'unexpected character, bracket or word'
    const at = tab ?? offset
    if (byLine.has(line)) continue
    for (const each of [line, lines.linePos(at).line]) byLine.set(each, [at, `not valid YAML: ${sentence}`])
  }
  return [...new Map([...byLine.values()].map((fault) => [fault[0], fault])).values()]
}

const SYNTAX: Partial<Record<YAMLError['code'], string>> = {
  TAB_AS_INDENT: 'tabs cannot indent; use spaces',
  BAD_INDENT: 'wrong indentation',
  MISSING_CHAR: 'a quote, a bracket, a comma or the space after a colon is missing',
  BAD_DQ_ESCAPE: 'unknown escape in a double-quoted text',
  BAD_SCALAR_START: 'a text that begins like this must be quoted',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line and be followed by a colon and a value',
  BLOCK_AS_IMPLICIT_KEY: 'a key must be on one line and be followed by a colon and a value',
  BLOCK_IN_FLOW: 'a block cannot be inside { } or [ ]',
  TAG_RESOLVE_FAILED: 'tags such as !name are not supported',
  BAD_COLLECTION_TYPE: 'tags such as !name are not supported',
  MULTIPLE_TAGS: 'tags such as !name are not supported',
  BAD_ALIAS: 'misplaced anchor or alias',
  ALIAS_PROPS: 'misplaced anchor or alias',
  MULTIPLE_ANCHORS: 'misplaced anchor or alias',
  BAD_DIRECTIVE: 'unknown directive',
  RESOURCE_EXHAUSTION: 'nested too deeply',
}

type NodeFault = { readonly at: number; readonly text: string; readonly isFatal: boolean }

/** What the library lets pass. @param targets gets the node of each alias */
function nodeFaults(document: Document.Parsed, targets: Map<Alias, Node>): readonly NodeFault[] {
  const faults: NodeFault[] = []
  // An alias refers to the last anchor of that name before it.
  const anchors = new Map<string, Node>()
  const merges: Pair[] = []
  const report = (node: Node, text: string, isFatal: boolean): void =>
    void faults.push({ at: startOf(node), text, isFatal })
  const follow = (node: Node | null): Node | null => (isAlias(node) ? (targets.get(node) ?? null) : node)
  visit(document, {
    Alias(_key, node, ancestors) {
      const target = anchors.get(node.source)
      if (target === undefined || ancestors.includes(target))
        report(node, 'an alias must name an anchor that is complete before it', true)
      else targets.set(node, target)
    },
    Value(_key, node) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
    },
    Map(_key, map) {
      if (map.anchor !== undefined) anchors.set(map.anchor, map)
      const names = new Set<string>()
      for (const { key } of map.items as YAMLMap<Node, Node | null>['items']) {
        const name = nameOf(key)
        if (names.has(name)) report(key, `${name.slice(0, 60)}: duplicate key`, false)
        names.add(name)
      }
    },
    Pair(_key, { key, value }) {
      if (isMerge(key as Node)) merges.push({ key, value } as Pair)
    },
  })
  for (const { key, value } of merges) {
    const merged = follow(value)
    const maps = isSeq<Node>(merged) ? merged.items.map(follow) : [merged]
    if (!maps.every(isMap))
      report(value ?? key, '<<: expected a mapping such as *name, or a list of them', true)
  }
  return faults
}

/**
 * `<<`, unquoted: its value is a mapping, or a list of mappings, whose keys are merged. The library reads it as a symbol;
 * with the tag `!!str` as a text, and merges all the same.
 */
function isMerge(key: Node): boolean {
  return isScalar(key) && (typeof key.value === 'symbol' || (key.value === '<<' && key.type === 'PLAIN'))
}

function nameOf(key: Node | null): string {
  if (!isScalar(key)) return ''
  return typeof key.value === 'symbol' ? '<<' : unmasked(String(key.value ?? ''))
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0
}

type Targets = ReadonlyMap<Alias, Node>
type Pair = { readonly key: Node; readonly value: Node | null }

function offsetsOf(contents: Node | null, path: Path, targets: Targets): Offsets | null {
  let node = contents
  let offsets: Offsets | null = null
  for (const key of path) {
    if (isAlias(node)) node = targets.get(node) ?? null
    if (isMap<Node, Node | null>(node)) {
      const pair = pairOf(node, String(key), targets)
      if (pair === null) return null
      node = pair.value
      const isEmpty = node?.range == null || node.range[0] === node.range[1]
      // An empty value has the location of its key.
      offsets = { key: startOf(pair.key), value: isEmpty ? startOf(pair.key) : startOf(node!) }
    } else if (isSeq<Node>(node) && typeof key === 'number') {
      node = node.items[key] ?? null
      if (node === null) return null
      offsets = { key: startOf(node), value: startOf(node) }
    } else return null
  }
  return offsets
}

/** Own keys override merged ones; of merged mappings, the first has precedence. */
function pairOf(map: YAMLMap<Node, Node | null>, name: string, targets: Targets): Pair | null {
  const own = pairsOf(map)
  const found = own.get(name)
  if (found !== undefined && !isMerge(found.key)) return found
  const { value } = own.get('<<') ?? { value: null }
  const merged = isAlias(value) ? targets.get(value) : value
  for (const each of isSeq<Node>(merged) ? merged.items : [merged]) {
    const inner = isAlias(each) ? targets.get(each) : each
    const pair = isMap<Node, Node | null>(inner) ? pairOf(inner, name, targets) : null
    if (pair !== null) return pair
  }
  return null
}

const PAIRS = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>()

/** A mapping may have as many keys as there are problems. */
function pairsOf(map: YAMLMap<Node, Node | null>): ReadonlyMap<string, Pair> {
  const known = PAIRS.get(map) ?? new Map(map.items.map((pair) => [nameOf(pair.key), pair]))
  PAIRS.set(map, known)
  return known
}
