import { readFile } from 'node:fs/promises'
import { parquetMetadata } from 'hyparquet'
import { describe, expect, it } from 'vitest'
import {
  allColumns,
  type ColumnSpec,
  columnsOf,
  elementFieldId,
  fieldId,
  KNOWN_EXTRAS,
  OPTIONAL_FIELDS,
} from '../../src/core/index.ts'
import { parquetFooter } from '../../src/load/encode/parquet/footer.ts'

const credentials = columnsOf({
  extract: { resource: 'credentials', include: [...OPTIONAL_FIELDS] },
  transform: {
    columns: [...allColumns('credentials', [...OPTIONAL_FIELDS]), ...KNOWN_EXTRAS].map(({ name }) => name),
    extraColumns: KNOWN_EXTRAS,
  },
})
const reports = allColumns('reports', [])
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

/** The ids in the page on file formats. */
async function promised(): Promise<Record<string, number>> {
  const page = await readFile(new URL('../../docs/file-formats.md', import.meta.url), 'utf8')
  const rows = page.matchAll(/`(\w+)` (\d+)(?: \(elements (\d+)\))?[,.]/g)
  return Object.fromEntries(
    [...rows].flatMap(([, name, id, elements]) => [
      [name!, Number(id)],
      ...(elements === undefined ? [] : [[`${name} elements`, Number(elements)] as const]),
    ]),
  )
}

describe.each(['MICROS', 'MILLIS'] as const)('field ids, timestamps in %s', (unit) => {
  it('are on every column and on the elements of lists, as the documentation lists them', async () => {
    const table = await promised()
    const found = { ...idsOf(credentials, unit), ...idsOf(reports, unit) }
    expect(found).toEqual(table)
    expect(credentials).toHaveLength(22)
    expect(new Set(Object.values(table)).size).toBe(Object.keys(table).length)
  })

  it('are derived from the name if only a pipeline file defines the column', () => {
    expect(idsOf([own], unit)).toEqual({ severity: 1_000_000 + (SEVERITY_CRC % 2_000_000_000) })
  })
})

// `printf severity | gzip -c | tail -c8 | od -An -tu4 -N4`
const SEVERITY_CRC = 4_133_540_203

it('never change', () => {
  // Users have files with these: a number may be added here, none changed.
  expect([fieldId('id'), fieldId('urls'), fieldId('source_url'), fieldId('organization_id')]).toEqual([
    1, 18, 22, 115,
  ])
  expect(elementFieldId('auth_domains')).toBe(1017)
  for (const name of ['severity', 'zz', 'constructor']) {
    expect(fieldId(name)).toBeGreaterThanOrEqual(1_000_000)
    // Iceberg reserves the numbers above.
    expect(fieldId(name)).toBeLessThan(2_147_483_447)
  }
})
