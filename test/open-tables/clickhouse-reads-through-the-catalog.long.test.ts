import { expect, it } from 'vitest'
import { parseInstant } from '../../src/core/index.ts'
import { compactDataSet, forgetPeople, pruneDataSet } from '../../src/data-set/index.ts'
import { ask } from './clickhouse/ask.ts'
import { startCatalog } from './rest-catalog.ts'
import { itemsOf, tableWorld } from './world.ts'

const ROWS = 800
const TOKEN = 'a-token-of-the-catalog'

/** Credentials over the first three months of a year. */
function items() {
  return itemsOf(...Array.from({ length: ROWS }, (_, i) => `2024-0${(i % 3) + 1}-${10 + (i % 18)}`))
}

it('ClickHouse reads through the catalog what the data set holds, after each kind of change', async () => {
  const catalog = await startCatalog()
  catalog.tokens = new Set([TOKEN])
  const world = await tableWorld(items(), {
    table_formats: ['iceberg'],
    shard_rows: 50,
    catalog: {
      uri: catalog.url,
      warehouse: 'lake',
      namespace: 'leaks',
      table: 'acme',
      token_env: 'CATALOG_TOKEN',
    },
  })
  world.env.CATALOG_TOKEN = TOKEN
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
  await world.run()
  expect(await counted()).toBe(ROWS)
  world.service.items = items().map((item) => ({ ...item, id: (item.id as number) + 10_000 }))
  await world.run({ redo: ['*'] })
  expect(await counted()).toBe(ROWS)
  const changing = { ...world.changing(), onShard: () => {} }
  await forgetPeople(
    await world.pipeline(),
    ['person-1@scatterholt.com', 'person-2@scatterholt.com'],
    changing,
  )
  expect(await counted()).toBe(ROWS - 2)
  world.load = { ...world.load, shard_rows: 1000 }
  await compactDataSet(await world.pipeline(), { ...changing, minShards: 2 })
  expect(await counted()).toBe(ROWS - 2)
  await pruneDataSet(await world.pipeline(), parseInstant('2024-02-15T00:00:00Z')!, changing)
  expect(await counted()).toBe(Math.floor(ROWS / 3) * 2)
})
