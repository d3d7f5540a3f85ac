import { expect, it } from 'vitest'
import { hasTooManyValues } from '../../src/core/index.ts'

const json = (text: string) => Buffer.from(text)

it('a text with more values than a page can have is known before it is parsed, from 1 MB on', () => {
  for (const value of ['{}', '[]', '0', '"a"', '{"a":1}']) {
    const text = (times: number) => json(`{"items":[${`${value},`.repeat(times)}0]}`)
    expect(hasTooManyValues(text(2_000_001)), value).toBe(true)
    expect(hasTooManyValues(text(500_000)), value).toBe(false)
  }
})

it('marks inside strings are no values, whatever is escaped', () => {
  const texts = [',{[', '\\\\', '\\",', ',\\\\\\"[']
  for (const text of texts) {
    expect(hasTooManyValues(json(`["${text.repeat(3_000_000)}"]`)), text).toBe(false)
  }
  // Behind a string that ends with a backslash they count again.
  expect(hasTooManyValues(json(`["\\\\"${',0'.repeat(2_000_001)}]`))).toBe(true)
})
