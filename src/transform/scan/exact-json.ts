import { randomUUID } from 'node:crypto'
import { int64 } from '../../core/index.ts'

/** Shorter mantissas are exact in a double, or no integer there either, unless they are rounded to 0. */
const MAY_BE_ROUNDED = /[\d.]{16}|\d[eE]-/
/** Strings, and numbers. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g
/** Nobody needs more digits of a number that no column can hold. */
const MAX_DIGITS = 10_240
/** Two for each item that a page can have. More would fill the memory: they become infinite, so no integers. */
const MAX_NUMBERS = 200_000

/** Stands before the digits of a number while JSON.parse has them as a text; nobody outside can know it. */
const MARK = `${randomUUID()}:`
const INFINITE = '1e999'

/**
 * Whole numbers that JSON.parse would round become bigints; what only looks whole once it is rounded becomes NaN.
 * @throws SyntaxError as JSON.parse
 */
export function parseExactJson(bytes: Buffer, start = 0, end = bytes.length): unknown {
  const text = bytes.toString('utf8', start, end)
  const value: unknown = JSON.parse(text)
  if (!MAY_BE_ROUNDED.test(text)) return value
  let numbers = 0
  const marked = text.replace(TOKENS, (token) => {
    if (token.startsWith('"') || !isRounded(token)) return token
    return ++numbers > MAX_NUMBERS ? INFINITE : `"${MARK}${token}"`
  })
  return numbers === 0 ? value : restored(JSON.parse(marked))
}

function isRounded(text: string): boolean {
  const value = Number(text)
  return isInteger(text) ? !Number.isSafeInteger(value) : Number.isInteger(value) && !isWhole(text)
}

/** Whether it is written without fraction and exponent. */
function isInteger(text: string): boolean {
  return /^-?\d+$/.test(text)
}

/** Puts the numbers back. Without recursion: nesting has no limit. */
function restored(root: unknown): unknown {
  const holder: Record<string, unknown> = { root }
  const waiting: Record<string, unknown>[] = [holder]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    for (const key of Object.keys(node)) {
      const value = node[key]
      if (typeof value === 'string' && value.startsWith(MARK))
        node[key] = exactNumber(value.slice(MARK.length))
      else if (typeof value === 'object' && value !== null) waiting.push(value as Record<string, unknown>)
    }
  }
  return holder.root
}

function exactNumber(text: string): number | bigint {
  return isInteger(text) && text.length <= MAX_DIGITS ? int64(BigInt(text)) : Number.NaN
}

/** Whether a number with a fraction or an exponent is a whole one. */
function isWhole(text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [, fraction = ''] = mantissa.split('.')
  const digits = mantissa.replace(/[-.]/g, '')
  // A regular expression would look at every run of zeros again from each of them.
  let significant = digits.length
  while (significant > 0 && digits[significant - 1] === '0') significant--
  return significant === 0 || fraction.length - Number(exponent) <= digits.length - significant
}
