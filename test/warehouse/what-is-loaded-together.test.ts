import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ManifestShard } from '../../src/state/index.ts'
import { type LoadPlan, planOf } from '../../src/warehouse/load-data-set.ts'
import type { Loaded } from '../../src/warehouse/table/load-rows.ts'
import { partitionOf } from '../../src/warehouse/table/shard-rows.ts'

const shard = (path: string, sha256: string, partitions: readonly string[]): ManifestShard => ({
  path,
  sha256,
  partitions: [...partitions],
  rows: partitions.length,
  bytes: 1,
  imported_at: null,
})

const partitions = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), {
  minLength: 1,
  maxLength: 3,
})
const dataSet = fc
  .array(fc.tuple(fc.constantFrom('x', 'y'), partitions), { maxLength: 6 })
  .map((shards) => shards.map(([sha, keys], index) => shard(`part-${index}`, `${sha}${keys}`, keys)))

/** A database: for each `spillway_partition` the shards of its rows, and the ledger. */
class Model {
  readonly table = new Map<string, string[]>()
  readonly ledger = new Map<string, Loaded>()

  carryOut({ gone, instead, added }: LoadPlan): void {
    for (const key of gone ?? this.table.keys()) this.table.delete(key)
    for (const { shard, partition } of [...this.ledger.values()])
      if (gone === null || gone.has(partition)) this.ledger.delete(shard)
    for (const shard of [...instead, ...added]) {
      const { path, sha256, rows } = shard
      const partition = partitionOf(shard)
      expect(this.ledger.has(path)).toBe(false)
      this.ledger.set(path, { shard: path, sha256, partition, rows })
      this.table.set(partition, [...(this.table.get(partition) ?? []), `${path} ${sha256}`].sort())
    }
  }
}

function modelOf(shards: readonly ManifestShard[]): Model {
  const model = new Model()
  model.carryOut({ gone: new Set(), instead: [], added: shards })
  return model
}

it('after any change of a data set the table holds exactly its rows, and the ledger its shards', () => {
  fc.assert(
    fc.property(dataSet, dataSet, (before, now) => {
      const model = modelOf(before)
      model.carryOut(planOf(now, [...model.ledger.values()]))
      expect(model).toEqual(modelOf(now))
    }),
    { numRuns: 500 },
  )
})

it('new rows of a partition whose rows go come in the same transaction', () => {
  fc.assert(
    fc.property(dataSet, dataSet, (before, now) => {
      const { added } = planOf(now, [...modelOf(before).ledger.values()])
      const isGone = ({ path, sha256 }: ManifestShard): boolean =>
        !now.some((shard) => shard.path === path && shard.sha256 === sha256)
      const gone = new Set(before.filter(isGone).flatMap(({ partitions }) => partitions))
      expect(added.filter(({ partitions }) => partitions.some((key) => gone.has(key)))).toEqual([])
    }),
    { numRuns: 500 },
  )
})

it('unchanged shards are not loaded again', () => {
  fc.assert(
    fc.property(dataSet, (shards) => {
      const plan = planOf(shards, [...modelOf(shards).ledger.values()])
      expect(plan).toEqual({ gone: new Set(), instead: [], added: [] })
    }),
  )
})
