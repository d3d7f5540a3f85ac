import { type Clock, type Month, monthOf } from '../../core/index.ts'
import type { Service } from '../../extract/index.ts'
import type { Checkpoint, RunRecord } from '../../state/index.ts'

/** Journals when a run enters another calendar month (UTC), and what it had sent and spent before. */
export class MonthNotes {
  readonly #run: string
  readonly #checkpoint: Checkpoint
  readonly #clock: Clock
  readonly #sentBefore: number
  readonly #spentBefore: number
  #noted: Month

  /** @param earlier the journal's counts of the run, if it resumes; null: it begins */
  constructor(run: string, earlier: RunRecord | null, checkpoint: Checkpoint, clock: Clock) {
    this.#run = run
    this.#checkpoint = checkpoint
    this.#clock = clock
    this.#sentBefore = earlier?.requests ?? 0
    this.#spentBefore = earlier?.searches ?? 0
    this.#noted =
      earlier === null
        ? monthOf(clock.now())
        : (earlier.months.at(-1)?.month ?? earlier.started_at.slice(0, 7))
  }

  async settle({ counters }: Service): Promise<void> {
    const month = monthOf(this.#clock.now())
    if (month <= this.#noted) return
    this.#noted = month
    const before = this.#sentBefore + counters.requests - counters.requestsIn(month)
    const spent = (counters.searchesSpent ?? 0) - (counters.searchesIn(month) ?? 0)
    const searches = this.#spentBefore + spent
    await this.#checkpoint.append([{ kind: 'month', run: this.#run, month, before, searches }])
  }
}
