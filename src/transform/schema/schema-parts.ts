import * as z from 'zod'
import { MAX_INT64, MIN_INT64, parseTimestamp } from '../../core/index.ts'

/** Text, or null, or left out. */
export const optionalText = z.string().nullish()

export const optionalTexts = z.array(z.string()).nullish()

const NO_INT64 = 'Invalid input: expected a whole number of 64 bits'

/** An integer that 64 bits hold; responses are parsed so that the large ones are bigints. */
export const integer = z.union(
  [z.int(), z.bigint().min(MIN_INT64, NO_INT64).max(MAX_INT64, NO_INT64)],
  NO_INT64,
)

export const optionalInteger = integer.nullish()

/** Microseconds since the epoch. The issue says what is expected, never what was found. */
export const timestamp = z.string().transform((text, context) => {
  const micros = parseTimestamp(text)
  if (micros !== null) return micros
  context.issues.push({
    code: 'custom',
    message: 'Invalid input: expected an ISO 8601 timestamp',
    input: text,
  })
  return z.NEVER
})

export const optionalTimestamp = timestamp.nullish()
