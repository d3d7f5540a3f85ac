import * as z from 'zod'
import type { Credentials } from '../data/credentials.ts'
import { firstIndex, formatTimestamp } from '../data/timeline.ts'
import { fraction } from '../data/words.ts'
import type { Settings } from '../options.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { serviceError, validate } from './service-error.ts'

export type Feed = {
  /** `GET …/feed/credentials`. @param identifier null: the tenant @throws ServiceError 400, 404, 422 */
  page(identifier: string | null, parameters: URLSearchParams): { items: unknown[]; next: string | null }
}

type Arrivals = {
  /** Positions of what has come so far, in the order in which it came. @param identifier null: the tenant */
  soFar(identifier: number | null): Sequence
  /** A credential as it comes from a feed. Source: the public documentation. */
  item(position: number): unknown
}

type Sequence = { readonly length: number; at(index: number): number }

/** When credentials come, and in which order those of a feed do. */
export type Order = {
  /** By position on the timeline, in microseconds since 1970. */
  comesAt(position: number): number
  sequence(identifier: number | null): Sequence
}

const [EMPTY, TRAILING, STATE, STATE_AFTER] = [603, 604, 605, 606]
/** Not documented: that of searches. */
const MAX_SIZE = 10_000
const DAY_MICROS = 86_400_000_000

/** A credential comes when it is imported. The tenant has all domains, and identifier 1 the first one, and so on. */
export function importOrder({ domains }: Settings, { timeline }: Credentials): Order {
  const { total } = timeline
  const count = domains.length
  return {
    comesAt: timeline.at,
    sequence: (identifier) =>
      identifier === null
        ? { length: total, at: (index) => index }
        : {
            length: Math.ceil((total - identifier + 1) / count),
            at: (index) => index * count + identifier - 1,
          },
  }
}

export function arrivals({ seed, now, stateRate }: Settings, data: Credentials, order: Order): Arrivals {
  const { comesAt } = order
  /** When a state changed; null: it has not, or not yet. */
  const changedAt = (position: number, kind: number, rate: number): string | null => {
    if (stateRate === 0 || fraction(seed, position, STATE + 10 * kind) >= stateRate * rate) return null
    const after = Math.floor(fraction(seed, position, STATE_AFTER + 10 * kind) * 60 * DAY_MICROS)
    const at = comesAt(position) + after
    return at <= now() * 1000 ? formatTimestamp(at, '+00:00') : null
  }
  const item = (position: number): unknown => {
    const found = data.item(position, ['known_password_id'])
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
      const { length, at } = order.sequence(identifier)
      return { length: firstIndex(length, (index) => comesAt(at(index)) > now() * 1000), at }
    },
    item,
  }
}

/** Source: the public documentation of the feeds: default size 20, `next` is null at the end. */
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
      const positions = Array.from({ length: Math.abs(last - point.index) }, (_, i) =>
        order.at(isUp ? point.index + i : point.index - i),
      )
      const isEnd = isUp ? last >= end : last < 0
      const hasNext = !isEnd || (positions.length > 0 && draw(TRAILING))
      // The third number of a cursor is when it was given; cursors hold integers only.
      const next = { index: last, page: point.page + 1, rows: Math.floor(now()) }
      return {
        items: positions.map(arrived.item),
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
