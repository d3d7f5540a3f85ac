import { getOrInsert } from '../../../core/index.ts'
import { type ManifestShard, splitPath } from '../../../state/index.ts'

/** So many rows of a folder are compared: 160 MB. */
const MAX_ROWS = 20_000_000

type Folder = { rows: number; readonly queries: Set<string> }

/** Counts rows whose id comes before within their query. Shards of a folder come one after the other. */
export class RepeatedIds {
  readonly #folders = new Map<string, Folder>()
  #folder = ''
  #ids = new BigInt64Array()
  #seen = 0
  #repeated = 0

  constructor(shards: readonly ManifestShard[]) {
    for (const { path, rows, partitions } of shards) {
      const begin = (): Folder => ({ rows: 0, queries: new Set() })
      const folder = getOrInsert(this.#folders, splitPath(path)[0], begin)
      folder.rows += rows
      for (const key of partitions) folder.queries.add(splitPath(key)[0])
    }
  }

  /** @returns what takes the id of each row; null: several queries share the folder, or it has too many rows */
  of({ path }: ManifestShard): ((id: string | null) => void) | null {
    const [name] = splitPath(path)
    const { rows, queries } = this.#folders.get(name)!
    if (queries.size > 1 || rows > MAX_ROWS) return null
    if (name !== this.#folder) {
      this.#count()
      this.#folder = name
      this.#ids = new BigInt64Array(rows)
    }
    return (id) => {
      // Types are compared later.
      if (id !== null && /^-?\d+$/.test(id)) this.#ids[this.#seen++] = BigInt(id)
    }
  }

  get total(): number {
    this.#count()
    return this.#repeated
  }

  #count(): void {
    const ids = this.#ids.subarray(0, this.#seen).sort()
    for (let i = 1; i < ids.length; i++) if (ids[i] === ids[i - 1]) this.#repeated++
    this.#seen = 0
  }
}
