import { expect, it } from 'vitest'
import { pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { columnOf, loadInto, tableWith } from './load-values.ts'

const TABLE = tableWith([
  columnOf('id', 'int64'),
  columnOf('word'),
  columnOf('flag', 'boolean'),
  columnOf('at', 'timestamp'),
  columnOf('list', 'list'),
])
const NUL = 'chr(0)'
const LIST = ['x"y', 'a\\b', null, '', 'n\uFFFD', 'NULL', 'a,b{}', '\\.']

it('PostgreSQL stores every value unchanged, except that NUL becomes U+FFFD, counted by row', async () => {
  const url = await newDatabase()
  const rows = [
    `1::BIGINT, 'a"b,c' || chr(10) || 'd\\e', true, '0001-01-01 00:00:00.000001+00'::TIMESTAMPTZ,
      ['x"y', 'a\\b', NULL, '', 'n' || ${NUL}, 'NULL', 'a,b{}', '\\.']`,
    `9223372036854775807, '', false, '9999-12-31 23:59:59.999999+00'::TIMESTAMPTZ, []`,
    `3, ${NUL} || 'ä' || ${NUL}, NULL, NULL, ['']`,
    'NULL, NULL, NULL, NULL, NULL',
  ]
  const done = await loadInto(url, TABLE, { 'p"q': rows })
  expect(done).toMatchObject({ shards: { loaded: 1 }, rows: 4, replacedTexts: 2 })
  expect(await pgRows(url, 'select loaded_at from spillway_loads')).toEqual([
    { loaded_at: new Date('2024-07-01T00:00:00.123Z') },
  ])
  const found = await pgRows(
    url,
    'select array[id::text, word, flag::text, at::text] as row, list from credentials',
  )
  expect(found.map(({ row, list }) => [...(row as string[]), list])).toEqual([
    ['1', 'a"b,c\nd\\e', 'true', '0001-01-01 00:00:00.000001+00', LIST],
    ['9223372036854775807', '', 'false', '9999-12-31 23:59:59.999999+00', []],
    ['3', '\uFFFDä\uFFFD', null, null, ['']],
    [null, null, null, null, null],
  ])
  const shards = await pgRows(url, 'select distinct spillway_shard as p from credentials')
  expect(shards).toEqual([{ p: 'p"q' }])
})
