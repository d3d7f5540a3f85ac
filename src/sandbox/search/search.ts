import * as z from 'zod'
import type { Credentials, IncludeValue } from '../data/credentials.ts'
import { parseTimestamp } from '../data/timeline.ts'
import { fraction } from '../data/words.ts'
import type { Settings } from '../options.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { collectPage, indexRange, query, type SearchQuery, select } from './selection.ts'
import { serviceError, validate } from './service-error.ts'

type SearchResponse = {
  readonly body: { readonly items: readonly unknown[]; readonly next: string | null }
  readonly batchReached: boolean
}

export type Search = {
  /** Searches left this month. */
  remaining(): number
  /** @throws ServiceError 400 for a foreign cursor, 403 without quota, 422 for a bad body */
  respond(body: unknown, endpoint: 'global' | 'second'): SearchResponse
}

const EMPTY = 501
const SHORT = 502
const TRAILING = 504

/** Source: spec 4.2, and the public documentation: bounds are inclusive, and only `next` decides, not an empty page. */
export function search(settings: Settings, data: Credentials): Search {
  const left = quota(settings)
  const { seed, cursorKey } = settings

  const respond = (body: unknown, endpoint: 'global' | 'second'): SearchResponse => {
    const { from, request } = searchRequest(body, endpoint)
    const requestKey = JSON.stringify([endpoint, request])
    const selection = select(data, request.query)
    const range = indexRange(data, selection, request)
    const start = request.order === 'asc' ? range.low : range.high - 1
    const point = from === null ? { index: start, page: 0, rows: 0 } : readCursor(cursorKey, requestKey, from)
    const draw = (field: number) => fraction(seed, point.index * 31 + point.page, field)
    const empty = draw(EMPTY) < settings.emptyPageRate
    const short = settings.shortPageRate > 0 && draw(SHORT) < settings.shortPageRate
    const size = short ? Math.max(1, Math.floor(request.size * draw(SHORT + 1))) : request.size
    const page = empty
      ? { positions: [], next: point.index }
      : collectPage(selection, range, point.index, request.order, size)
    // The last items may be followed by an empty page as well.
    const beyond = request.order === 'asc' ? range.high : range.low - 1
    const trailing = page.positions.length > 0 && draw(TRAILING) < settings.emptyPageRate
    const index = page.next ?? (trailing ? beyond : null)
    const rows = point.rows + page.positions.length
    const next =
      index === null ? null : writeCursor(cursorKey, requestKey, { index, page: point.page + 1, rows })
    // Refused requests are not charged, so this comes last.
    const isUsedUp =
      endpoint === 'global' &&
      left.charge({ query: request.query, requestKey, cursor: from, before: point.rows, rows })
    const items = page.positions.map((position) => data.item(position, request.include))
    return { body: { items, next }, batchReached: next !== null && isUsedUp }
  }
  return { remaining: left.remaining, respond }
}

/** The search of one request, and how many rows its sequence of cursors had before and has after it. */
type Charge = {
  readonly query: SearchQuery
  /** Every parameter other than `from`. */
  readonly requestKey: string
  readonly cursor: string | null
  readonly before: number
  readonly rows: number
}

const FREE_MS = 10 * 60_000

// Older ones are long over.
const MAX_REMEMBERED = 10_000

/**
 * Source: the public documentation: a search retrieves up to 100 credentials, more results are more searches; the same
 * again, or with other filters, is free for 10 minutes. It does not say what a page of 10,000 is: one search or 100.
 */
function quota(settings: Settings) {
  const { rowsPerSearch, now } = settings
  let remaining = settings.quota
  const paidAt = new Map<string, number>()

  function isPaid(key: string): boolean {
    const at = paidAt.get(key)
    return at !== undefined && now() - at < FREE_MS
  }

  function pay(key: string): void {
    if (isPaid(key)) return
    if (paidAt.size >= MAX_REMEMBERED) paidAt.clear()
    paidAt.set(key, now())
  }

  function searches(rows: number): number {
    return Math.max(1, Math.ceil(rows / rowsPerSearch))
  }

  function costOf(same: string, { query, cursor, before, rows }: Charge): number {
    if (isPaid(same)) return 0
    const free = cursor === null && isPaid(JSON.stringify(query)) ? 1 : 0
    if (rowsPerSearch === 0) return 1 - free
    return cursor === null ? searches(rows) - free : searches(rows) - searches(before)
  }

  return {
    remaining: () => remaining,
    /** @returns whether the results that are paid for are used up @throws ServiceError 403 when nothing is left */
    charge(charge: Charge): boolean {
      const same = `${charge.requestKey} ${charge.cursor ?? ''}`
      const cost = costOf(same, charge)
      if (cost > 0 && remaining === 0) {
        throw serviceError(403, 'QUOTA_EXCEEDED', 'no global searches left this month')
      }
      remaining = Math.max(0, remaining - cost)
      pay(same)
      if (charge.cursor === null) pay(JSON.stringify(charge.query))
      return rowsPerSearch === 0 || charge.rows >= searches(charge.rows) * rowsPerSearch
    },
  }
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

/** Bounds in microseconds since 1970, both inclusive. Unknown keys are refused. @throws ServiceError 422 */
function searchRequest(input: unknown, endpoint: 'global' | 'second') {
  const { query, filters, from, size, include, order } = validate(
    endpoint === 'global' ? GLOBAL_BODY : SECOND_BODY,
    input,
    'body',
  )
  const { gte = null, lte = null } = filters?.imported_at ?? {}
  const request = { query, gte, lte, size, include: [...new Set(include ?? [])].sort(), order }
  return { request, from: from ?? null }
}
