import { z } from 'zod'
import { parseTimestamp } from '../core/index.ts'

/** Text, or null, or left out. */
export const optionalText = z.string().nullish()

export const optionalTexts = z.array(z.string()).nullish()

export const optionalInteger = z.int().nullish()

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
