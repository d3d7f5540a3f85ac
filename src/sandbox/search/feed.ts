import * as z from 'zod'
import type { Credentials } from '../data/credentials.ts'
import { formatTimestamp } from '../data/timeline.ts'
import { fraction } from '../data/words.ts'
import type { Settings } from '../options.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { serviceError, validate } from './service-error.ts'

export type Feed = {
  /** `GET …/feed/credentials`. @param identifier null: the tenant @throws ServiceError 400, 404, 422 */
  page(identifier: string | null, parameters: URLSearchParams): { items: unknown[]; next: string | null }
}

/** What the feeds have. */
type Arrivals = {
  /**
   * Positions on the timeline of what has come so far, in the order in which it came.
   * @param identifier null: the tenant
   */
  soFar(identifier: number | null): Uint32Array
  /** A credential as it comes from a feed. Source: the public documentation. */
  item(position: number): unknown
}

const [LATE, LATE_BY, EMPTY, TRAILING, STATE, STATE_AFTER] = [601, 602, 603, 604, 605, 606]
/** Not documented: that of searches. */
const MAX_SIZE = 10_000
const DAY_MICROS = 86_400_000_000
const MAX_LATE_MICROS = 45 * DAY_MICROS

/**
 * The tenant has all domains, and identifier 1 the first one, and so on. A credential comes when it is imported, or later;
 * what comes is appended.
 */
export function arrivals({ seed, now, domains, lateRate, stateRate }: Settings, data: Credentials): Arrivals {
  const { timeline } = data
  const count = domains.length
  const comesAt = (position: number): number => {
    const isLate = lateRate > 0 && fraction(seed, position, LATE) < lateRate
    return (
      timeline.at(position) + (isLate ? Math.floor(fraction(seed, position, LATE_BY) * MAX_LATE_MICROS) : 0)
    )
  }
  const orders = new Map<number | null, Uint32Array>()
  /** Positions on the timeline, in the order in which they come. */
  const orderOf = (identifier: number | null): Uint32Array => {
    const known = orders.get(identifier)
    if (known !== undefined) return known
    const all = orders.get(null) ?? Uint32Array.from({ length: timeline.total }, (_, position) => position)
    if (!orders.has(null) && lateRate > 0) {
      const arrivals = Float64Array.from(all, comesAt)
      all.sort((a, b) => arrivals[a]! - arrivals[b]! || a - b)
    }
    orders.set(null, all)
    const own = identifier === null ? all : all.filter((position) => position % count === identifier - 1)
    orders.set(identifier, own)
    return own
  }
  /** How many have come. */
  const visible = (order: Uint32Array): number => {
    let [low, high] = [0, order.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (comesAt(order[middle]!) <= now() * 1000) low = middle + 1
      else high = middle
    }
    return low
  }
  /** When a state changed; null: it has not, or not yet. */
  const changedAt = (position: number, kind: number, rate: number): string | null => {
    if (stateRate === 0 || fraction(seed, position, STATE + 10 * kind) >= stateRate * rate) return null
    const after = Math.floor(fraction(seed, position, STATE_AFTER + 10 * kind) * 60 * DAY_MICROS)
    const at = comesAt(position) + after
    return at <= now() * 1000 ? formatTimestamp(at, '+00:00') : null
  }
  const item = (position: number): unknown => {
    const found: unknown = JSON.parse(data.json(position, new Set(['known_password_id'])))
    if (typeof found !== 'object' || found === null || Array.isArray(found)) return found
    const { hash_type: _, source, ...rest } = found as Record<string, unknown>
    return {
      ...rest,
      source: typeof source === 'object' && source !== null ? withoutAlerts(source) : source,
      remediated_at: changedAt(position, 0, 1),
      ignored_at: changedAt(position, 1, 0.25),
    }
  }

  return {
    soFar(identifier) {
      const order = orderOf(identifier)
      return order.subarray(0, visible(order))
    },
    item,
  }
}

/**
 * The feeds of the tenant and of its identifiers. Source: the public documentation of the feeds: default size 20, `next`
 * is null at the end.
 */
export function feed(settings: Settings, arrived: Arrivals): Feed {
  const { seed, cursorKey, now, domains } = settings
  const count = domains.length
  return {
    page(identifier, parameters) {
      const id = identifier === null ? null : Number(identifier)
      if (id !== null && !(Number.isInteger(id) && id >= 1 && id <= count)) {
        throw serviceError(404, 'NOT_FOUND', 'no such identifier')
      }
      const wanted = validate(parametersOf(id), Object.fromEntries(parameters), 'query')
      const direction = 'order_type' in wanted ? (wanted.order_type ?? 'desc') : settings.identifierOrder
      const isUp = direction === 'asc'
      const requestKey = JSON.stringify(['feed', id, wanted.size, direction])
      const order = arrived.soFar(id)
      const end = order.length
      const point =
        wanted.from === undefined
          ? { index: isUp ? 0 : end - 1, page: 0, rows: 0 }
          : readCursor(cursorKey, requestKey, wanted.from)
      const { cursorLifetimeMs } = settings
      if (wanted.from !== undefined && cursorLifetimeMs !== null && now() - point.rows > cursorLifetimeMs) {
        throw serviceError(400, 'INVALID_CURSOR', 'the cursor has expired')
      }
      const draw = (field: number): boolean =>
        fraction(seed, point.index * 31 + point.page, field) < settings.emptyPageRate
      const size = draw(EMPTY) ? 0 : wanted.size
      const last = isUp ? Math.min(end, point.index + size) : Math.max(-1, point.index - size)
      const positions = isUp
        ? order.slice(point.index, last)
        : order.slice(last + 1, point.index + 1).reverse()
      const isEnd = isUp ? last >= end : last < 0
      const hasNext = !isEnd || (positions.length > 0 && draw(TRAILING))
      // The third number of a cursor is when it was given; cursors hold integers only.
      const next = { index: last, page: point.page + 1, rows: Math.floor(now()) }
      return {
        items: Array.from(positions, arrived.item),
        next: hasNext ? writeCursor(cursorKey, requestKey, next) : null,
      }
    },
  }
}

function withoutAlerts({ is_alert_enabled: _, ...source }: { readonly is_alert_enabled?: unknown }) {
  return source
}

/** The identifier's feed has no order. */
function parametersOf(identifier: number | null) {
  const all = z.strictObject({
    from: z.string().optional(),
    size: z.coerce.number().int().min(1).max(MAX_SIZE).default(20),
  })
  return identifier === null ? all.extend({ order_type: z.enum(['asc', 'desc']).optional() }) : all
}
