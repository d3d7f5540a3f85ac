import { ExportError } from '../../core/index.ts'
import { staysHere } from '../values/addresses.ts'
import { describe } from './describe.ts'
import { dotted, keyOf, lineOf, locationAt, type Path, type Source, type Tree, valueAt } from './tree.ts'

const MAX_SHOWN = 100

type Problem = {
  readonly where: string
  readonly order: readonly [number, number, number]
  readonly text: string
}

/** Collects all problems, so that they are reported at once. Of a path only the first counts: others follow from it. */
export class Problems {
  readonly #found: Problem[] = []
  readonly #reported = new Set<string>()
  /** @param tree the values that are checked: first those of the file, then with flags and variables */
  constructor(public tree: Tree) {}

  /** The same problems, and those of other values that are made of the same files. */
  of(tree: Tree): Problems {
    const all = new Problems(tree)
    all.#found.push(...this.#found)
    return all
  }

  /** A problem with the value at a path, or with its key. `text` must not contain a secret. */
  add(path: Path, text: string, part: 'key' | 'value' = 'value'): void {
    if (this.#reported.has(keyOf(path))) return
    this.suppress(path)
    const { location, exact } = locationAt(this.tree, path)
    if (location?.from === 'flag') {
      this.addFlag(exact ? location.flag : `${location.flag}: ${dotted(path)}`, text)
      return
    }
    // A missing key is reported at its parent.
    const offset = location === null ? 0 : exact ? location[part] : location.key
    const named = path.length === 0 ? text : `${dotted(path)}: ${text}`
    this.addAt(offset, named, location?.source)
  }

  /** A problem with a key that the mapping at `path` does not have. */
  addKey(path: Path, key: string, text: string): void {
    const { location } = locationAt(this.tree, [...path, key])
    const named = path.length === 0 ? text : `${dotted(path)}: ${text}`
    if (location?.from === 'file') this.addAt(location.key, named, location.source)
    else this.addAt(0, named)
  }

  addFlag(flag: string, text: string): void {
    this.#found.push({ where: flag, order: [0, 0, 0], text })
  }

  /** Reports plain http to other machines. @param what is sent in clear @param isAllowed undefined: no key allows it */
  requireHttps(path: Path, url: string | undefined, what: string, isAllowed: boolean | undefined): void {
    if (isAllowed || !url?.startsWith('http:') || staysHere(url)) return
    const permit = isAllowed === undefined ? '' : ' (allow_http: true permits it)'
    this.add(path, `expected https, found http to another machine; ${what} would travel unencrypted${permit}`)
  }

  found(path: Path): string {
    return describe(this.tree, path) ?? 'nothing'
  }

  /** Whether the file or a flag has a value there; a default is none. */
  given(path: Path): boolean {
    return valueAt(this.tree.root, path) !== undefined
  }

  /** The file with the value at a path; the pipeline file itself for flags. */
  sourceOf(path: Path): Source {
    const { location } = locationAt(this.tree, path)
    return location?.from === 'file' ? location.source : this.tree.sources[0]
  }

  /** A problem at an offset of the pipeline file, or of one that it extends. */
  addAt(offset: number, text: string, source: Source = this.tree.sources[0]): void {
    const { line, col } = source.lineAt?.(offset) ?? { line: 0, col: 0 }
    this.#found.push({ where: lineOf(source, offset), order: [this.#rankOf(source.path), line, col], text })
  }

  /** A problem in another file that the pipeline names. */
  addLine(file: string, line: number, text: string): void {
    this.#found.push({ where: `${file}:${line}:1`, order: [this.#rankOf(file), line, 1], text })
  }

  /** Marks a path as reported without a problem of its own, for example because a mistyped key means it. */
  suppress(path: Path): void {
    this.#reported.add(keyOf(path))
  }

  /** Flags come first, then the pipeline file, what it extends, and the file of domains. */
  #rankOf(path: string): number {
    const { sources } = this.tree
    return sources.findIndex((source) => source.path === path) + 1 || sources.length + 1
  }

  /** @throws ExportError 'config' when there are any */
  throwIfAny(): void {
    if (!this.none) throw this.error()
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
      where: isOfFlags ? '' : (ofFile?.where ?? this.tree.sources[0].file),
      next: `Correct the following and try again:\n${lines.join('\n')}`,
    })
  }
}
