import type { Credentials } from '../../src/sandbox/data/credentials.ts'
import { fraction } from '../../src/sandbox/data/words.ts'
import type { Settings } from '../../src/sandbox/options.ts'
import { importOrder, type Order } from '../../src/sandbox/search/feed.ts'

const [LATE, LATE_BY] = [601, 602]
const MAX_LATE_MICROS = 45 * 86_400_000_000

/** The order of feeds, where this share of credentials comes up to 45 days after its import. */
export function lateOrder(lateRate: number, settings: Settings, data: Credentials): Order {
  const { seed } = settings
  const { comesAt: importedAt, sequence } = importOrder(settings, data)
  const comesAt = (position: number): number =>
    fraction(seed, position, LATE) < lateRate
      ? importedAt(position) + Math.floor(fraction(seed, position, LATE_BY) * MAX_LATE_MICROS)
      : importedAt(position)
  const orders = new Map<number | null, Uint32Array>()
  return {
    comesAt,
    sequence(identifier) {
      let order = orders.get(identifier)
      if (order === undefined) {
        const { length, at } = sequence(identifier)
        order = Uint32Array.from({ length }, (_, index) => at(index))
        const times = new Map(Array.from(order, (position) => [position, comesAt(position)]))
        order.sort((a, b) => times.get(a)! - times.get(b)! || a - b)
        orders.set(identifier, order)
      }
      return { length: order.length, at: (index) => order[index]! }
    },
  }
}
