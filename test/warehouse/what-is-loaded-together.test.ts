import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ManifestShard } from '../../src/state/index.ts'
import { unitsOf } from '../../src/warehouse/load-data-set.ts'

/** A table as a set of "shard bytes, partition" pairs, which is what loading is about. */
type Table = Map<string, Set<string>>

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

function add(table: Table, { path, sha256, partitions }: ManifestShard): void {
  for (const key of partitions) {
    const rows = table.get(key) ?? new Set()
    table.set(key, rows.add(`${path} ${sha256}`))
  }
}

it('after any change of a data set the table holds just what the data set holds, and the ledger says so', () => {
  fc.assert(
    fc.property(dataSet, dataSet, fc.constantFrom('append', 'upsert', 'replace'), (before, now, mode) => {
      const table: Table = new Map()
      for (const one of before) add(table, one)
      const ledger = new Map(before.map((one) => [one.path, one]))
      const loaded = before.map(({ path, sha256, partitions }) => ({ shard: path, sha256, partitions }))
      for (const { stale, forgotten, shards } of unitsOf(now, loaded, mode)) {
        for (const key of stale) table.delete(key)
        for (const path of forgotten) ledger.delete(path)
        for (const one of shards) {
          expect(ledger.has(one.path)).toBe(false)
          ledger.set(one.path, one)
          add(table, one)
        }
      }
      const expected: Table = new Map()
      for (const one of now) add(expected, one)
      expect(table).toEqual(expected)
      expect([...ledger.keys()].sort()).toEqual(now.map(({ path }) => path).sort())
    }),
    { numRuns: 500 },
  )
})

it('what did not change is not touched', () => {
  fc.assert(
    fc.property(dataSet, (shards) => {
      const loaded = shards.map(({ path, sha256, partitions }) => ({ shard: path, sha256, partitions }))
      expect(unitsOf(shards, loaded, 'append')).toEqual([])
    }),
  )
})
