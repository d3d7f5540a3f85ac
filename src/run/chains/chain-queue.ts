import type { PlannedChain } from '../../pipeline/index.ts'

/** The chains of a run, from which its slots take the next. A slot that finds none waits for a part of another's. */
export class ChainQueue {
  readonly #planned: Iterator<PlannedChain>
  readonly #added: PlannedChain[] = []
  readonly #idle: ((chain: PlannedChain | null) => void)[] = []
  #slots: number

  constructor(planned: Iterable<PlannedChain>, slots: number) {
    this.#planned = planned[Symbol.iterator]()
    this.#slots = slots
  }

  /** The number of slots without a chain. */
  get idle(): number {
    return this.#idle.length
  }

  /** Whether each chain has a slot to spare, for a page that it requests ahead. */
  get mayPrefetch(): boolean {
    return 2 * this.idle >= this.#slots
  }

  /** @returns null when there is no chain left, and no slot follows one that may be divided */
  async next(): Promise<PlannedChain | null> {
    const added = this.#added.shift()
    if (added !== undefined) return added
    const { value, done } = this.#planned.next()
    if (done !== true) return value
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#endIfIdle()
    })
  }

  /** Adds a part of a chain, or what is left of one that failed. */
  add(chain: PlannedChain): void {
    const take = this.#idle.shift()
    if (take === undefined) this.#added.unshift(chain)
    else take(chain)
  }

  /** Called when a slot takes no more chains. */
  leave(): void {
    this.#slots--
    this.#endIfIdle()
  }

  #endIfIdle(): void {
    if (this.#idle.length < this.#slots) return
    for (const end of this.#idle.splice(0)) end(null)
  }
}
