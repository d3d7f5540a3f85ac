import { describe, expect, it } from 'vitest'
import { type PartitionBy, parseInstant, partition, type Query, queryLabel } from '../../src/core/index.ts'
import { folderOf, ownsFolder, partOf } from '../../src/load/index.ts'
import { sealedPath, shardPath } from '../../src/load/layout.ts'
import { nameQuery } from '../../src/pipeline/index.ts'

const at = (text: string): number => parseInstant(text) ?? Number.NaN
const january = { from: at('2024-01-01'), until: at('2024-02-01') }
const acme: Query = { type: 'domain', fqdn: 'acme.com' }
const named = (query: Query) => nameQuery(query, queryLabel(query))

describe('the folder of a partition', () => {
  it.each<[PartitionBy[], string]>([
    [['query', 'window'], 'credentials/query=domain.acme.com/import_window=2024-01-01'],
    [['window', 'query'], 'credentials/query=domain.acme.com/import_window=2024-01-01'],
    [['query'], 'credentials/query=domain.acme.com'],
    [['window'], 'credentials/import_window=2024-01-01'],
    [[], 'credentials'],
  ])('by %j is %s', (by, folder) => {
    expect(folderOf('credentials', partition(named(acme), january), by)).toBe(folder)
    expect(ownsFolder('credentials', by)).toBe(by.length === 2)
  })

  it.each<[Query, string]>([
    [{ type: 'email', email: 'a/b@acme.com' }, 'credentials/query=email.a%2Fb@acme.com/import_window=all'],
    [{ type: 'keyword', keyword: '..' }, 'credentials/query=keyword.../import_window=all'],
    [
      { type: 'secret', secretEnv: 'LEAKED_PASSWORD' },
      'credentials/query=secret.LEAKED_PASSWORD/import_window=all',
    ],
  ])('of %j is %s', (query, folder) => {
    expect(folderOf('credentials', partition(named(query), null), ['query', 'window'])).toBe(folder)
  })

  it('has the time if a window does not begin at midnight', () => {
    const window = { from: at('2024-01-01T06:00:00Z'), until: at('2024-01-01T12:00:00Z') }
    expect(folderOf('credentials', partition(named(acme), window), ['window'])).toBe(
      'credentials/import_window=2024-01-01T060000Z',
    )
  })

  it('of reports is the same for all', () => {
    const report = partition(named({ type: 'report', id: 7 }), null)
    expect(folderOf('reports', report, ['query', 'window'])).toBe('reports')
    expect(ownsFolder('reports', ['query', 'window'])).toBe(false)
  })
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

  it('are hidden from readers of the data set until they are published', () => {
    expect(sealedPath(3, '0123456789abcdef'.repeat(4))).toBe('_state/sealed/3.0123456789abcdef')
  })
})
