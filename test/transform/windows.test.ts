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

const idsIn = (...ids: readonly number[]) => ({
  rows: new Int32Array(new BigInt64Array(ids.map(BigInt)).buffer),
  rejected: new Int32Array(0),
})

test('a restarted chain leaves out the rows it had, and rows outside its own range', () => {
  const since = { ...twoDays, since: at(FIRST_OWN), known: [idsIn(1)] }
  expect(ids(since, 'asc', FIRST_OWN, FIRST_OWN, LAST_OWN, AFTER_OWN, UNTIL)).toEqual([2, 3])
  const back = { ...twoDays, since: at(LAST_OWN), known: [idsIn(1)] }
  expect(ids(back, 'desc', LAST_OWN, LAST_OWN, FIRST_OWN, BEFORE_OWN, FROM)).toEqual([2, 3])
})

test('a restarted chain drops exactly the rows it had, which are neither repeated nor late', () => {
  const since = pageContext({ since: at(INSIDE), known: [idsIn(1, 2), idsIn(99)] })
  const later = '2024-07-15T12:00:00.000002Z'
  const earlier = '2024-07-15T12:00:00Z'
  expect(ids(since, 'asc', INSIDE, later, INSIDE, later)).toEqual([3, 4])
  expect(ids(since, 'desc', INSIDE, earlier, INSIDE, earlier)).toEqual([3, 4])
  expect(decode(credentialsAt(later, INSIDE, INSIDE, later), {}, since)).toMatchObject({
    repeated: 0,
    span: { first: at(INSIDE), last: at(later), late: 0 },
  })
  expect(() => ids(since, 'asc', earlier)).toThrow(expect.objectContaining({ kind: 'data' }))
  expect(() => ids(since, 'desc', later)).toThrow(expect.objectContaining({ kind: 'data' }))
})

test('a broken item that a restarted chain had is left out', () => {
  const refused = { rows: new Int32Array(0), rejected: idsIn(7).rows }
  const broken = credential({ id: 7, imported_at: INSIDE, identity_name: null })
  const page = decode([broken], {}, pageContext({ since: at(INSIDE), known: [refused] }))
  expect(page).toMatchObject({ quarantined: [], rows: 0, repeated: 0 })
})

test('the span says how late rows came, and a repeated one is not late', () => {
  const [first, second] = credentialsAt(FROM, INSIDE)
  const between = at(INSIDE) - at(FROM)
  expect(decode([first, second, first]).span).toEqual({ first: at(FROM), last: at(INSIDE), late: 0 })
  const late = { first: at(FROM), last: at(INSIDE), late: between }
  expect(decode(credentialsAt(INSIDE, FROM, INSIDE)).span).toEqual(late)
  const back = { first: at(INSIDE), last: at(FROM), late: between }
  expect(decode(credentialsAt(FROM, INSIDE), { order: 'desc' }).span).toEqual(back)
  expect(decode([]).span).toBeNull()
})
