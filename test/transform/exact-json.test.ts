import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseExactJson } from '../../src/transform/scan/exact-json.ts'

const exact = (text: string): unknown => parseExactJson(Buffer.from(text))

test('keeps every digit of integers, at any position and in any context', () => {
  const number = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n })
  const text = fc.oneof(
    fc.string(),
    number.map(String),
    fc.constantFrom('"', '\\', ',1234567890123456789,', '\\"'),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(text, number)), fc.constantFrom('', ' ', '\n\t'), (pairs, gap) => {
      const members = pairs.map(
        ([key, value]) => `{${JSON.stringify(key)}${gap}:${gap}[${value}${gap},${JSON.stringify(key)}]}`,
      )
      const value = (n: bigint) => (n >= -(2n ** 53n) && n <= 2n ** 53n ? Number(n) : n)
      const expected = pairs.map(([key, n]) => ({ [key]: [value(n), key] }))
      // The smallest and the largest safe integer are exact in either form.
      if (pairs.some(([, n]) => n === 2n ** 53n || n === -(2n ** 53n))) return
      expect(exact(`[${members.join(`${gap},`)}]`)).toEqual(expected)
    }),
    { numRuns: 1000 },
  )
})

test.each([
  ['9007199254740993', 9007199254740993n],
  ['1000000000000000', 1e15],
  ['100000000000000000e-3', 1e14],
  ['0.1234567890123456789', 0.12345678901234568],
  ['1.00000000000000000001', Number.NaN],
  ['9007199254740993.0', 9007199254740992],
  ['9007199254740990.25', Number.NaN],
  ['-900719925474099.05e1', Number.NaN],
  ['1e-400', Number.NaN],
  ['-1.5E-999', Number.NaN],
  ['5e-324', 5e-324],
  ['0e-400', 0],
  ['10e-1', 1],
  ['1e999', Number.POSITIVE_INFINITY],
  // A look at every zero from each zero would take hours.
  [`1.${'0'.repeat(1_000_000)}1`, Number.NaN],
  [`1${'0'.repeat(20_000)}`, Number.NaN],
])('%s', (text, expected) => {
  expect(exact(text)).toEqual(expected)
  expect(exact(`{"a":[ ${text} ]}`)).toEqual({ a: [expected] })
})

test('of very many numbers that a double does not hold, none passes for an integer', () => {
  const numbers = Array.from({ length: 300_000 }, (_, i) => `9007199254740990.${1 + (i % 9)}`)
  const values = exact(`[${numbers.join()},1]`) as number[]
  expect(values.filter((value) => Number.isInteger(value))).toEqual([1])
})

test.each(
  '01234567890123456789 {1234567890123456789:1} [1234567890123456789 1234567890123456789.'.split(' '),
)('refuses invalid JSON: %s', (text) => {
  expect(() => exact(text)).toThrow(SyntaxError)
})

test('accepts names that are special in JavaScript, and any depth', () => {
  const value = exact('{"__proto__":{"id":9007199254740993},"a":{"__proto__":9007199254740993}}') as object
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  expect(Object.entries(value)[0]).toEqual(['__proto__', { id: 9007199254740993n }])
  const deep = `${'['.repeat(100_000)}9007199254740993${']'.repeat(100_000)}`
  let inner = exact(deep)
  while (Array.isArray(inner)) inner = inner[0]
  expect(inner).toBe(9007199254740993n)
})
