import { getOrInsert } from '../../core/index.ts'
import type { SealEntry } from '../journal-entry.ts'

export type SealedShard = Omit<SealEntry, 'kind'>

/** Sealed shards, in the order of their commits. */
export type ShardList = Iterable<SealedShard> & {
  readonly length: number
  readonly rows: number
}

const BLOCK_SHARDS = 100

/** Keeps shards as JSON outside the heap: half a million objects nearly double the time to read a checkpoint. */
export class PackedShardList implements ShardList {
  readonly #blocks: Buffer[] = []
  #last: SealedShard[] = []
  rows = 0

  get length(): number {
    return this.#blocks.length * BLOCK_SHARDS + this.#last.length
  }

  push(shard: SealedShard): void {
    this.#last.push(shard)
    this.rows += shard.rows
    if (this.#last.length < BLOCK_SHARDS) return
    this.#blocks.push(Buffer.from(JSON.stringify(this.#last)))
    this.#last = []
  }

  /** Removes shards by their numbers. @returns their paths */
  remove(shards: ReadonlySet<number>): readonly string[] {
    const all = [...this]
    this.#blocks.length = 0
    this.#last = []
    this.rows = 0
    for (const each of all) if (!shards.has(each.shard)) this.push(each)
    return all.flatMap(({ shard, path }) => (shards.has(shard) ? [path] : []))
  }

  *[Symbol.iterator](): Generator<SealedShard> {
    for (const block of this.#blocks) yield* JSON.parse(block.toString()) as SealedShard[]
    // A copy, because shards may be added during the iteration.
    yield* [...this.#last]
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

export function splitPath(path: string): readonly [branch: string, ending: string] {
  const slash = path.lastIndexOf('/')
  return slash < 0 ? ['', path] : [path.slice(0, slash), path.slice(slash + 1)]
}
