import { expect, it } from 'vitest'
import type { ColumnSpec, ColumnType } from '../../src/core/index.ts'
import { PostgresWarehouse } from '../../src/warehouse/index.ts'
import { OWN_COLUMNS } from '../../src/warehouse/table/table.ts'
import { PASSWORD, pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'

const column = (name: string, type: ColumnType): ColumnSpec => ({ name, type, nullable: true, meaning: name })
const TABLE = {
  schema: null,
  name: 'credentials',
  resource: 'credentials' as const,
  columns: [
    column('id', 'int64'),
    column('word', 'text'),
    column('flag', 'boolean'),
    column('at', 'timestamp'),
    column('list', 'list'),
    ...OWN_COLUMNS,
  ],
}
const NUL = 'chr(0)'

it('PostgreSQL stores every value unchanged, except that NUL becomes U+FFFD, counted by row', async () => {
  process.env.PGPASSWORD = PASSWORD
  const url = await newDatabase()
  const warehouse = await PostgresWarehouse.connect(url, url, {
    stop: new AbortController().signal,
    onWait: () => {},
    threads: null,
  })
  const select = `SELECT * FROM (VALUES
    (1::BIGINT, 'a"b,c' || chr(10) || 'd\\e', true, '0001-01-01 00:00:00.000001+00'::TIMESTAMPTZ,
      ['x"y', 'a\\b', NULL, '', 'n' || ${NUL}, 'NULL', 'a,b{}', '\\.'], 'd', 'p'),
    (9223372036854775807, '', false, '9999-12-31 23:59:59.999999+00'::TIMESTAMPTZ, [], 'd', 'p'),
    (3, ${NUL} || 'ä' || ${NUL}, NULL, NULL, [''], 'd', 'p"q'),
    (NULL, NULL, NULL, NULL, NULL, 'd', 'p'))`
  try {
    const table = await warehouse.hold(TABLE)
    await warehouse.prepare(table, { evolve: false })
    const shard = { path: 'x', sha256: 'y', rows: 4, bytes: 1, partitions: ['p'], imported_at: null }
    const done = await warehouse.load(
      { shards: [shard], stale: [], forgotten: [] },
      {
        dataSet: { id: 'd', pipeline: 'trial' },
        table,
        mode: 'append',
        loadedAt: '2024-07-01T00:00:00.123Z',
        rowsOf: () => ({ setup: [], select }),
      },
    )
    expect(done).toEqual({ rows: 4, replacedTexts: 2 })
    expect(await warehouse.loaded('d', table, null)).toEqual([
      { shard: 'x', sha256: 'y', rows: 4, partitions: ['p'] },
    ])
  } finally {
    await warehouse.close()
  }
  expect(await pgRows(url, 'select loaded_at from spillway_loads')).toEqual([
    { loaded_at: new Date('2024-07-01T00:00:00.123Z') },
  ])
  const rows = await pgRows(
    url,
    'select id, word, flag, at::text, list, spillway_partition as p from credentials',
  )
  expect(rows).toEqual([
    {
      id: '1',
      word: 'a"b,c\nd\\e',
      flag: true,
      at: '0001-01-01 00:00:00.000001+00',
      list: ['x"y', 'a\\b', null, '', 'n\uFFFD', 'NULL', 'a,b{}', '\\.'],
      p: 'p',
    },
    {
      id: '9223372036854775807',
      word: '',
      flag: false,
      at: '9999-12-31 23:59:59.999999+00',
      list: [],
      p: 'p',
    },
    { id: '3', word: '\uFFFDä\uFFFD', flag: null, at: null, list: [''], p: 'p"q' },
    { id: null, word: null, flag: null, at: null, list: null, p: 'p' },
  ])
})
