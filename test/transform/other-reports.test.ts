import { expect, test } from 'vitest'
import { createDecoder } from '../../src/transform/index.ts'
import { decodeSettings, pageContext } from './plans.ts'

const REPORT = { id: 2, format_type: 'markdown', title: 'Quarry' }
const requested = pageContext({ query: { type: 'report', id: 2 } })
const decode = (report: object, context = requested) =>
  createDecoder(decodeSettings({ resource: 'reports' }))(Buffer.from(JSON.stringify({ report })), context)

test('a report with another id than the requested one is an error, also if it breaks the schema as well', () => {
  expect(decode(REPORT).rows).toBe(1)
  for (const wrong of [
    { ...REPORT, id: 7 },
    { ...REPORT, id: 7, title: null },
  ]) {
    expect(() => decode(wrong)).toThrow(expect.objectContaining({ kind: 'data' }))
    expect(() => decode(wrong)).toThrow('another report than the requested one')
  }
})

test('a report that the list repeats is exported once', () => {
  const list = createDecoder(decodeSettings({ resource: 'reports' }))
  const page = (ids: readonly number[]) =>
    Buffer.from(JSON.stringify({ items: ids.map((id) => ({ ...REPORT, id })), next: 'more' }))
  const first = list(page([1, 2, 2]), pageContext({ query: { type: 'reports' } }))
  expect(first).toMatchObject({ rows: 2, repeated: 1 })
  const second = list(page([2, 3]), pageContext({ query: { type: 'reports' }, recent: [first.ids] }))
  expect(second).toMatchObject({ rows: 1, repeated: 1 })
})
