import type { Month, ResponseTime } from '../../core/index.ts'
import type { PageSizes, Service } from '../../extract/index.ts'
import type { FoldedRun, Journal, JournalEntry } from '../../state/index.ts'

/** Gathers, for the journal, a run's measurements of the service and its searches per month (UTC). */
export class Measurements {
  readonly #service: Service
  readonly #run: string
  readonly #spentBefore: number
  readonly #sizes: PageSizes
  #limit: number | null
  #bindsSizes: boolean
  #spent: number | null = null
  #left: number | null = null
  #reportsSearchesLeft: boolean | null = null
  #month: Month

  /** @param run in the journal: with what it sent and spent before an interruption */
  constructor(service: Service, sizes: PageSizes, { run, searchesSpent, months, started_at }: FoldedRun) {
    this.#service = service
    this.#sizes = sizes
    this.#limit = sizes.limit
    this.#bindsSizes = sizes.bindsSizes
    this.#run = run
    this.#spentBefore = searchesSpent ?? 0
    this.#month = months.at(-1)?.month ?? started_at.slice(0, 7)
  }

  /** The changes since the last call. @param time of the page that is committed with them */
  entries(time: ResponseTime | null): JournalEntry[] {
    const { limit, bindsSizes } = this.#sizes
    const limits: JournalEntry[] = limit === this.#limit ? [] : [{ kind: 'limit', size: limit }]
    const { searchesSpent, searchesRemaining, reportsSearchesLeft } = this.#service.counters
    const spent = searchesSpent === null ? null : this.#spentBefore + searchesSpent
    const news = {
      times: time === null ? undefined : [time],
      binds_sizes: bindsSizes && !this.#bindsSizes ? (true as const) : undefined,
      tells_searches: unlessSame(reportsSearchesLeft, this.#reportsSearchesLeft),
      spent: unlessSame(spent, this.#spent),
      left: unlessSame(searchesRemaining, this.#left),
    }
    this.#limit = limit
    this.#bindsSizes = bindsSizes
    this.#reportsSearchesLeft = reportsSearchesLeft
    this.#spent = spent
    this.#left = searchesRemaining
    const isNew = Object.values(news).some((value) => value !== undefined)
    return isNew ? [...limits, { kind: 'measured', ...news }] : limits
  }

  async enterMonth(journal: Journal): Promise<void> {
    const { month, searchesBefore } = this.#service.thisMonth()
    if (month <= this.#month) return
    this.#month = month
    const searches = this.#spentBefore + searchesBefore
    await journal.append([{ kind: 'month', run: this.#run, month, searches }])
  }
}

function unlessSame<T>(now: T | null, before: T | null): T | undefined {
  return now === null || now === before ? undefined : now
}
