import { ExportError } from '../../core/index.ts'
import { describe } from './describe.ts'
import { dotted, lineOf, locationAt, type Path, type Source, type Tree } from './tree.ts'

/** More lines than that help nobody. */
const MAX_SHOWN = 100

type Problem = {
  readonly where: string
  readonly order: readonly [number, number, number]
  readonly text: string
}

/**
 * Collects everything that is wrong with a pipeline, so that all of it is reported at once. Only the first problem of
 * a path counts: what follows from it is noise.
 */
export class Problems {
  readonly #found: Problem[] = []
  readonly #touched = new Set<string>()
  /** Paths of which a child is touched. */
  readonly #parents = new Set<string>()
  readonly #ranks = new Map<string, number>()
  readonly #tree: Tree

  constructor(tree: Tree) {
    this.#tree = tree
  }

  /** A problem with the value at a path, or with its key. `text` carries no value that may be a secret. */
  add(path: Path, text: string, part: 'key' | 'value' = 'value'): void {
    const key = keyOf(path)
    if (this.#touched.has(key)) return
    this.excuse(path)
    const { location, exact } = locationAt(this.#tree, path)
    if (location?.from === 'flag') {
      this.#found.push({
        where: exact ? location.flag : `${location.flag}: ${dotted(path)}`,
        order: [0, 0, 0],
        text,
      })
      return
    }
    // What is missing is reported at the key that should hold it.
    const offset = location === null ? 0 : exact ? location[part] : location.key
    const named = path.length === 0 ? text : `${dotted(path)}: ${text}`
    this.addAt(offset, named, location?.source)
  }

  /** A problem with a key that the mapping at `path` does not have. */
  addKey(path: Path, key: string, text: string): void {
    const { location } = locationAt(this.#tree, [...path, key])
    this.excuse([...path, key])
    const named = path.length === 0 ? text : `${dotted(path)}: ${text}`
    if (location?.from === 'file') this.addAt(location.key, named, location.source)
    else this.addAt(0, named)
  }

  /** What stands at a path, in words that may be shown. */
  found(path: Path): string {
    return describe(this.#tree, path) ?? 'nothing'
  }

  /** The file in which the value at a path stands; the pipeline file itself where a flag has set it. */
  sourceOf(path: Path): Source {
    const { location } = locationAt(this.#tree, path)
    return location?.from === 'file' ? location.source : this.#tree.source
  }

  /** A problem at an offset of the pipeline file, or of one that it extends. */
  addAt(offset: number, text: string, source: Source = this.#tree.source): void {
    const { line, col } = source.lineAt?.(offset) ?? { line: 0, col: 0 }
    this.#found.push({ where: lineOf(source, offset), order: [this.#turnOf(source.path), line, col], text })
  }

  /** A problem in another file that the pipeline names. */
  addLine(file: string, line: number, text: string): void {
    this.#found.push({ where: `${file}:${line}:1`, order: [this.#turnOf(file), line, 1], text })
  }

  /** Takes over what was found in a file by itself. */
  addAll(others: Problems): void {
    for (const problem of others.#found) {
      const { path } = others.#tree.source
      const [, line, col] = problem.order
      this.#found.push({ ...problem, order: [this.#turnOf(path), line, col] })
    }
  }

  /** Marks a path as dealt with although no problem stands there: a mistyped key that means it, for example. */
  excuse(path: Path): void {
    this.#touched.add(keyOf(path))
    for (let length = path.length - 1; length > 0; length--) this.#parents.add(keyOf(path.slice(0, length)))
  }

  /** Whether there is a problem at one of these paths, inside it or around it. */
  touched(...paths: readonly Path[]): boolean {
    return paths.some(
      (path) =>
        this.#parents.has(keyOf(path)) || path.some((_, i) => this.#touched.has(keyOf(path.slice(0, i + 1)))),
    )
  }

  /** Flags come first, then the pipeline file, then other files in the order in which they were found at fault. */
  #turnOf(path: string): number {
    if (path === this.#tree.source.path) return 1
    const known = this.#ranks.get(path) ?? this.#ranks.size + 2
    this.#ranks.set(path, known)
    return known
  }

  get none(): boolean {
    return this.#found.length === 0
  }

  /** Every problem as one error, one line each, in the order of the file. */
  error(): ExportError {
    const count = this.#found.length
    const lines = this.#found
      .toSorted((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1] || a.order[2] - b.order[2])
      .slice(0, MAX_SHOWN)
      .map(({ where, text }) => `${where}: ${text}`)
    if (count > MAX_SHOWN) lines.push(`… and ${count - MAX_SHOWN} more`)
    const problems = count === 1 ? '1 problem' : `${count} problems`
    const isOfFlags = this.#found.every(({ order: [rank] }) => rank === 0)
    return new ExportError(
      'config',
      isOfFlags ? `The flags do not fit: ${problems}` : `The pipeline cannot be read: ${problems}`,
      isOfFlags ? '' : this.#tree.source.file,
      `Correct the following and try again:\n${lines.join('\n')}`,
    )
  }
}

function keyOf(path: Path): string {
  return JSON.stringify(path)
}
