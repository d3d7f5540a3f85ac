import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases } from '../support/thorough.ts'
import { agreement, isEqual } from './agreement.ts'
import { credential as ordinary, source } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext } from './plans.ts'

/** Bytes of texts that the item walker puts end to end. */
const RUN = 1 << 16
const LARGE = cases(60, 3)

test('large pages are read as by JSON.parse and the schema', () => {
  const { check } = agreement()
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(0, 0, 0.0001), (seed, wildness) => {
      check(seed, wildness, 3000)
    }),
    { numRuns: LARGE },
  )
})

test('so are large items, and those after them', () => {
  const paths = readersOf(decodeSettings({ secret: 'plaintext' }))
  const lengths = [RUN - 300, RUN, 2 * RUN + 1, 1_500_000, 17_000_000]
  for (const length of lengths) {
    const items = [credential(1), credential(2, 'é'.repeat(length / 2)), credential(3), credential(4)]
    expect(isEqual(paths, page(items), pageContext())).toBe(true)
  }
  // What is nested deeply has no end for the walker.
  const deep = (id: number) =>
    credential(id, 'x'.repeat(RUN / 2)).replace('}', `,"deep":${'['.repeat(90)}${']'.repeat(90)}}`)
  expect(isEqual(paths, page(Array.from({ length: 50 }, (_, id) => deep(id))), pageContext())).toBe(true)
})

test('a large page that is cut off or not UTF-8 is a broken response', () => {
  const readers = readersOf(decodeSettings())
  const body = page(Array.from({ length: 2000 }, (_, id) => credential(id, 'é'.repeat(40))))
  expect(readers.read(body, pageContext()).rows).toBe(2000)
  for (const at of [10, RUN - 1, RUN, RUN + 50, 8 * RUN, body.length - 1]) {
    expect(isEqual(readers, body.subarray(0, at), pageContext())).toBe(false)
    const changed = Buffer.from(body)
    changed[at] = 0xff
    expect(isEqual(readers, changed, pageContext())).toBe(false)
  }
})

test('so is one with a large item that is not JSON', () => {
  const readers = readersOf(decodeSettings())
  const whole = credential(2, 'x'.repeat(4 * RUN), { urls: [[1], { a: 1 }] })
  for (const [from, to] of [
    ['[[1]', '[{1]'],
    ['{"a":1}', '{"a":1]'],
    ['{"a":1}', '{"a":}}'],
    ['"urls":', '"urls'],
  ] as const) {
    const items = [credential(1), whole.replace(from, to), credential(3), credential(4, 'x'.repeat(6 * RUN))]
    expect(isEqual(readers, page(items), pageContext())).toBe(false)
  }
})

test('more fields, strings and items than the item walker reads at once are read all the same', () => {
  const paths = readersOf(decodeSettings({ secret: 'plaintext' }))
  const urls = (count: number) => Array.from({ length: count }, (_, i) => `https://${i}.example`)
  const items = [0, 3000, 1, 4095, 4096, 8192, 9000, 2].map((count, id) =>
    credential(id, 'x', { urls: urls(count) }),
  )
  expect(isEqual(paths, page(items), pageContext())).toBe(true)
  const small = Array.from({ length: 5000 }, (_, id) => credential(id, 'x', { source: null }))
  expect(isEqual(paths, page(small), pageContext())).toBe(true)
  const unknown = (count: number) => Object.fromEntries(urls(count).map((url, i) => [url, i]))
  const strange = [0, 1, 9, 255, 256, 257, 2000, 5000].map((count, id) => credential(id, 'x', unknown(count)))
  expect(isEqual(paths, page(strange), pageContext())).toBe(true)
})

function page(items: readonly string[]): Buffer {
  return Buffer.from(`{"items":[${items.join(' ,\r\n\t ')} ] ,"next":null}`)
}

function credential(id: number, secret = 'teapot', more: object = {}): string {
  const name = `leak_${id % 3}`
  const description_en = 'Credentials collected from Lantern Market.'.repeat((id % 3) + 1)
  return JSON.stringify(
    ordinary({
      id: 33880703907 + id,
      identity_name: `${id}.ådа@scatterholt.com`,
      hash: secret,
      source_id: name,
      source: source({ id: name, description_en }),
      ...more,
    }),
  )
}
