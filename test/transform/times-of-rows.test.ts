import fc from 'fast-check'
import { expect, test } from 'vitest'
import { int64, parseInstant, parseTimestamp } from '../../src/core/index.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { credential, credentialsAt, response } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

const USUAL = '2024-07-22T19:25:52.893439Z'
/** 2^53 - 1 and 2^53 + 1 microseconds, and the last of all. */
const LAST_EXACT = '2255-06-05T23:47:34.740991Z'
const BEYOND = '2255-06-05T23:47:34.740993Z'
const LAST = '9999-12-31T23:59:59.999999Z'
/** 2^53 + 1 microseconds before the epoch. */
const LONG_AGO = '1684-07-28T00:12:25.259007Z'
const LONG_BEFORE = parseInstant('1600-01-01')!

const paths = readersOf(decodeSettings())

test('quarantined and repeated items have no time', () => {
  const items = [
    credential({ id: 1, imported_at: USUAL }),
    credential({ id: 2, imported_at: BEYOND, identity_name: null }),
    credential({ id: 1, imported_at: LAST }),
    credential({ id: 3, imported_at: '1970-01-01T00:00:00Z' }),
  ]
  const page = createDecoder(decodeSettings())(response(items), pageContext())
  expect(page).toMatchObject({ rows: 2, repeated: 1, times: Float64Array.of(1_721_676_352_893_439, 0) })
})

test('times do not change after the decoder has read other pages', () => {
  const decode = createDecoder(decodeSettings())
  const far = decode(response(credentialsAt(BEYOND, LAST)), pageContext())
  const near = decode(response(credentialsAt(USUAL)), pageContext())
  decode(response(credentialsAt('1970-01-01', '1970-01-02', LONG_AGO)), pageContext())
  decode(response(credentialsAt('1970-01-01', '1970-01-02', '1970-01-03')), pageContext())
  expect(far.times).toEqual(BigInt64Array.of(2n ** 53n + 1n, 253_402_300_799_999_999n))
  expect(near.times).toEqual(Float64Array.of(1_721_676_352_893_439))
})

test('a page has them also without the column `imported_at`', () => {
  const columns = decodeSettings().columns.filter(({ name }) => name === 'id')
  const page = createDecoder(decodeSettings({ columns }))(response(credentialsAt(USUAL, LAST)), pageContext())
  expect(page.times).toEqual(BigInt64Array.from([USUAL, LAST].map((text) => BigInt(parseTimestamp(text)!))))
})

test('they equal the column, whatever the page and the chain’s own range', () => {
  const instant = fc.constantFrom(
    USUAL,
    USUAL,
    '2024-07-23',
    '1970-01-01',
    LAST_EXACT,
    BEYOND,
    LAST,
    LONG_AGO,
  )
  const bound = fc.constantFrom(LONG_BEFORE, 0, 1_721_676_352_893_439, Number.MAX_SAFE_INTEGER)
  const own = fc.option(fc.record({ from: bound, until: bound }))
  const found = { doubles: 0, far: 0 }
  fc.assert(
    fc.property(fc.array(instant, { maxLength: 12 }), own, (instants, own) => {
      const body = response(credentialsAt(...instants))
      const context = pageContext({ own })
      const exact = instants.map((text) => parseTimestamp(text)!)
      const kept = exact.filter((at) => own === null || (at >= own.from && at < own.until))
      const isFar = kept.some((at) => typeof at === 'bigint')
      for (const page of [paths.read(body, context), paths.plain(body, context)]) {
        if (page === null) continue
        expect(rowsOf(page).map((row) => row.imported_at)).toEqual(kept)
        expect(page.times).toBeInstanceOf(isFar ? BigInt64Array : Float64Array)
        expect(Array.from(page.times!, int64)).toEqual(kept)
        found[isFar ? 'far' : 'doubles']++
      }
    }),
    { numRuns: 400 },
  )
  expect(found.doubles).toBeGreaterThan(200)
  expect(found.far).toBeGreaterThan(50)
})
