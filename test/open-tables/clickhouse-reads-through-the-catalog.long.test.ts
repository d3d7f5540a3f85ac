import { expect, it } from 'vitest'
import { CHANGES, cataloged, TOKEN } from './cataloged.ts'
import { ask } from './clickhouse/ask.ts'
import { itemsOf } from './world.ts'

const ROWS = 800

it('ClickHouse reads through the catalog what the data set holds, after each kind of change', async () => {
  // Over the first three months of a year.
  const days = Array.from({ length: ROWS }, (_, i) => `2024-0${(i % 3) + 1}-${10 + (i % 18)}`)
  const { world, catalog } = await cataloged({}, itemsOf(...days))
  world.load = { ...world.load, shard_rows: 50 }
  // The word behind the address is of files on this disk; for a bucket these would be its keys.
  const database = `CREATE DATABASE lake ENGINE = DataLakeCatalog('${catalog.url}/v1', 'Parquet')
    SETTINGS catalog_type = 'rest', warehouse = 'lake', auth_header = 'Authorization: Bearer ${TOKEN}'`
  const counted = async () => {
    const results = await ask(world.folder, [
      'SET allow_experimental_database_iceberg = 1',
      database,
      'SELECT count(), uniqExact(identity_name), sum(id) FROM lake.`leaks.acme`',
      // What the files hold.
      "SELECT count(), uniqExact(identity_name), sum(id) FROM file('out/credentials/**/*.parquet', Parquet)",
    ])
    expect(results[2]).toEqual(results[3])
    return Number((results[2] as unknown[][])[0]![0])
  }
  for (const [change, rows] of [
    ['a run', ROWS],
    ['redo', ROWS],
    ['forget', ROWS - 1],
    ['compact', ROWS - 1],
    ['prune', ROWS - Math.ceil(ROWS / 3)],
  ] as const) {
    await CHANGES[change]!(world)
    expect(await counted(), change).toBe(rows)
  }
})
