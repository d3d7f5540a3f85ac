import * as z from 'zod'

/** Each message follows "expected" in an error. `describe` adds what was found: it knows what may be shown. */

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const UNIT_BYTES = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30 } as const

/** A mapping that allows these keys and no others. The message of an unknown key is the list of the known. */
export function section<const Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const known = Object.keys(shape).join(', ')
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? known : 'a mapping of keys to values'),
  })
}

export function choice<const Values extends readonly [string, ...string[]]>(...values: Values) {
  return z.enum(values, values.join(' | '))
}

export function integer(
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
  expected = integerFrom(min, max),
) {
  return z.int(expected).gte(min, expected).lte(max, expected)
}

function integerFrom(min: number, max: number = Number.MAX_SAFE_INTEGER): string {
  return `an integer from ${min} ${max === Number.MAX_SAFE_INTEGER ? 'on' : `to ${max}`}`
}

export function rate(max: number) {
  const expected = `a number above 0, at most ${max}`
  return z.number(expected).gt(0, expected).lte(max, expected)
}

/** An integer, or `none` to switch a limit off: null. Left blank, it is the default. */
export function limit(min: number, byDefault: number | 'none') {
  const expected = `${integerFrom(min)}, or none`
  return z
    .union([integer(min, undefined, expected), z.literal('none'), z.null()], expected)
    .transform((value) => {
      const limit = value ?? byDefault
      return limit === 'none' ? null : limit
    })
    .prefault(byDefault)
}

/** An integer, or a word: null. */
export function integerOr<const Word extends string>(word: Word, min: number, max?: number) {
  const expected = `${integerFrom(min, max)}, or ${word}`
  return z
    .union([integer(min, max, expected), z.literal(word)], expected)
    .transform((value) => (typeof value === 'number' ? value : null))
}

/** `1%`, `0.5%` or a plain number of items. */
export function countOrShare() {
  const expected = 'an integer from 0 on, or a share from 0% to 100% such as 1% or 0.5%'
  const share = parsed(/^\d{1,3}(?:\.\d{1,6})?%$/, expected, (value) => {
    const percent = Number(value.slice(0, -1))
    return percent <= 100 ? { kind: 'share' as const, percent } : null
  })
  const count = integer(0, undefined, expected).transform((items) => ({ kind: 'count' as const, items }))
  return z.union([count, share], expected)
}

export function flag() {
  return z.boolean('true or false')
}

export function list<Item extends z.ZodType>(item: Item, expected: string) {
  return z.array(item, expected)
}

export function text(pattern: RegExp, expected: string) {
  return z.string(expected).regex(pattern, expected)
}

/** @param parse null: invalid @param fault what is wrong with a text and what to write instead, without showing it */
export function parsed<Value>(
  pattern: RegExp,
  expected: string,
  parse: (text: string) => Value | null,
  fault: (text: string) => string | null = () => null,
) {
  return text(pattern, expected).transform((value, context): Value => {
    const result = parse(value)
    if (result !== null) return result
    context.issues.push({ code: 'custom', message: expected, input: value, params: { fault: fault(value) } })
    return z.NEVER
  })
}

/** `500ms`, `60s`, `15m`, `2h`, `1d`: milliseconds. */
export function duration(min: string, max: string) {
  const expected = `a duration from ${min} to ${max}, such as 500ms, 60s, 15m, 2h or 1d`
  return parsed(DURATION, expected, (value) => {
    const ms = durationMs(value)
    return ms >= durationMs(min) && ms <= durationMs(max) ? ms : null
  })
}

/** `64MB`, `256MiB` or a plain number: bytes. */
export function byteSize(min: number, max: number) {
  const expected = `a number of bytes from ${min} to ${max}, or a size such as 64MB or 256MiB`
  const sized = parsed(SIZE, expected, (value) => {
    const [, count, unit = ''] = SIZE.exec(value)!
    const bytes = Number(count) * UNIT_BYTES[unit.toUpperCase() as keyof typeof UNIT_BYTES]
    return bytes >= min && bytes <= max ? bytes : null
  })
  return z.union([integer(min, max, expected), sized], expected)
}

export function columnName() {
  return z.string('a column name')
}

export function variableName() {
  return text(
    /^[A-Za-z_][A-Za-z0-9_]*$/,
    'the name of an environment variable (letters, digits and _), never the secret itself',
  )
}

const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/
const SIZE = /^(\d{1,15}) ?((?:[KMGkmg]i?)?B)$/

function durationMs(value: string): number {
  const [, count, unit] = DURATION.exec(value)!
  return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
}
