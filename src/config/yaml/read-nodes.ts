import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import type { Problems } from '../problems/problems.ts'
import {
  type Container,
  dotted,
  isMapping,
  type Location,
  type Mapping,
  type Path,
  type Tree,
} from '../problems/tree.ts'

/** Values that aliases may repeat: a file of a few lines could otherwise unfold to billions. */
const MAX_ALIASED = 10_000
/** Aliases in aliases nest without a limit of the parser's. */
const MAX_DEPTH = 100

/** Turns parsed nodes into plain values, and notes the location of each in `tree.locations`. */
export function readNodes(root: Node | null, tree: Tree, problems: Problems): unknown {
  return new Reader(tree, problems).read(root, [])
}

class Reader {
  readonly #tree: Tree
  readonly #problems: Problems
  // An alias means the last anchor of that name before it, so anchors are noted on the way.
  readonly #anchors = new Map<string, Node>()
  /** Mappings and lists that are being read; an alias to one of them would never end. */
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
    const locations = this.#placesOf(mapping)
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
    // Own keys win wherever `<<` stands, and what is named first wins over what is named later.
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
    const locations = this.#placesOf(list)
    for (const [i, item] of node.items.entries()) {
      locations.set(i, this.#locationOf(startOf(item), item))
      list.push(this.read(item, [...path, i]))
    }
    return list
  }

  #placesOf(container: Container): Map<string | number, Location> {
    const locations = new Map<string | number, Location>()
    this.#tree.locations.set(container, locations)
    return locations
  }

  #locationOf(key: number, node: Node | null): Location {
    const plain = isScalar(node) && node.type === Scalar.PLAIN
    // Where nothing stands, the key is all there is to point at.
    const nothing = node?.range == null || node.range[0] === node.range[1]
    const value = nothing ? key : startOf(node)
    return { from: 'file', source: this.#tree.source, key, value, plain, variables: [] }
  }
}

/** `<<`, unquoted: its value is a mapping, or a list of mappings, whose keys stand here too. */
function isMerge(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === Scalar.PLAIN
}

function keyName(key: Node): string | null {
  if (!isScalar(key)) return null
  if (typeof key.value === 'string') return key.value
  return key.source || null
}

function scalarValue(scalar: Scalar): unknown {
  // YAML 1.2 reads 0600 as six hundred and 0o600 as 384. Neither is what anybody means by a number with
  // a leading zero except as a file mode, so both stay text and `file_mode` reads them.
  if (typeof scalar.value === 'number' && scalar.source !== undefined && /^0[0-9o]/.test(scalar.source)) {
    return scalar.source
  }
  return scalar.value
}

function startOf(node: Node): number {
  return node.range?.[0] ?? 0
}
