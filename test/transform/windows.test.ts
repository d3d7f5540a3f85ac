import { expect, test } from 'vitest'
import { type PageContext, parseInstant } from '../../src/core/index.ts'
import { credential, credentialsAt, decode } from './credentials.ts'
import { pageContext, rowsOf } from './plans.ts'

const FROM = '2024-07-01T00:00:00Z'
const INSIDE = '2024-07-15T12:00:00.000001Z'
const UNTIL = '2024-08-01T00:00:00Z'
const at = (text: string): number => parseInstant(text)!
const july = pageContext({ window: { from: at(FROM), until: at(UNTIL) } })

function ids(
  context: PageContext,
  order: 'asc' | 'desc',
  ...instants: readonly string[]
): readonly unknown[] {
  return rowsOf(decode(credentialsAt(...instants), { order }, context)).map((row) => row.id)
}

test('a window holds its first instant, and leaves the one at its end to the next', () => {
  expect(ids(july, 'asc', FROM, INSIDE, UNTIL)).toEqual([1, 2])
  expect(ids(july, 'desc', UNTIL, INSIDE, FROM)).toEqual([2, 3])
})

test('a row that nobody asked for means that the service ignored the filter', () => {
  for (const instant of ['2024-06-30T23:59:59.999999Z', '2024-08-01T00:00:00.000001Z']) {
    expect(() => ids(july, 'asc', instant)).toThrow(expect.objectContaining({ kind: 'data' }))
  }
})

test('without a window everything belongs', () => {
  expect(ids(pageContext(), 'asc', '1999-01-01', '2200-01-01')).toEqual([1, 2])
})

test('a restarted chain drops what it had at its last position, and only that', () => {
  const since = pageContext({ since: { at: at(INSIDE), ids: [1, 2, 99] } })
  const later = '2024-07-15T12:00:00.000002Z'
  const earlier = '2024-07-15T12:00:00Z'
  expect(ids(since, 'asc', INSIDE, INSIDE, INSIDE, later)).toEqual([3, 4])
  expect(ids(since, 'desc', INSIDE, INSIDE, INSIDE, earlier)).toEqual([3, 4])
  expect(() => ids(since, 'asc', earlier)).toThrow(expect.objectContaining({ kind: 'data' }))
  expect(() => ids(since, 'desc', later)).toThrow(expect.objectContaining({ kind: 'data' }))
})

test('the span covers all valid items, those that are dropped too', () => {
  const span = (order: 'asc' | 'desc', ...instants: string[]) =>
    decode(credentialsAt(...instants), { order }, july).span
  expect(span('asc', FROM, INSIDE, UNTIL)).toEqual({ first: at(FROM), last: at(UNTIL), lastIds: [3] })
  expect(span('desc', INSIDE, FROM, FROM)).toEqual({ first: at(INSIDE), last: at(FROM), lastIds: [2, 3] })
})

test('items out of order have no span', () => {
  expect(decode(credentialsAt(INSIDE, FROM, INSIDE)).span).toBeNull()
  expect(decode(credentialsAt(FROM, INSIDE), { order: 'desc' }).span).toBeNull()
})

test('up to a thousand ids at the last instant are remembered', () => {
  const same = (count: number) => Array.from({ length: count }, (_, id) => credential({ id }))
  expect(decode(same(1000)).span!.lastIds).toEqual(Array.from({ length: 1000 }, (_, id) => id))
  expect(decode(same(1001)).span!.lastIds).toBeNull()
  const later = credential({ id: 7000, imported_at: '2025-01-01' })
  expect(decode([...same(1500), later]).span!.lastIds).toEqual([7000])
})
