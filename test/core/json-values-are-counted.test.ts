import { expect, it } from 'vitest'
import { hasTooManyValues } from '../../src/core/index.ts'

const json = (text: string) => Buffer.from(text)

it('a body of 1 MB or more with more values than a page can have is detected before it is parsed', () => {
  for (const value of ['{}', '[]', '0', '"a"', '{"a":1}']) {
    const text = (times: number) => json(`{"items":[${`${value},`.repeat(times)}0]}`)
    expect(hasTooManyValues(text(2_000_001)), value).toBe(true)
    expect(hasTooManyValues(text(500_000)), value).toBe(false)
  }
})

it('punctuation inside strings counts for nothing, whatever is escaped', () => {
  const texts = [',{[', '\\\\', '\\",', ',\\\\\\"[']
  for (const text of texts) expect(hasTooManyValues(json(`["${text.repeat(3_000_000)}"]`)), text).toBe(false)
  // After a string that ends with a backslash it counts again.
  expect(hasTooManyValues(json(`["\\\\"${',0'.repeat(2_000_001)}]`))).toBe(true)
})
