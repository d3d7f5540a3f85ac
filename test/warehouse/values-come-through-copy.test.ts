import { expect, it } from 'vitest'
import { pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { columnOf, loadValues, postgresAt, tableWith } from './load-values.ts'

const TABLE = tableWith([
  columnOf('id', 'int64'),
  columnOf('word'),
  columnOf('flag', 'boolean'),
  columnOf('at', 'timestamp'),
  columnOf('list', 'list'),
])
const NUL = 'chr(0)'

it('PostgreSQL stores every value unchanged, except that NUL becomes U+FFFD, counted by row', async () => {
  const url = await newDatabase()
  const warehouse = await postgresAt(url)
  const rows = [
    `1::BIGINT, 'a"b,c' || chr(10) || 'd\\e', true, '0001-01-01 00:00:00.000001+00'::TIMESTAMPTZ,
      ['x"y', 'a\\b', NULL, '', 'n' || ${NUL}, 'NULL', 'a,b{}', '\\.']`,
    `9223372036854775807, '', false, '9999-12-31 23:59:59.999999+00'::TIMESTAMPTZ, []`,
    `3, ${NUL} || 'ä' || ${NUL}, NULL, NULL, ['']`,
    'NULL, NULL, NULL, NULL, NULL',
  ]
  try {
    const done = await loadValues(warehouse, TABLE, { 'p"q': { rows } })
    expect(done).toMatchObject({ shards: { loaded: 1 }, rows: 4, replacedTexts: 2 })
  } finally {
    await warehouse.close()
  }
  expect(await pgRows(url, 'select loaded_at from spillway_loads')).toEqual([
    { loaded_at: new Date('2024-07-01T00:00:00.123Z') },
  ])
  const found = await pgRows(
    url,
    'select id, word, flag, at::text, list, spillway_shard as p from credentials',
  )
  expect(found).toEqual([
    {
      id: '1',
      word: 'a"b,c\nd\\e',
      flag: true,
      at: '0001-01-01 00:00:00.000001+00',
      list: ['x"y', 'a\\b', null, '', 'n\uFFFD', 'NULL', 'a,b{}', '\\.'],
      p: 'p"q',
    },
    {
      id: '9223372036854775807',
      word: '',
      flag: false,
      at: '9999-12-31 23:59:59.999999+00',
      list: [],
      p: 'p"q',
    },
    { id: '3', word: '\uFFFDä\uFFFD', flag: null, at: null, list: [''], p: 'p"q' },
    { id: null, word: null, flag: null, at: null, list: null, p: 'p"q' },
  ])
})
