import { getOrInsert } from '../../core/index.ts'
import type { SealEntry } from '../journal-entry.ts'

/** A sealed shard, as in its journal entry. */
export type SealedShard = Omit<SealEntry, 'kind'>

/** Sealed shards, in the order of their commits. */
export type ShardList = Iterable<SealedShard> & {
  readonly length: number
  /** Rows of all shards. */
  readonly rows: number
}

/** Sealed shards, of which some may go. */
export class SealedShards implements ShardList {
  #shards: SealedShard[] = []
  rows = 0

  get length(): number {
    return this.#shards.length
  }

  push(shard: SealedShard): void {
    this.#shards.push(shard)
    this.rows += shard.rows
  }

  /** Removes shards by their numbers. @returns their paths */
  remove(numbers: ReadonlySet<number>): readonly string[] {
    const gone = this.#shards.filter(({ shard }) => numbers.has(shard))
    this.#shards = this.#shards.filter(({ shard }) => !numbers.has(shard))
    this.rows -= gone.reduce((sum, { rows }) => sum + rows, 0)
    return gone.map(({ path }) => path)
  }

  // A copy, because shards may be added during the iteration.
  [Symbol.iterator](): Iterator<SealedShard> {
    return [...this.#shards].values()
  }
}

/** Values by paths like `domain.acme.com/2024-01` or `credentials/query=domain.acme.com/import_window=2024-01-01`. */
export type ReadonlyPathMap<V> = Iterable<readonly [path: string, value: V]> & {
  /** By the part before the last slash, then by the part after it. */
  readonly branches: ReadonlyMap<string, ReadonlyMap<string, V>>
  get(path: string): V | undefined
}

/** A map for a million paths with few different endings. It keeps each ending once, and no full paths. */
export class PathMap<V> implements ReadonlyPathMap<V> {
  readonly branches = new Map<string, Map<string, V>>()
  readonly #endings = new Map<string, string>()

  get(path: string): V | undefined {
    const [branch, ending] = splitPath(path)
    return this.branches.get(branch)?.get(ending)
  }

  /** @param change gets undefined if there is no value yet */
  update(path: string, change: (value: V | undefined) => V): void {
    const [branch, ending] = splitPath(path)
    const values = getOrInsert(this.branches, branch, () => new Map<string, V>())
    const known = getOrInsert(this.#endings, ending, () => ending)
    values.set(known, change(values.get(known)))
  }

  *[Symbol.iterator](): Generator<readonly [string, V]> {
    for (const [branch, values] of this.branches) {
      for (const [ending, value] of values) yield [branch === '' ? ending : `${branch}/${ending}`, value]
    }
  }
}

/** Splits a path at its last slash. */
export function splitPath(path: string): readonly [branch: string, ending: string] {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? ['', path] : [path.slice(0, slash), path.slice(slash + 1)]
}
