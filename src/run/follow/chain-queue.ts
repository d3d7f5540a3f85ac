import type { PlannedChain } from '../../pipeline/index.ts'

/** The chains of a run, from which its slots take the next. */
export class ChainQueue {
  /** Resolves with the first page, or when none comes: it shows what is wrong with the service. */
  readonly begun: Promise<void>
  /** A page has come, or a chain has ended. */
  begin!: () => void
  readonly #planned: Iterator<PlannedChain>
  readonly #added: PlannedChain[] = []
  readonly #slots: number
  #left = 0

  constructor(planned: Iterable<PlannedChain>, slots: number) {
    this.#planned = planned[Symbol.iterator]()
    this.#slots = slots
    this.begun = new Promise((resolve) => {
      this.begin = resolve
    })
  }

  /** Whether each chain has a slot to spare, for a page that it requests ahead. */
  get mayPrefetch(): boolean {
    return 2 * this.#left >= this.#slots
  }

  next(): PlannedChain | null {
    const added = this.#added.shift()
    if (added !== undefined) return added
    const { value, done } = this.#planned.next()
    return done === true ? null : value
  }

  /** Adds what is left of a chain that failed. The slot that adds it takes the next chain, too. */
  add(chains: readonly PlannedChain[]): void {
    this.#added.unshift(...chains)
  }

  leave(): void {
    this.#left++
    this.begin()
  }
}
