/** Values by paths like `domain.acme.com/2024-01` or `credentials/query=domain.acme.com/import_window=2024-01-01`. */
export type ReadonlyPathMap<V> = Iterable<readonly [path: string, value: V]> & {
  /** By what stands before the last slash, then by what comes after it. */
  readonly branches: ReadonlyMap<string, ReadonlyMap<string, V>>
  get(path: string): V | undefined
}

/** A million paths have few different endings: each is kept once, and full paths are not kept. */
export class PathMap<V> implements ReadonlyPathMap<V> {
  readonly branches = new Map<string, Map<string, V>>()
  readonly #endings = new Map<string, string>()

  get(path: string): V | undefined {
    const [branch, ending] = splitPath(path)
    return this.branches.get(branch)?.get(ending)
  }

  /** @param change gets undefined when there is no value yet */
  update(path: string, change: (value: V | undefined) => V): void {
    const [branch, ending] = splitPath(path)
    let values = this.branches.get(branch)
    if (values === undefined) {
      values = new Map()
      this.branches.set(branch, values)
    }
    let known = this.#endings.get(ending)
    if (known === undefined) {
      known = ending
      this.#endings.set(known, known)
    }
    values.set(known, change(values.get(known)))
  }

  *[Symbol.iterator](): Generator<readonly [string, V]> {
    for (const [branch, values] of this.branches) {
      for (const [ending, value] of values) yield [branch === '' ? ending : `${branch}/${ending}`, value]
    }
  }
}

/** Cuts a path at its last slash. */
export function splitPath(path: string): readonly [branch: string, ending: string] {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? ['', path] : [path.slice(0, slash), path.slice(slash + 1)]
}
