import * as z from 'zod'
import type { IncludeValue } from '../data/credentials.ts'
import { parseTimestamp } from '../data/timeline.ts'
import { query, type SearchQuery } from './selection.ts'
import { validate } from './service-error.ts'

/** A checked search, defaults filled in; bounds in microseconds since 1970, both inclusive. */
type SearchRequest = {
  readonly query: SearchQuery
  readonly gte: number | null
  readonly lte: number | null
  readonly from: string | null
  readonly size: number
  readonly include: readonly IncludeValue[]
  readonly order: 'asc' | 'desc'
}

const instant = (round: 'up' | 'down') =>
  z.string().transform((text, context) => {
    const micros = parseTimestamp(text, round)
    if (micros !== null) return micros
    context.addIssue({ code: 'custom', message: 'Input should be an ISO 8601 date-time' })
    return z.NEVER
  })

const body = (includes: readonly IncludeValue[]) =>
  z.strictObject({
    query,
    filters: z
      .strictObject({
        imported_at: z
          .strictObject({ gte: instant('up').nullish(), lte: instant('down').nullish() })
          .nullish(),
      })
      .nullish(),
    from: z.string().nullish(),
    // Source: spec 4.2 and 8: default 10, at most 10,000.
    size: z.number().int().min(1).max(10_000).default(10),
    include: z.array(z.enum(includes)).nullish(),
    order: z.enum(['asc', 'desc']).default('desc'),
  })

/** `urls` exists on the second endpoint only. Source: the public documentation. */
const GLOBAL_BODY = body(['known_password_id', 'auth_domains'])
const SECOND_BODY = body(['known_password_id', 'auth_domains', 'urls'])

/** Unknown keys are refused. @throws ServiceError 422 */
export function searchRequest(input: unknown, endpoint: 'global' | 'second'): SearchRequest {
  const parsed = validate(endpoint === 'global' ? GLOBAL_BODY : SECOND_BODY, input, 'body')
  return {
    query: parsed.query,
    gte: parsed.filters?.imported_at?.gte ?? null,
    lte: parsed.filters?.imported_at?.lte ?? null,
    from: parsed.from ?? null,
    size: parsed.size,
    include: [...new Set(parsed.include ?? [])].sort(),
    order: parsed.order,
  }
}
