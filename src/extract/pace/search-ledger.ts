import { likelyCost, type Measures, mayCost, type PageCost } from '../../core/index.ts'

/** A request that costs searches, from its reservation to its response. */
export type Flight = {
  /** What it may cost. */
  readonly cost: number
  /** It is written to a connection. */
  write(): void
  /**
   * It has come to its end.
   * @param remaining searches left, by the response; null: it does not say, or there is none
   * @param mayHaveCost whether the service may have charged it all the same
   */
  responded(remaining: number | null, mayHaveCost: boolean): void
  /** How many rows the response has; null: it could not be read. */
  rows(count: number | null): void
  /** It was not written, and will not be; does nothing after `responded`. */
  cancel(): void
}

type Sight = {
  readonly remaining: number
  readonly writtenAt: number
  readonly respondedAt: number
  readonly flight: { readonly cost: number; rows: number | null | undefined }
}

/**
 * Counts the searches that are spent, from the number that each response says is left. Responses overtake each other, so
 * they are sorted into the order in which the service gave them: by that number, once no response in flight may precede
 * them. From one to the next the number goes down by what the later request cost, or by more: others spend too.
 */
export class SearchLedger {
  readonly #costs: PageCost[]
  #tells: boolean | null
  readonly #onCost: (cost: PageCost, usual: number) => void
  /** Counts what happens to requests. */
  #moment = 0
  readonly #open = new Set<{ readonly cost: number; writtenAt: number | null }>()
  /** Without a response, but perhaps charged: until the response to a later request counts them in. */
  #lost: { readonly cost: number; readonly at: number }[] = []
  #known: { readonly remaining: number; readonly at: number } | null = null
  /** Responses whose position in the order, or whose rows, are not known yet. */
  #sights: Sight[] = []
  /** What was left after the last one with a known position. */
  #base: number | null = null
  /** Rows of those that no other came before. */
  #firstRows: number[] = []
  #spent = 0
  #onChange: (() => void)[] = []

  /**
   * @param measures what earlier runs have measured
   * @param tells whether the endpoint says what is left; null: not known
   * @param onCost called with what each page cost, once it is known
   */
  constructor(
    measures: Pick<Measures, 'costs'>,
    tells: boolean | null,
    onCost: (cost: PageCost, usual: number) => void = () => {},
  ) {
    this.#costs = [...measures.costs]
    this.#tells = tells
    this.#onCost = onCost
  }

  /** Whether the endpoint says what is left; null: no response has come yet. */
  get tells(): boolean | null {
    return this.#tells
  }

  get inFlight(): number {
    return this.#open.size
  }

  /** What all requests may cost whose cost is not known yet. */
  get reserved(): number {
    let sum = 0
    for (const { cost } of this.#open) sum += cost
    for (const { cost } of this.#lost) sum += cost
    return sum
  }

  /** What the service said was left, in its own order; null: nothing yet. */
  get remaining(): number | null {
    return this.#known?.remaining ?? null
  }

  /** Spent so far, by the responses; null: the service does not say. */
  get spent(): number | null {
    if (this.#tells !== true) return null
    let spent = this.#spent
    for (const rows of this.#firstRows) spent += likelyCost(this.#costs, rows)
    // What has no position yet is counted as if all responses had come.
    const values = this.#sights.map(({ remaining }) => remaining)
    if (values.length === 0) return spent
    const base = this.#base ?? Math.max(...values)
    const below = values.filter((value) => value <= base)
    if (this.#base === null) spent += Math.min(...this.#sights.map(({ flight }) => flight.cost))
    return spent + (below.length === 0 ? 0 : base - Math.min(...below))
  }

  /** What a page of so many rows may cost. */
  mayCost(size: number): number {
    return mayCost(this.#costs, size)
  }

  get costs(): readonly PageCost[] {
    return this.#costs
  }

  begin(cost: number): Flight {
    const entry = { cost, writtenAt: null as number | null }
    this.#open.add(entry)
    const known: Sight['flight'] = { cost, rows: undefined }
    return {
      cost,
      write: () => {
        entry.writtenAt = ++this.#moment
      },
      responded: (remaining, mayHaveCost) => {
        if (!this.#open.delete(entry)) return
        const at = ++this.#moment
        const writtenAt = entry.writtenAt ?? at
        if (remaining !== null) this.#see({ remaining, writtenAt, respondedAt: at, flight: known })
        else if (mayHaveCost && this.#tells !== false) this.#lost.push({ cost, at })
        this.#changed()
      },
      rows: (count) => {
        known.rows = count
        this.#changed()
      },
      cancel: () => {
        if (this.#open.delete(entry)) this.#changed()
      },
    }
  }

  /** A usable response did not say what is left. */
  saysNothing(): void {
    if (this.#tells === true) return
    this.#tells = false
    this.#lost = []
    this.#changed()
  }

  /** Resolves when a request has come to its end. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const onAbort = (): void => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      this.#onChange.push(() => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      })
    })
  }

  #see(sight: Sight): void {
    this.#tells = true
    const { remaining, writtenAt, respondedAt } = sight
    // Of responses that overtook each other the lowest is the last. A later request that is told more counts.
    if (this.#known === null || remaining < this.#known.remaining || writtenAt > this.#known.at) {
      this.#known = { remaining, at: respondedAt }
    }
    this.#lost = this.#lost.filter(({ at }) => at > writtenAt)
    this.#sights.push(sight)
  }

  #changed(): void {
    this.#settle()
    const waiting = this.#onChange
    this.#onChange = []
    for (const wake of waiting) wake()
  }

  /** Fixes the position of those that nothing can precede any more. */
  #settle(): void {
    let open = Number.POSITIVE_INFINITY
    for (const { writtenAt } of this.#open) open = Math.min(open, writtenAt ?? open)
    const last = this.#sights.filter(({ respondedAt }) => respondedAt < open)
    if (last.length === 0) return
    // What precedes one of these in the service's order has its position as well.
    const isBefore = (sight: Sight): boolean =>
      last.some((other) => sight.writtenAt < other.respondedAt && sight.remaining >= other.remaining)
    const all = new Set([...last, ...this.#sights.filter(isBefore)])
    // Their rows are known once they are decoded.
    if ([...all].some(({ flight }) => flight.rows === undefined)) return
    this.#sights = this.#sights.filter((sight) => !all.has(sight))
    const inOrder = [...all].sort((a, b) => b.remaining - a.remaining || a.respondedAt - b.respondedAt)
    const base = this.#base
    // More than was left before: the service counts anew from there on, so these come last.
    const isAnew = ({ remaining }: Sight): boolean => base !== null && remaining > base
    for (const sight of inOrder.filter((sight) => !isAnew(sight))) this.#account(sight)
    const anew = inOrder.filter(isAnew)
    if (anew.length > 0) this.#base = null
    for (const sight of anew) this.#account(sight)
  }

  #account({ remaining, flight }: Sight): void {
    const { rows } = flight
    if (this.#base === null) this.#firstRows.push(rows ?? 0)
    else {
      const searches = this.#base - remaining
      this.#spent += searches
      // What brought no page may have cost something all the same; the page after it is none the dearer.
      if (rows != null) {
        const usual = likelyCost(this.#costs, rows)
        this.#costs.push([rows, searches])
        this.#onCost([rows, searches], usual)
      }
    }
    this.#base = remaining
  }
}
