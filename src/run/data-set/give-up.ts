import { type CheckpointState, isOver, type Omission } from '../../state/index.ts'

/** What exporting some partitions anew gives up. */
export type GivenUp = Omission & {
  readonly rows: number
  /** Pages that they took, and may take again. */
  readonly pages: number
}

/**
 * All that goes when some partitions and shards are given up. A shard goes as a whole, and with it what else is in it,
 * which may lie in other shards as well. So does a chain that one of them belongs to, and what it has not brought to an
 * end.
 */
export function withAllThatGoes(
  state: CheckpointState,
  seed: { readonly partitions: Iterable<string>; readonly shards: Iterable<number> },
): GivenUp {
  const partitions = new Set(seed.partitions)
  const shards = new Set<number>()
  const chains = new Set<number>()
  const givenUp: string[] = []
  const lost = new Set(seed.shards)
  const take = (shard: number, within: Iterable<string>): boolean => {
    if (shards.has(shard)) return false
    const all = [...within]
    if (!lost.has(shard) && !all.some((key) => partitions.has(key))) return false
    shards.add(shard)
    for (const key of all) partitions.add(key)
    return true
  }
  for (let size = -1; size < partitions.size + shards.size; ) {
    size = partitions.size + shards.size
    for (const { shard, path, partitions: within } of state.shards)
      if (take(shard, within)) givenUp.push(path)
    for (const { shard, partitions: within } of state.openShards.values()) take(shard, within)
    for (const { chain, query, windows } of state.chains.values()) {
      if (chains.has(chain)) continue
      const keys = windows.names.map((name) => `${query}/${name}`)
      if (!keys.some((key) => partitions.has(key))) continue
      chains.add(chain)
      for (const key of keys) {
        const record = state.partitions.get(key)
        if (record !== undefined && !isOver(record)) partitions.add(key)
      }
    }
  }
  let [rows, pages] = [0, 0]
  for (const key of partitions) {
    const record = state.partitions.get(key)
    rows += record?.rows ?? 0
    pages += record?.pages ?? 0
  }
  return { partitions, shards, chains, givenUp, pruned: null, rows, pages }
}
