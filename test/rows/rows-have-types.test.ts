import { expect, expectTypeOf, it } from 'vitest'
import {
  allColumns,
  batchColumn,
  type ColumnType,
  type CredentialColumn,
  column,
  FACT_COLUMNS,
  fieldId,
  type IntegerColumn,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
  type RowBatch,
  type RowValue,
  rowsOf,
} from '../../src/rows/index.ts'

// 2024-07-22T19:25:52.893439Z, and a microsecond before 1970.
const [AT, EARLY] = [1_721_676_352_893_439, -1]
const batch: RowBatch<'id' | 'identity_name' | 'imported_at' | 'source_leaked_at' | 'auth_domains'> = {
  rows: 2,
  columns: [
    batchColumn('id', 'int64', [1, 2n ** 60n]),
    batchColumn('identity_name', 'text', ['a@x.test', 'b@x.test']),
    batchColumn('imported_at', 'timestamp', [AT, EARLY]),
    batchColumn('source_leaked_at', 'timestamp', [null, AT]),
    batchColumn('auth_domains', 'list', [['x.test'], null]),
  ],
}

it('rows have the types of their columns', () => {
  const rows = [...rowsOf(batch)]
  expectTypeOf(rows).toEqualTypeOf<
    {
      id: number | bigint
      identity_name: string
      imported_at: number | bigint
      source_leaked_at: number | bigint | null
      auth_domains: readonly (string | null)[] | null
    }[]
  >()
  expect(rows[1]).toEqual({
    id: 2n ** 60n,
    identity_name: 'b@x.test',
    imported_at: EARLY,
    source_leaked_at: AT,
    auth_domains: null,
  })
})

it('times are microseconds, or dates rounded down to the millisecond', () => {
  const dates = [...rowsOf(batch, { times: 'date' })]
  expectTypeOf(dates[0]!.source_leaked_at).toEqualTypeOf<Date | null>()
  expect(dates.map(({ imported_at, source_leaked_at }) => [imported_at, source_leaked_at])).toEqual([
    [new Date('2024-07-22T19:25:52.893Z'), null],
    [new Date('1969-12-31T23:59:59.999Z'), new Date('2024-07-22T19:25:52.893Z')],
  ])
  const unnamed: RowBatch = batch
  const [row] = rowsOf(unnamed, { times: 'date' })
  expectTypeOf(row!).toEqualTypeOf<Record<string, RowValue | Date>>()
  expect(row).toMatchObject({ id: 1, imported_at: new Date('2024-07-22T19:25:52.893Z') })
})

it('a column is found by its name, with its type in credentials', () => {
  expectTypeOf(column(batch, 'id')).toEqualTypeOf<({ readonly name: 'id' } & IntegerColumn) | null>()
  expect(column(batch, 'identity_name')?.values[1]).toBe('b@x.test')
  expect(column(batch, 'severity')).toBeNull()
})

const TYPES: Record<CredentialColumn, ColumnType> = {
  id: 'int64',
  domain: 'text',
  identity_name: 'text',
  hash: 'text',
  hash_type: 'text',
  imported_at: 'timestamp',
  source_id: 'text',
  source_name: 'text',
  source_description_en: 'text',
  source_description_fr: 'text',
  source_is_alert_enabled: 'boolean',
  source_breached_at: 'timestamp',
  source_leaked_at: 'timestamp',
  query_type: 'text',
  query_value: 'text',
  known_password_id: 'text',
  auth_domains: 'list',
  urls: 'list',
  event_uid: 'text',
  credential_hash: 'text',
  source_url: 'text',
  source_pii_tags: 'list',
  secret_kind: 'text',
  secret_meets_policy: 'boolean',
  remediated_at: 'timestamp',
  ignored_at: 'timestamp',
}

it('the types cover exactly the columns of credentials', () => {
  const columns = [...allColumns('credentials', [...OPTIONAL_FIELDS]), ...allColumns('feed', [])]
  const extras = KNOWN_EXTRAS.map(({ name, type }) => [name, type === 'strings' ? 'list' : 'text'])
  const own = [...columns, ...FACT_COLUMNS].map(({ name, type }) => [name, type])
  expect(TYPES).toEqual(Object.fromEntries([...own, ...extras]))
})

it('each column has a field_id of its own, and no two share one', () => {
  const ids = Object.keys(TYPES)
    .map(fieldId)
    .sort((a, b) => a - b)
  expect(ids).toEqual(Array.from({ length: ids.length }, (_, i) => i + 1))
})
