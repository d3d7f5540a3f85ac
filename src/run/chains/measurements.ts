import type { JournalEntry, ResponseTime } from '../../core/index.ts'
import type { Service, SizeChange } from '../../extract/index.ts'

/** Gathers what a run learns of the service, for the journal entries of its pages. */
export class Measurements {
  readonly #service: Pick<Service, 'counters' | 'takeCosts'>
  readonly #spentBefore: number
  #limits: SizeChange[] = []
  #spent: number | null = null
  #left: number | null = null
  #tells: boolean | null = null

  /** @param spentBefore what the run had spent already, where it goes on after a break */
  constructor(service: Pick<Service, 'counters' | 'takeCosts'>, spentBefore: number) {
    this.#service = service
    this.#spentBefore = spentBefore
  }

  /** A query goes on with pages of another size. */
  changed(change: SizeChange): void {
    this.#limits.push(change)
  }

  /** What is new since the last call. @param time of a page that is committed with it */
  entries(time: ResponseTime | null): JournalEntry[] {
    const limits = this.#limits.splice(0).map((change): JournalEntry => ({ kind: 'limit', ...change }))
    const { searchesSpent, searchesRemaining, tellsSearches } = this.#service.counters
    const costs = this.#service.takeCosts()
    const news = {
      ...(costs.length === 0
        ? {}
        : { costs: costs.map(([rows, searches]): [number, number] => [rows, searches]) }),
      ...(time === null ? {} : { times: [[time[0], time[1]] as [number, number]] }),
      ...(tellsSearches === null || tellsSearches === this.#tells ? {} : { tells: tellsSearches }),
      ...(searchesSpent === null || searchesSpent === this.#spent
        ? {}
        : { spent: this.#spentBefore + searchesSpent }),
      ...(searchesRemaining === null || searchesRemaining === this.#left ? {} : { left: searchesRemaining }),
    }
    this.#tells = tellsSearches
    this.#spent = searchesSpent
    this.#left = searchesRemaining
    return Object.keys(news).length === 0 ? limits : [...limits, { kind: 'measured', ...news }]
  }
}
