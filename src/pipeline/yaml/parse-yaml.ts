import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { define, isMapping, type Location, located, locationsIn, type Source } from '../problems/tree.ts'

/** The text of a file, its name for messages and its absolute path. */
export type NamedText = {
  readonly file: string
  readonly path: string
  readonly text: string
  /** Whether a program made it: its lines are then not shown. */
  readonly isMade?: boolean
}

type Fault = readonly [offset: number, text: string]

export type ParsedFile = Source & {
  /** Plain values, whose locations are known; undefined where {@link faults} tell why there are none. */
  readonly root: unknown
  readonly faults: readonly Fault[]
}

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
  const source = { file, path, lineAt: isMade === true ? null : (offset: number) => lines.linePos(offset) }
  const broken = (...faults: readonly Fault[]) => ({ ...source, root: undefined, faults })
  const deep = tooDeepAt(text)
  const [document, second] = parseAllDocuments(deep === null ? masked(text) : '', {
    version: '1.2',
    schema: 'core',
    customTags: (tags) => [MODE, ...tags],
    resolveKnownTags: false,
    uniqueKeys: false,
    lineCounter: lines,
    prettyErrors: false,
  }) as readonly Document.Parsed[]
  if (deep !== null) return broken([deep, `nested deeper than ${MAX_DEPTH} levels`])
  if (document === undefined) return { ...source, root: null, faults: [] }
  if (second !== undefined)
    return broken([second.range[0], 'a second document begins here; a pipeline file holds one'])
  const syntax = syntaxFaults(document, text, lines)
  if (syntax.length > 0) return broken(...syntax)
  const reader = new Reader(source)
  const root = reader.valueOf(document.contents)
  if (reader.isBroken) return broken(...reader.faults)
  if (reader.repeated > MAX_ALIASED) return broken([0, `aliases repeat more than ${MAX_ALIASED} values`])
  return { ...source, root, faults: reader.faults }
}

/** Far from any pipeline file. */
const MAX_DEPTH = 100

/** The library is recursive, and V8 ends the process if its stack ends within a regular expression. null: nowhere */
function tooDeepAt(text: string): number | null {
  let depth = 0
  for (const { 0: bracket, index } of text.matchAll(/[[\]{}]/g)) {
    depth = bracket === '[' || bracket === '{' ? depth + 1 : Math.max(0, depth - 1)
    if (depth > MAX_DEPTH) return index
  }
  return /^(?: {200}| *(?:[-?:] +){100})/m.exec(text)?.index ?? null
}

/** The parser's own messages quote the file, and the file may hold a secret: only the kind of error is kept. */
function syntaxFaults(document: Document.Parsed, text: string, lines: LineCounter): readonly Fault[] {
  // One mistake can cause several errors on a line.
  const byLine = new Map<number, Fault>()
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

/** Values that aliases may repeat: a file of a few lines could otherwise unfold to billions. */
const MAX_ALIASED = 10_000

/** Makes plain values of nodes, in their order. What an alias repeats is the same value, not another. */
class Reader {
  readonly faults: Fault[] = []
  isBroken = false
  /** How many aliases there are, with those within what they repeat; not counted far beyond the maximum. */
  repeated = 0
  readonly #source: Source
  /** An alias refers to the last anchor of that name before it. */
  readonly #anchors = new Map<string, Node>()
  readonly #complete = new Map<Node, { readonly value: unknown; readonly repeats: number }>()

  constructor(source: Source) {
    this.#source = source
  }

  valueOf(node: Node | null): unknown {
    if (node === null) return null
    if (isAlias(node)) {
      const target = this.#complete.get(this.#anchors.get(node.source)!)
      if (target === undefined) this.#break(node, 'an alias must name an anchor that is complete before it')
      else if (this.repeated <= MAX_ALIASED) this.repeated += 1 + target.repeats
      return target?.value
    }
    const { anchor } = node
    const before = this.repeated
    if (anchor !== undefined) this.#anchors.set(anchor, node)
    const value = this.#plain(node)
    if (anchor !== undefined) this.#complete.set(node, { value, repeats: this.repeated - before })
    return value
  }

  #plain(node: Node): unknown {
    if (isMap<Node, Node | null>(node)) return this.#mapping(node)
    if (isSeq<Node>(node)) return this.#list(node)
    return isScalar(node) ? unmasked(node.value) : null
  }

  #list({ items }: YAMLSeq<Node>): unknown {
    return located(
      items.map((item) => this.valueOf(item)),
      new Map(items.map((item, i) => [i, this.#location(item, item)])),
    )
  }

  /** Own keys override merged ones; of merged mappings, the first has precedence. */
  #mapping({ items }: YAMLMap<Node, Node | null>): unknown {
    const mapping = {}
    const locations = new Map<string, Location>()
    const names = new Set<string>()
    for (const { key, value } of items) {
      const name = nameOf(this.valueOf(key))
      if (names.has(name)) this.faults.push([startOf(key), `${name.slice(0, 60)}: duplicate key`])
      names.add(name)
      const found = this.valueOf(value)
      if (!isMerge(key)) {
        define(mapping, name, found)
        locations.set(name, this.#location(key, value))
        continue
      }
      for (const merged of Array.isArray(found) ? found : [found]) {
        if (!isMapping(merged))
          this.#break(value ?? key, '<<: expected a mapping such as *name, or a list of them')
        for (const [name, location] of locationsIn(merged)) {
          if (Object.hasOwn(mapping, name)) continue
          define(mapping, name, (merged as object)[name as never])
          locations.set(name as string, location)
        }
      }
    }
    return located(mapping, locations)
  }

  /** An empty value has the location of its key. */
  #location(key: Node, value: Node | null): Location {
    const isEmpty = value?.range == null || value.range[0] === value.range[1]
    return { from: 'file', source: this.#source, key: startOf(key), value: startOf(isEmpty ? key : value) }
  }

  #break(node: Node, text: string): void {
    this.isBroken = true
    this.faults.push([startOf(node), text])
  }
}

/** `<<`, unquoted: its value is a mapping, or a list of mappings, whose keys are merged. */
function isMerge(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN'
}

function nameOf(key: unknown): string {
  return typeof key === 'object' && key !== null ? JSON.stringify(key) : String(key ?? '')
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0
}

const REFERENCE = /\$\{[A-Za-z_]\w*(?::-[^}\n]*)?\}/g
const BRACKETS = /[[\]{},]/g
// A low surrogate alone is in no text that was UTF-8.
const FIRST = 0xdc00
const MASKED = /(?<![\ud800-\udbff])[\udc00-\udc7f]/g

/** Hides brackets and commas of references from YAML: they would end a value inside { } and [ ]. Offsets stay. */
export function masked(text: string): string {
  return text.replace(REFERENCE, (reference) =>
    reference.replace(BRACKETS, (character) => String.fromCharCode(FIRST + character.charCodeAt(0))),
  )
}

export function unmasked(value: unknown): unknown {
  if (typeof value !== 'string') return value
  return value.replace(MASKED, (character) => String.fromCharCode(character.charCodeAt(0) - FIRST))
}
