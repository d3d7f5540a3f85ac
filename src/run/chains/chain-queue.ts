import type { NamedQuery, WindowRun } from '../../core/index.ts'
import type { PlannedChain } from '../../plan/index.ts'

/**
 * The chains of a run, from which its slots take the next. While at least as many chains wait as there are slots, a
 * slot takes a whole chain. The windows of the last chains are divided, so that no slot idles while others follow long
 * chains. Each division may cost a request, so there is at most one less than there are slots.
 */
export class ChainQueue {
  readonly #planned: Iterator<PlannedChain>
  readonly #slots: number
  readonly #isWorthDividing: (query: NamedQuery, windows: WindowRun) => boolean
  readonly #waiting: PlannedChain[] = []
  readonly #parts = new Set<PlannedChain>()
  #divisions: number

  /** @param isWorthDividing whether that many windows of a query are likely to need more than one request */
  constructor(
    planned: Iterable<PlannedChain>,
    slots: number,
    isWorthDividing: (query: NamedQuery, windows: WindowRun) => boolean,
  ) {
    this.#planned = planned[Symbol.iterator]()
    this.#slots = slots
    this.#divisions = slots - 1
    this.#isWorthDividing = isWorthDividing
  }

  /** @param slots the number of slots that idle, the caller included, or soon will */
  next(slots: number): PlannedChain | null {
    while (this.#waiting.length < this.#slots) {
      const { value, done } = this.#planned.next()
      if (done === true) break
      this.#waiting.push(value)
    }
    const waiting = this.#waiting.length
    const chain = this.#waiting.shift()
    if (chain === undefined) return null
    const ways = Math.min(Math.floor(slots / waiting), 1 + this.#divisions)
    return ways > 1 ? this.#divided(chain, ways) : chain
  }

  /** Adds what is left of a chain that failed. */
  add(chain: PlannedChain): void {
    this.#parts.add(chain)
    this.#waiting.unshift(chain)
  }

  #divided(chain: PlannedChain, ways: number): PlannedChain {
    if (chain.kind === 'begun' || this.#parts.has(chain)) return chain
    const { query, windows } = chain
    const parts = Math.min(ways, windows.count)
    if (parts < 2 || !this.#isWorthDividing(query, windows)) return chain
    this.#divisions -= parts - 1
    const [first, ...others] = Array.from({ length: parts }, (_, part): PlannedChain => {
      const at = (number: number): number => Math.round((number * windows.count) / parts)
      return { kind: 'new', query, windows: windows.part(at(part), at(part + 1)) }
    })
    for (const part of others) this.#parts.add(part)
    this.#waiting.unshift(...others)
    return first!
  }
}

/** Follows one chain at a time. */
export type Slot = {
  /** Committed pages of its chain. */
  pages: number
}

/** The slots of a run. */
export class Slots {
  /** How many slots found no further chain. */
  done = 0
  readonly #count: number
  readonly #busy = new Set<Slot>()

  constructor(count: number) {
    this.#count = count
  }

  /** Slots that idle or follow a chain with committed pages, which will end before a chain that begins now. */
  get freeSoon(): number {
    let busy = 0
    for (const { pages } of this.#busy) if (pages === 0) busy++
    return this.#count - busy
  }

  begin(): Slot {
    const slot = { pages: 0 }
    this.#busy.add(slot)
    return slot
  }

  end(slot: Slot): void {
    this.#busy.delete(slot)
  }
}
