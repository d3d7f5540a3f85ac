import * as z from 'zod'
import type { Credentials, IncludeValue } from '../data/credentials.ts'
import { parseTimestamp } from '../data/timeline.ts'
import { fraction } from '../data/words.ts'
import type { Settings } from '../options.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { collectPage, indexRange, query, type SearchQuery, select } from './selection.ts'
import { serviceError, validate } from './service-error.ts'

const COMMA = 0x2c

/** About what a credential measures with its source. */
const TYPICAL_BYTES = 700

export type SearchResponse = { readonly body: Buffer; readonly items: number; readonly batchReached: boolean }

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
    const { from, ...request } = searchRequest(body, endpoint)
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
    return {
      body: renderPage(data, page.positions, new Set(request.include), `,"next":${JSON.stringify(next)}`),
      items: page.positions.length,
      batchReached: next !== null && isUsedUp,
    }
  }
  return { remaining: left.remaining, respond }
}

/** One buffer: glued strings would be three copies of six megabytes. @param tail follows the items: `,"next":null` */
function renderPage(
  data: Credentials,
  positions: readonly number[],
  include: ReadonlySet<IncludeValue>,
  tail: string,
): Buffer {
  let target = Buffer.allocUnsafe(1024 + positions.length * TYPICAL_BYTES)
  let at = target.write('{"items":[', 'latin1')
  for (let i = 0; i < positions.length; i++) {
    const { head, ascii, tail: source } = data.text(positions[i]!, include)
    const most = head.length * (ascii ? 1 : 3) + source.bytes.length + tail.length + 16
    if (at + most > target.length) target = grown(target, at, most)
    if (i > 0) target[at++] = COMMA
    at += ascii ? target.write(head, at, 'latin1') : target.write(head, at)
    target.set(source.bytes, at)
    at += source.bytes.length
  }
  at += target.write(`]${tail}}`, at)
  return target.subarray(0, at)
}

function grown(old: Buffer, used: number, more: number): Buffer<ArrayBuffer> {
  const next = Buffer.allocUnsafe(old.length * 2 + more)
  old.copy(next, 0, 0, used)
  return next
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
function searchRequest(input: unknown, endpoint: 'global' | 'second'): SearchRequest {
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
