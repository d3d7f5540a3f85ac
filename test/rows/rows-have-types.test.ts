import { expect, it } from 'vitest'
import {
  allColumns,
  type ColumnType,
  FACT_COLUMNS,
  fieldId,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
} from '../../src/rows/index.ts'

const TYPES: Record<string, ColumnType> = {
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

it('the columns have these types, and there are no others', () => {
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
