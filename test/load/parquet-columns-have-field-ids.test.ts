import { parquetMetadata } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import { parquetFooter } from '../../src/load/encode/parquet/footer.ts'
import {
  allColumns,
  type ColumnSpec,
  columnsOf,
  FACT_COLUMNS,
  fieldId,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
} from '../../src/rows/index.ts'

const credentials = columnsOf({
  extract: { resource: 'credentials', include: [...OPTIONAL_FIELDS] },
  transform: {
    columns: [...allColumns('credentials', [...OPTIONAL_FIELDS]), ...KNOWN_EXTRAS, ...FACT_COLUMNS].map(
      ({ name }) => name,
    ),
    extraColumns: KNOWN_EXTRAS,
  },
})
const reports = allColumns('reports', [])
const feed = allColumns('feed', [])
const own: ColumnSpec = { name: 'severity', type: 'text', nullable: true, meaning: '' }

/** Names and ids in the footer; elements of lists by the name of their column. */
function idsOf(columns: readonly ColumnSpec[], timestampUnit: 'MICROS' | 'MILLIS') {
  const footer = parquetFooter(
    { columns, codec: 'SNAPPY', timestampUnit, createdBy: 'test', fileMetadata: {} },
    [],
  )
  const { schema } = parquetMetadata(new Uint8Array([...Buffer.from('PAR1'), ...footer]).buffer)
  const ids: Record<string, number | undefined> = {}
  let column = ''
  for (const { name, field_id } of schema.slice(1)) {
    if (name === 'list') expect(field_id).toBeUndefined()
    else if (name === 'element') ids[`${column} elements`] = field_id
    else {
      column = name
      ids[name] = field_id
    }
  }
  return ids
}

/** The ids of released files: none ever changes, or is given to another column. docs/file-formats.md promises it. */
const PROMISED: Readonly<Record<string, number>> = {
  id: 1, domain: 2, identity_name: 3, hash: 4, hash_type: 5, imported_at: 6, known_password_id: 7, source_id: 8,
  source_name: 9, source_description_en: 10, source_description_fr: 11, source_is_alert_enabled: 12,
  source_breached_at: 13, source_leaked_at: 14, query_type: 15, query_value: 16, auth_domains: 17,
  'auth_domains elements': 1017, urls: 18, 'urls elements': 1018, event_uid: 19, credential_hash: 20, source_pii_tags: 21,
  'source_pii_tags elements': 1021, source_url: 22, secret_kind: 23, secret_meets_policy: 24,
  format_type: 101, title: 102, subtitle: 103, summary: 104, content: 105, tags: 106, 'tags elements': 1106,
  highlights: 107, 'highlights elements': 1107, related_activity_uids: 108, 'related_activity_uids elements': 1108,
  prompt_preset_uid: 109, created_at: 110, published_at: 111, updated_at: 112, reading_time: 113, tenant_id: 114,
  organization_id: 115, remediated_at: 25, ignored_at: 26,
} // biome-ignore format: a table

describe.each(['MICROS', 'MILLIS'] as const)('field ids, timestamps in %s', (unit) => {
  it('are on every column and on the elements of lists, as they are promised', () => {
    const found = { ...idsOf(credentials, unit), ...idsOf(reports, unit), ...idsOf(feed, unit) }
    expect(found).toEqual(PROMISED)
  })

  it('are derived from the name if only a pipeline file defines the column', () => {
    expect(idsOf([own], unit)).toEqual({ severity: 1_000_000 + (SEVERITY_CRC % 2_000_000_000) })
  })
})

// `printf severity | gzip -c | tail -c8 | od -An -tu4 -N4`
const SEVERITY_CRC = 4_133_540_203

it('never collide with those of Spillway or of Iceberg', () => {
  for (const name of ['severity', 'zz', 'constructor']) {
    expect(fieldId(name)).toBeGreaterThanOrEqual(1_000_000)
    // Iceberg reserves the numbers above.
    expect(fieldId(name)).toBeLessThan(2_147_483_447)
  }
})
