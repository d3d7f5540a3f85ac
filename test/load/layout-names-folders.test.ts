import { describe, expect, it } from 'vitest'
import {
  nameQuery,
  type PartitionBy,
  parseInstant,
  partition,
  type Query,
  queryLabel,
  type Window,
} from '../../src/core/index.ts'
import { folderOf, ownsFolder, partOf } from '../../src/load/index.ts'
import { shardPath } from '../../src/load/layout.ts'

const at = (text: string): number => parseInstant(text) ?? Number.NaN
const january = { from: at('2024-01-01'), until: at('2024-02-01') }
const acme: Query = { type: 'domain', fqdn: 'acme.com' }
const MORNING = '/import_window=2024-01-01T060000Z'
const EMAIL = '/query=email.a%2Fb@acme.com/import_window=all'

// Names of queries: `test/core/partition-keys`.
it.each<[Query, Window | null, PartitionBy[], string]>([
  [acme, january, ['query', 'window'], '/query=domain.acme.com/import_window=2024-01-01'],
  [acme, january, ['window', 'query'], '/query=domain.acme.com/import_window=2024-01-01'],
  [acme, january, ['window'], '/import_window=2024-01-01'],
  [acme, january, [], ''],
  [acme, { from: at('2024-01-01T06:00:00Z'), until: at('2024-02-01') }, ['window'], MORNING],
  [{ type: 'email', email: 'a/b@acme.com' }, null, ['query', 'window'], EMAIL],
])('the folder of %j in %j by %j is credentials%s', (query, window, by, folder) => {
  const named = nameQuery(query, queryLabel(query))
  expect(folderOf('credentials', partition(named, window), by)).toBe(`credentials${folder}`)
  expect(ownsFolder('credentials', by)).toBe(by.length === 2)
})

describe('the names of shards', () => {
  it('contain their number in the folder, which is parsed back', () => {
    for (const part of [0, 12, 99_999, 100_000, 1_234_567]) {
      for (const extension of ['.parquet', '.csv', '.csv.gz']) {
        const path = shardPath('credentials', part, extension)
        expect(path).toMatch(/^credentials\/part-\d{5,}\./)
        expect(partOf(path.slice('credentials/'.length))).toBe(part)
      }
    }
    expect(shardPath('credentials', 7, '.parquet')).toBe('credentials/part-00007.parquet')
  })

  it.each([
    ...['part-1.csv', 'part-00001.txt', 'xpart-00001.csv', 'part-00001.csv.tmp', '_part-00001.csv'],
    ...['part-0000a.csv', ''],
  ])('are not %j', (name) => {
    expect(partOf(name)).toBeNull()
  })
})
