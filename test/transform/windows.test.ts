import { expect, test } from 'vitest'
import { parseInstant } from '../../src/core/index.ts'
import type { PageContext } from '../../src/rows/index.ts'
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

test('a window includes its first instant, and excludes its end', () => {
  expect(ids(july, 'asc', FROM, INSIDE, UNTIL)).toEqual([1, 2])
  expect(ids(july, 'desc', UNTIL, INSIDE, FROM)).toEqual([2, 3])
})

test('without a window every row is exported', () => {
  expect(ids(pageContext(), 'asc', '1999-01-01', '2200-01-01')).toEqual([1, 2])
})

/** The requested range is July; two days of it are the chain's own. */
const OWN = { from: at('2024-07-10T00:00:00Z'), until: at('2024-07-12T00:00:00Z') }
const twoDays = { ...july, own: OWN }
const BEFORE_OWN = '2024-07-09T23:59:59.999999Z'
const FIRST_OWN = '2024-07-10T00:00:00Z'
const LAST_OWN = '2024-07-11T23:59:59.999999Z'
const AFTER_OWN = '2024-07-12T00:00:00Z'

test('requested rows outside the chain’s own range are left out', () => {
  const page = [FROM, BEFORE_OWN, FIRST_OWN, LAST_OWN, AFTER_OWN, UNTIL]
  expect(ids(twoDays, 'asc', ...page)).toEqual([3, 4])
  expect(ids(twoDays, 'desc', ...page.toReversed())).toEqual([3, 4])
  expect(decode(credentialsAt(...page), {}, twoDays)).toMatchObject({
    rows: 2,
    items: 6,
    repeated: 0,
    times: Float64Array.of(at(FIRST_OWN), at(LAST_OWN)),
    span: { first: at(FROM), last: at(UNTIL) },
  })
})

test('a row that was left out is new when it is repeated inside the chain’s own range', () => {
  const { ids: known } = decode(credentialsAt(BEFORE_OWN, FIRST_OWN), {}, twoDays)
  const again = decode(credentialsAt(BEFORE_OWN, FIRST_OWN), {}, { ...july, recent: [known] })
  expect(rowsOf(again).map(({ id }) => id)).toEqual([1])
  expect(again.repeated).toBe(1)
})

test('invalid items are left out where rows would be, and kept if their time cannot be parsed', () => {
  const broken = (id: number, imported_at: unknown) => credential({ id, imported_at, identity_name: null })
  const instants = [FROM, BEFORE_OWN, FIRST_OWN, LAST_OWN, AFTER_OWN, UNTIL, 'soon', null]
  const items = instants.map((imported_at, id) => broken(id, imported_at))
  const refused = (context: PageContext) => decode(items, {}, context).quarantined.map(({ id }) => id)
  expect(refused(twoDays)).toEqual([2, 3, 6, 7])
  // The end of a window belongs to the next as well.
  expect(refused(july)).toEqual([0, 1, 2, 3, 4, 6, 7])
  expect(refused(pageContext())).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
})

test('an unrequested row is an error, whatever the chain’s own range', () => {
  const strangers = ['2024-06-30T23:59:59.999999Z', '2024-08-01T00:00:00.000001Z']
  const wide = { from: at('2024-01-01T00:00:00Z'), until: at('2025-01-01T00:00:00Z') }
  for (const own of [OWN, wide, null]) {
    for (const stranger of strangers) {
      for (const order of ['asc', 'desc'] as const) {
        expect(() => ids({ ...july, own }, order, FIRST_OWN, stranger)).toThrow(
          expect.objectContaining({
            kind: 'data',
            message: expect.stringContaining('Item 2 of the response'),
          }),
        )
      }
    }
  }
})

test('a restarted chain leaves out the rows it had, and rows outside its own range', () => {
  const since = { ...twoDays, since: { at: at(FIRST_OWN), ids: [1] } }
  expect(ids(since, 'asc', FIRST_OWN, FIRST_OWN, LAST_OWN, AFTER_OWN, UNTIL)).toEqual([2, 3])
  const back = { ...twoDays, since: { at: at(LAST_OWN), ids: [1] } }
  expect(ids(back, 'desc', LAST_OWN, LAST_OWN, FIRST_OWN, BEFORE_OWN, FROM)).toEqual([2, 3])
})

test('a restarted chain drops exactly the rows it had at its resume position', () => {
  const since = pageContext({ since: { at: at(INSIDE), ids: [1, 2, 99] } })
  const later = '2024-07-15T12:00:00.000002Z'
  const earlier = '2024-07-15T12:00:00Z'
  expect(ids(since, 'asc', INSIDE, INSIDE, INSIDE, later)).toEqual([3, 4])
  expect(ids(since, 'desc', INSIDE, INSIDE, INSIDE, earlier)).toEqual([3, 4])
  expect(() => ids(since, 'asc', earlier)).toThrow(expect.objectContaining({ kind: 'data' }))
  expect(() => ids(since, 'desc', later)).toThrow(expect.objectContaining({ kind: 'data' }))
})

test('the span covers all valid items, dropped ones too', () => {
  const span = (order: 'asc' | 'desc', ...instants: string[]) =>
    decode(credentialsAt(...instants), { order }, july).span
  expect(span('asc', FROM, INSIDE, UNTIL)).toEqual({ first: at(FROM), last: at(UNTIL), lastIds: [3] })
  expect(span('desc', INSIDE, FROM, FROM)).toEqual({ first: at(INSIDE), last: at(FROM), lastIds: [2, 3] })
})

test('items out of order have no span, and a repeated one is not out of order', () => {
  const [first, second] = credentialsAt(FROM, INSIDE)
  const span = { first: at(FROM), last: at(INSIDE), lastIds: [2] }
  expect(decode([first, second, first]).span).toEqual(span)
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
