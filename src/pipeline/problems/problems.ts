import { ExportError } from '../../core/index.ts'
import { describe } from './describe.ts'
import { dotted, lineOf, locationAt, type Path, type Source, type Tree, valueAt } from './tree.ts'

const MAX_SHOWN = 100

type Problem = {
  readonly where: string
  readonly order: readonly [number, number, number]
  readonly text: string
}

/**
 * Collects all problems of a pipeline, so that they are reported at once. Only the first problem of a path counts:
 * others are its consequences.
 */
export class Problems {
  readonly #found: Problem[] = []
  readonly #reported = new Set<string>()
  /** Paths of which a child is touched. */
  readonly #parents = new Set<string>()
  readonly #ranks = new Map<string, number>()
  /** The index in the file of each item that is left of a list, by the list's path. */
  readonly #kept = new Map<string, readonly number[]>()
  readonly #tree: Tree

  constructor(tree: Tree) {
    this.#tree = tree
  }

  /** A problem with the value at a path, or with its key. `text` must not contain a secret. */
  add(at: Path, text: string, part: 'key' | 'value' = 'value'): void {
    const path = this.#inFile(at)
    if (this.#reported.has(keyOf(path))) return
    this.suppress(path)
    const { location, exact } = locationAt(this.#tree, path)
    if (location?.from === 'flag') {
      this.#found.push({
        where: exact ? location.flag : `${location.flag}: ${dotted(path)}`,
        order: [0, 0, 0],
        text,
      })
      return
    }
    // A missing key is reported at its parent.
    const offset = location === null ? 0 : exact ? location[part] : location.key
    const named = path.length === 0 ? text : `${dotted(path)}: ${text}`
    this.addAt(offset, named, location?.source)
  }

  /** A problem with a key that the mapping at `path` does not have. */
  addKey(path: Path, key: string, text: string): void {
    const { location } = locationAt(this.#tree, [...path, key])
    this.suppress([...path, key])
    const named = path.length === 0 ? text : `${dotted(path)}: ${text}`
    if (location?.from === 'file') this.addAt(location.key, named, location.source)
    else this.addAt(0, named)
  }

  /** Describes the value at a path without secrets. */
  found(path: Path): string {
    return describe(this.#tree, this.#inFile(path)) ?? 'nothing'
  }

  /** The file with the value at a path; the pipeline file itself for flags. */
  sourceOf(path: Path): Source {
    const { location } = locationAt(this.#tree, path)
    return location?.from === 'file' ? location.source : this.#tree.source
  }

  /** A problem at an offset of the pipeline file, or of one that it extends. */
  addAt(offset: number, text: string, source: Source = this.#tree.source): void {
    const { line, col } = source.lineAt?.(offset) ?? { line: 0, col: 0 }
    this.#found.push({ where: lineOf(source, offset), order: [this.#rankOf(source.path), line, col], text })
  }

  /** A problem in another file that the pipeline names. */
  addLine(file: string, line: number, text: string): void {
    this.#found.push({ where: `${file}:${line}:1`, order: [this.#rankOf(file), line, 1], text })
  }

  /** Adds the problems of another file. */
  addAll(others: Problems): void {
    for (const problem of others.#found) {
      const { path } = others.#tree.source
      const [, line, col] = problem.order
      this.#found.push({ ...problem, order: [this.#rankOf(path), line, col] })
    }
  }

  /** Invalid items of a list were left out, so from now on its items have other indexes than in the file. */
  keepItems(list: Path, indexes: readonly number[]): void {
    this.#kept.set(keyOf(list), indexes)
  }

  #inFile(path: Path): Path {
    const kept = this.#kept.get(keyOf(path.slice(0, 2)))
    return path.map((key, i) => (i === 2 && typeof key === 'number' ? (kept?.[key] ?? key) : key))
  }

  /** Marks a path as reported without a problem of its own, for example because a mistyped key means it. */
  suppress(path: Path): void {
    this.#reported.add(keyOf(path))
    for (let length = path.length - 1; length > 0; length--) this.#parents.add(keyOf(path.slice(0, length)))
  }

  /** Whether there is a problem at one of these paths, in its children or in its parents. */
  isReported(...paths: readonly Path[]): boolean {
    return paths.some(
      (path) =>
        this.#parents.has(keyOf(path)) ||
        path.some((_, i) => this.#reported.has(keyOf(path.slice(0, i + 1)))),
    )
  }

  /** Whether the file or a flag has a valid value there; a default is none. */
  given(path: Path): boolean {
    return valueAt(this.#tree, path) !== undefined && !this.isReported(path)
  }

  /** Flags come first, then the pipeline file, then other files in the order of their first problem. */
  #rankOf(path: string): number {
    if (path === this.#tree.source.path) return 1
    const known = this.#ranks.get(path) ?? this.#ranks.size + 2
    this.#ranks.set(path, known)
    return known
  }

  get none(): boolean {
    return this.#found.length === 0
  }

  /** Every problem as one error where the first is, one line each, in the order of the file. `next` may quote it. */
  error(): ExportError {
    const count = this.#found.length
    const first = this.#found
      .toSorted((a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1] || a.order[2] - b.order[2])
      .slice(0, MAX_SHOWN)
    const lines = first.map(({ where, text }) => `${where}: ${text}`)
    if (count > MAX_SHOWN) lines.push(`… and ${count - MAX_SHOWN} more`)
    const problems = count === 1 ? '1 problem' : `${count} problems`
    const ofFile = first.find(({ order: [rank] }) => rank === 1)
    const isOfFlags = this.#found.every(({ order: [rank] }) => rank === 0)
    return new ExportError({
      kind: 'config',
      what: isOfFlags ? `The flags do not fit: ${problems}` : `The pipeline cannot be read: ${problems}`,
      where: isOfFlags ? '' : (ofFile?.where ?? this.#tree.source.file),
      next: `Correct the following and try again:\n${lines.join('\n')}`,
    })
  }
}

function keyOf(path: Path): string {
  return JSON.stringify(path)
}
