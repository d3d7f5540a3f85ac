import { expect, test } from 'vitest'
import { createDecoder } from '../../src/transform/index.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

const PLAN = decodeSettings({ resource: 'reports' })
const ONE = pageContext({ query: { type: 'report', id: 12 } })
const ALL = pageContext({ query: { type: 'reports' } })

const REPORT = {
  id: 12,
  format_type: 'simple_summary',
  title: 'Infostealers in July',
  subtitle: '',
  summary: 'Short.',
  content: '# Long\n',
  tags: ['stealer', 'été'],
  highlights: [],
  related_activity_uids: null,
  prompt_preset_uid: 'preset-1',
  created_at: '2024-07-22T19:25:52.893439+00:00',
  published_at: '2024-07-23',
  updated_at: null,
  reading_time: 4,
  tenant_id: -0,
  organization_id: 7,
}

function decode(body: unknown, context = ALL) {
  return createDecoder(PLAN)(Buffer.from(JSON.stringify(body)), context)
}

test('pages of reports, with null for missing values', () => {
  const page = decode({
    items: [REPORT, { id: 13, title: 'Bare', format_type: 'other', score: 1 }],
    next: 'c',
  })
  expect(page).toMatchObject({ rows: 2, items: 2, next: 'c', unknownFields: { score: 1 } })
  const [whole, bare] = rowsOf(page)
  const times = { created_at: 1_721_676_352_893_439, published_at: 1_721_692_800_000_000 }
  expect(whole).toEqual({ ...REPORT, ...times, tenant_id: 0 })
  expect(bare).toMatchObject({
    id: 13,
    title: 'Bare',
    tags: null,
    content: null,
    created_at: null,
    tenant_id: null,
  })
})

test('an empty page has no record batch', () => {
  expect(decode({ items: [], next: 'c' })).toMatchObject({ recordBatch: null, rows: 0, next: 'c' })
})

test('a report that breaks the schema is quarantined', () => {
  const broken = {
    ...REPORT,
    id: '12',
    created_at: 'soon',
    secret_notes: 'sunflower-42',
    title: { a: 'sunflower-42' },
  }
  const page = decode({ items: [broken, REPORT] })
  expect(page).toMatchObject({ rows: 1, items: 2 })
  expect(page.quarantined).toMatchObject([
    { index: 0, id: null, item: { title: '[REDACTED]', secret_notes: '[REDACTED]', summary: 'Short.' } },
  ])
  expect(page.quarantined[0]!.issues.map(({ path }) => path)).toEqual(['id', 'title', 'created_at'])
})

test('a response of another shape is refused', () => {
  for (const body of [{ items: [] }, { report: null }, { report: 'x' }, []])
    expect(() => decode(body, ONE)).toThrow(expect.objectContaining({ kind: 'shape' }))
  expect(() => decode({ report: REPORT }, ALL)).toThrow(expect.objectContaining({ kind: 'shape' }))
})

test('a report with another id than the requested one is an error, also if it breaks the schema as well', () => {
  for (const wrong of [
    { ...REPORT, id: 7 },
    { ...REPORT, id: 7, title: null },
  ]) {
    expect(() => decode({ report: wrong }, ONE)).toThrow(
      expect.objectContaining({
        kind: 'data',
        message: expect.stringContaining('another report than the requested one'),
      }),
    )
  }
})

test('a report that the list repeats is exported once', () => {
  const page = (...ids: readonly number[]) => ({ items: ids.map((id) => ({ ...REPORT, id })), next: 'more' })
  const first = decode(page(1, 2, 2))
  expect(first).toMatchObject({ rows: 2, repeated: 1 })
  expect(decode(page(2, 3), { ...ALL, recent: [first.ids] })).toMatchObject({ rows: 1, repeated: 1 })
})
