import { getOrInsert, numberOf } from '../../core/index.ts'
import type { CheckpointState, FoldedShard } from '../../state/index.ts'
import type { Problem } from './verify-shard.ts'

/**
 * Compares the rows that the checkpoint counts for each partition with those that it counts for shards. Partitions that
 * share shards are compared together.
 */
export function* rowsThatDiffer(state: CheckpointState): Generator<Problem> {
  const sums = new Map<string, Rows>()
  const sumOf = (key: string): Rows => {
    let sum = getOrInsert(sums, key, () => ({ counted: 0, held: 0, first: key, joined: null, isCut: false }))
    while (sum.joined !== null) sum = sum.joined
    return sum
  }
  const add = (keys: Iterable<string>, rows: number): void => {
    let all: Rows | null = null
    for (const key of keys) {
      const sum = sumOf(key)
      if (all !== null && sum !== all) {
        all.counted += sum.counted
        all.held += sum.held
        all.isCut ||= sum.isCut
        sum.joined = all
      }
      all ??= sum
    }
    if (all !== null) all.held += rows
  }
  for (const [key, exported] of state.partitions) {
    const again = state.redo.partitions.get(key)
    if (again === undefined) {
      if (exported.rows > 0) sumOf(key).counted += exported.rows
      continue
    }
    const sum = sumOf(formerly(key))
    sum.counted += exported.rows
    // Rows in shards that were not published were dropped.
    sum.isCut ||= exported.state === 'partial'
    sumOf(key).counted += again?.rows ?? 0
  }
  for (const { shard, partitions, rows } of state.shards)
    add(state.redo.shards.has(shard) ? partitions.map(formerly) : partitions, rows)
  for (const { partitions, rows } of state.held.values()) add(partitions, rows)
  for (const shard of state.openShards.values()) add(shard.partitions, rowsOf(shard))
  for (const { counted, held, first, joined, isCut } of sums.values()) {
    if (joined !== null || isCut || counted === held) continue
    const problem = `the checkpoint counts ${numberOf(counted, 'row')}, and its shards hold ${held}`
    yield { path: first.trimEnd(), problem, cause: 'partition_rows' }
  }
}

type Rows = {
  /** By partition. */
  counted: number
  /** By shard. */
  held: number
  /** The key of the first partition. */
  readonly first: string
  /** The sum that this one is a part of. */
  joined: Rows | null
  /** Whether it cannot be compared. */
  isCut: boolean
}

/** Stands for the former rows of a partition that is exported again. No key ends like this. */
function formerly(key: string): string {
  return `${key} `
}

function rowsOf({ batches }: FoldedShard): number {
  return batches.reduce((sum, { rows }) => sum + rows, 0)
}
