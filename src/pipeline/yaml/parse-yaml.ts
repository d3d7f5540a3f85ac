import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  Scalar,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import { Problems } from '../problems/problems.ts'
import {
  type Container,
  dotted,
  isMapping,
  type Location,
  type Mapping,
  type Path,
  type Tree,
} from '../problems/tree.ts'

// The composer is recursive, and a regular expression that is compiled near the end of the stack kills the process. A
// million small tokens take some seconds. Real pipelines are far from both limits. The parser does not limit how deep
// aliases nest.
const MAX_DEPTH = 100
const MAX_TOKENS = 250_000

/** The text of a file, its name for messages and its absolute path. */
export type NamedText = {
  readonly file: string
  readonly path: string
  readonly text: string
  /** Whether a program made it: its lines are then not shown. */
  readonly isMade?: boolean
}

/**
 * Reads YAML 1.2 (core schema) text into plain values with a location for each. Duplicate keys and bad aliases
 * are collected, since the rest of the file can still be checked.
 * @throws ExportError 'config' with every syntax error
 */
export function parseYaml({ file, path, text, isMade }: NamedText): { tree: Tree; problems: Problems } {
  const lines = new LineCounter()
  const tree: Tree = {
    source: { file, path, lineAt: isMade === true ? null : (offset) => lines.linePos(offset) },
    root: undefined,
    locations: new Map(),
  }
  const problems = new Problems(tree)
  const document = compose(text, lines, problems)
  if (document !== null) reportSyntax(document, text, lines, problems)
  if (!problems.none || document === null) throw problems.error()
  tree.root = readNodes(document.contents, tree, problems)
  return { tree, problems }
}

function compose(text: string, lines: LineCounter, problems: Problems): Document.Parsed | null {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  const tokens = []
  let count = 0
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme))
    if (parser.stack.length > MAX_DEPTH) {
      problems.addAt(parser.offset, `nested deeper than ${MAX_DEPTH} levels`)
      return null
    }
    if (++count > MAX_TOKENS) {
      problems.addAt(
        0,
        'too many values for a pipeline file; list domains in a file of their own and name it in `extract.domains_file`',
      )
      return null
    }
  }
  tokens.push(...parser.end())
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    uniqueKeys: false,
    merge: false,
  })
  const [first, second] = [...composer.compose(tokens, true, text.length)]
  if (second !== undefined) {
    problems.addAt(second.range[0], 'a second document begins here; a pipeline file holds one')
    return null
  }
  return first ?? null
}

/** The parser's own messages quote the file, and the file may hold a secret: only the kind of error is kept. */
function reportSyntax(document: Document.Parsed, text: string, lines: LineCounter, problems: Problems): void {
  const seen = new Set<number>()
  for (const error of [...document.errors, ...document.warnings]) {
    const sentence = syntaxSentence(error.code)
    const offset = Math.min(error.pos[0], text.length)
    const { line } = lines.linePos(offset)
    // One mistake can cause several errors on a line.
    if (seen.has(line)) continue
    seen.add(line)
    const start = lines.lineStarts[line - 1] ?? 0
    const end = lines.lineStarts[line] ?? text.length
    // The parser's errors are about the effects of a tab, not about the tab.
    const tabbed = [start, end].find((offset) => startsWithTab(text, offset))
    if (tabbed !== undefined) {
      seen.add(lines.linePos(tabbed).line)
      problems.addAt(tabbed, `not valid YAML: ${syntaxSentence('TAB_AS_INDENT')}`)
      continue
    }
    const excerpt = text.slice(start, Math.min(end, start + 1000))
    const hint = excerpt.includes('${') ? '; inside { } and [ ] a variable reference must be in quotes' : ''
    problems.addAt(offset, `not valid YAML: ${sentence}${hint}`)
  }
}

function startsWithTab(text: string, offset: number): boolean {
  return /^ *\t/.test(text.slice(offset, offset + 100))
}

function syntaxSentence(code: YAMLError['code']): string {
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'tabs cannot indent; use spaces'
    case 'BAD_INDENT':
      return 'wrong indentation'
    case 'MISSING_CHAR':
      return 'a quote, a bracket, a comma or the space after a colon is missing'
    case 'BAD_DQ_ESCAPE':
      return 'unknown escape in a double-quoted text'
    case 'BAD_SCALAR_START':
      return 'a text that begins like this must be quoted'
    case 'MULTILINE_IMPLICIT_KEY':
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a key must be on one line and be followed by a colon and a value'
    case 'BLOCK_IN_FLOW':
      return 'a block cannot be inside { } or [ ]'
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
    case 'MULTIPLE_TAGS':
      return 'tags such as !name are not supported'
    case 'BAD_ALIAS':
    case 'ALIAS_PROPS':
    case 'MULTIPLE_ANCHORS':
      return 'misplaced anchor or alias'
    case 'BAD_DIRECTIVE':
      return 'unknown directive'
    case 'RESOURCE_EXHAUSTION':
      return 'nested too deeply'
    default:
      return 'unexpected character, bracket or word'
  }
}

/** Values that aliases may repeat: a file of a few lines could otherwise unfold to billions. */
const MAX_ALIASED = 10_000

/** Turns parsed nodes into plain values, and notes the location of each in `tree.locations`. */
function readNodes(root: Node | null, tree: Tree, problems: Problems): unknown {
  return new Reader(tree, problems).read(root, [])
}

