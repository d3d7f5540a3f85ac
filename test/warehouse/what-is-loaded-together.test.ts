import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ManifestShard } from '../../src/state/index.ts'
import { type LoadStep, nextStep, planOf } from '../../src/warehouse/load-plan.ts'
import type { Loaded } from '../../src/warehouse/table/load-rows.ts'

const shard = (path: string, sha256: string, partitions: readonly string[], rows = 2): ManifestShard => ({
  path,
  sha256,
  partitions: [...partitions],
  rows,
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

/** A database: the shard of each row, and the ledger. */
class Model {
  readonly ledger = new Map<string, Loaded>()

  carryOut({ gone, come }: LoadStep): void {
    for (const entry of gone) expect(this.ledger.delete(entry.shard)).toBe(true)
    for (const { path, sha256, rows, partitions } of come) {
      expect(this.ledger.has(path)).toBe(false)
      this.ledger.set(path, { shard: path, sha256, rows, partitions })
    }
  }
}

function modelOf(shards: readonly ManifestShard[]): Model {
  const model = new Model()
  model.carryOut({ gone: [], isAll: false, come: shards })
  return model
}

it('after any change of a data set the table holds exactly its rows, whatever is carried out at once', () => {
  fc.assert(
    fc.property(dataSet, dataSet, fc.constantFrom(0, 3000, Infinity), (before, now, atOnce) => {
      const model = modelOf(before)
      for (let left = planOf(now, [...model.ledger.values()]); left.length > 0; ) {
        const { step, rest } = nextStep(left, atOnce)
        model.carryOut(step!)
        // Planned anew, as under the lock, it is the same.
        left = planOf(now, [...model.ledger.values()])
        expect(left.flatMap(({ come }) => come)).toEqual(rest.flatMap(({ come }) => come))
      }
      expect(model.ledger).toEqual(modelOf(now).ledger)
    }),
    { numRuns: 500 },
  )
})

it('rows that go, and missing rows of their partitions, change in the same transaction', () => {
  fc.assert(
    fc.property(dataSet, dataSet, (before, now) => {
      const plan = planOf(now, [...modelOf(before).ledger.values()])
      const touched = (of: LoadStep): Set<string> => new Set(of.gone.flatMap(({ partitions }) => partitions))
      for (const step of plan)
        for (const other of plan)
          if (step !== other)
            for (const { partitions } of [...other.gone, ...other.come])
              expect(partitions.filter((key) => touched(step).has(key))).toEqual([])
    }),
    { numRuns: 500 },
  )
})

it('a compacted shard is there where all rows that it stands for are there', () => {
  const former = [1, 2, 3].map((part) => shard(`q/part-0000${part}.parquet`, `${part}`, ['a']))
  const { ledger } = modelOf(former)
  const compacted = {
    ...shard('q/part-00004.parquet', '4', ['a'], 6),
    stands_for: [[1, 3]] as [number, number][],
  }
  expect(planOf([compacted], [...ledger.values()])).toEqual([])
  // One of them was written anew before.
  const fewer = { ...compacted, rows: 5 }
  expect(planOf([fewer], [...ledger.values()])).toEqual([
    { gone: [...ledger.values()], isAll: false, come: [fewer] },
  ])
  expect(planOf([compacted], [...ledger.values()].slice(1))).toHaveLength(1)
})
