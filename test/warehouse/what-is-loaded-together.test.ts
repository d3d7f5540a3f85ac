import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ManifestShard } from '../../src/state/index.ts'
import { independentShards, unitsOf } from '../../src/warehouse/load-data-set.ts'
import type { Loaded, LoadUnit } from '../../src/warehouse/table/warehouse.ts'

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

/** A database: for each partition the shards of its rows, and the ledger. */
class Model {
  readonly table = new Map<string, string[]>()
  readonly ledger = new Map<string, Loaded>()

  carryOut(units: readonly LoadUnit[]): void {
    for (const { stale, forgotten, shards } of units) {
      for (const key of stale) this.table.delete(key)
      for (const path of forgotten) this.ledger.delete(path)
      for (const { path, sha256, partitions, rows } of shards) {
        expect(this.ledger.has(path)).toBe(false)
        this.ledger.set(path, { shard: path, sha256, partitions, rows })
        for (const key of partitions)
          this.table.set(key, [...(this.table.get(key) ?? []), `${path} ${sha256}`].sort())
      }
    }
  }

  /** What is looked up in the ledger before shards are loaded during a run. */
  about(shards: readonly ManifestShard[]): readonly Loaded[] {
    const paths = new Set(shards.map(({ path }) => path))
    const keys = new Set(shards.flatMap(({ partitions }) => partitions))
    return [...this.ledger.values()].filter(
      ({ shard, partitions }) => paths.has(shard) || partitions.some((key) => keys.has(key)),
    )
  }
}

function modelOf(shards: readonly ManifestShard[]): Model {
  const model = new Model()
  model.carryOut([{ shards, stale: [], forgotten: [] }])
  return model
}

const mode = fc.constantFrom('append', 'upsert', 'replace')

it('after any change of a data set the table holds exactly its rows, and the ledger its shards', () => {
  fc.assert(
    fc.property(dataSet, dataSet, mode, (before, now, mode) => {
      const model = modelOf(before)
      model.carryOut(unitsOf(now, [...model.ledger.values()], mode))
      expect(model).toEqual(modelOf(now))
    }),
    { numRuns: 500 },
  )
})

it('the same after shards were loaded during the run, in any order, and the data set changed again', () => {
  const order = fc.array(fc.array(fc.nat(5), { maxLength: 3 }), { maxLength: 4 })
  fc.assert(
    fc.property(dataSet, dataSet, fc.option(dataSet), order, mode, (before, now, later, batches, mode) => {
      const model = modelOf(before)
      const left = [...now]
      const loadedEarlier = new Set<string>()
      for (const batch of batches) {
        const shards = batch.flatMap((at) => left.splice(at, 1))
        for (const one of independentShards(shards, model.about(shards), loadedEarlier)) {
          loadedEarlier.add(one.path)
          model.carryOut([{ shards: [one], stale: [], forgotten: [] }])
        }
      }
      // What will be replaced is replaced as a whole, and gets no rows before.
      for (const [key, rows] of modelOf(before).table) expect(model.table.get(key)).toEqual(rows)
      model.carryOut(unitsOf(later ?? now, [...model.ledger.values()], mode))
      const { table, ledger } = modelOf(later ?? now)
      expect(model.table).toEqual(table)
      expect(new Set(model.ledger.keys())).toEqual(new Set(ledger.keys()))
    }),
    { numRuns: 1000 },
  )
})

it('a new shard is loaded during the run, also a further one of a partition that the same command has begun', () => {
  const [first, second] = [shard('part-0', 'x', ['a']), shard('part-1', 'y', ['a'])]
  const ledger = modelOf([first]).about([second])
  expect(independentShards([first, second], [], new Set())).toEqual([first, second])
  expect(independentShards([second], ledger, new Set([first.path]))).toEqual([second])
  expect(independentShards([second], ledger, new Set())).toEqual([])
})

it('unchanged shards are not loaded again', () => {
  fc.assert(
    fc.property(dataSet, (shards) => {
      expect(unitsOf(shards, [...modelOf(shards).ledger.values()], 'append')).toEqual([])
    }),
  )
})