class Reader {
  readonly #tree: Tree
  readonly #problems: Problems
  // An alias refers to the last anchor of that name before it, so anchors are collected while nodes are read.
  readonly #anchors = new Map<string, Node>()
  /** Mappings and lists that are being read. An alias to one of them would be endless. */
  readonly #open = new Set<Node>()
  #aliasDepth = 0
  #aliased = 0

  constructor(tree: Tree, problems: Problems) {
    this.#tree = tree
    this.#problems = problems
  }

  read(node: Node | null, path: Path): unknown {
    if (node === null) return null
    if (isAlias(node)) return this.#follow(node, path)
    if (this.#aliasDepth > 0 && ++this.#aliased > MAX_ALIASED) return null
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    this.#open.add(node)
    const value = this.#value(node, path)
    this.#open.delete(node)
    return value
  }

  #value(node: Node, path: Path): unknown {
    if (isMap<Node, Node | null>(node)) return this.#mapping(node, path)
    if (isSeq<Node>(node)) return this.#list(node, path)
    return isScalar(node) ? scalarValue(node) : null
  }

  #follow(alias: Alias, path: Path): unknown {
    const target = this.#anchors.get(alias.source)
    if (target === undefined || this.#open.has(target)) {
      this.#problems.addAt(startOf(alias), 'an alias must name an anchor that is complete before it')
      return null
    }
    if (path.length > MAX_DEPTH) {
      this.#problems.addAt(startOf(alias), `aliases nest deeper than ${MAX_DEPTH} levels`)
      return null
    }
    const before = this.#aliased
    this.#aliasDepth++
    const value = this.read(target, path)
    this.#aliasDepth--
    if (before <= MAX_ALIASED && this.#aliased > MAX_ALIASED && this.#aliasDepth === 0) {
      this.#problems.addAt(startOf(alias), `aliases repeat more than ${MAX_ALIASED} values`)
    }
    return value
  }

  #mapping(node: YAMLMap<Node, Node | null>, path: Path): Mapping {
    // Without a prototype, so that no key has a meaning of its own.
    const mapping: Mapping = Object.create(null)
    const locations = this.#locationsOf(mapping)
    const merged: Mapping[] = []
    let merges = 0
    for (const { key, value } of node.items) {
      const name = keyName(key)
      const inner = [...path, name ?? '']
      if (isMerge(key)) {
        if (merges++ > 0) this.#problems.addAt(startOf(key), `${dotted(inner)}: duplicate key`)
        else merged.push(...this.#merged(value, inner))
      } else if (name === null)
        this.#problems.addAt(startOf(key), `${dotted(inner)}: a key must be a plain word`)
      else if (locations.has(name)) this.#problems.addAt(startOf(key), `${dotted(inner)}: duplicate key`)
      else {
        locations.set(name, this.#locationOf(startOf(key), value))
        mapping[name] = this.read(value, inner)
      }
    }
    // Own keys override merged ones, wherever `<<` is. Of merged mappings, the first has precedence.
    for (const other of merged) {
      for (const [name, location] of this.#tree.locations.get(other) ?? []) {
        if (locations.has(name)) continue
        locations.set(name, location)
        Reflect.set(mapping, name, Reflect.get(other, name))
      }
    }
    return mapping
  }

  #merged(node: Node | null, path: Path): readonly Mapping[] {
    const value = this.read(node, path)
    const mappings = Array.isArray(value) ? value : [value]
    if (mappings.every(isMapping)) return mappings
    const at = node === null ? 0 : startOf(node)
    this.#problems.addAt(at, `${dotted(path)}: expected a mapping such as *name, or a list of them`)
    return []
  }

  #list(node: YAMLSeq<Node>, path: Path): unknown[] {
    const list: unknown[] = []
    const locations = this.#locationsOf(list)
    for (const [i, item] of node.items.entries()) {
      locations.set(i, this.#locationOf(startOf(item), item))
      list.push(this.read(item, [...path, i]))
    }
    return list
  }

  #locationsOf(container: Container): Map<string | number, Location> {
    const locations = new Map<string | number, Location>()
    this.#tree.locations.set(container, locations)
    return locations
  }

  #locationOf(key: number, node: Node | null): Location {
    const plain = isScalar(node) && node.type === Scalar.PLAIN
    // An empty value has the location of its key.
    const nothing = node?.range == null || node.range[0] === node.range[1]
    const value = nothing ? key : startOf(node)
    return { from: 'file', source: this.#tree.source, key, value, plain, variables: [] }
  }
}

/** `<<`, unquoted: its value is a mapping, or a list of mappings, whose keys are merged. */
function isMerge(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === Scalar.PLAIN
}

function keyName(key: Node): string | null {
  if (!isScalar(key)) return null
  if (typeof key.value === 'string') return key.value
  return key.source || null
}

function scalarValue(scalar: Scalar): unknown {
  // YAML 1.2 reads 0600 as six hundred and 0o600 as 384. Such numbers are only used as file modes, so both stay strings
  // for `file_mode` to parse.
  if (typeof scalar.value === 'number' && scalar.source !== undefined && /^0[0-9o]/.test(scalar.source)) {
    return scalar.source
  }
  return scalar.value
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0
}
