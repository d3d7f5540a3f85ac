import { type Clock, type Month, monthOf } from '../../core/index.ts'
import type { Service } from '../../extract/index.ts'
import type { Checkpoint } from '../../state/index.ts'

/** Puts on record when a run goes into another calendar month (UTC), and what it had sent before. */
export class MonthNotes {
  readonly #run: string
  readonly #checkpoint: Checkpoint
  readonly #clock: Clock
  #noted: Month

  constructor(run: string, startedMs: number, checkpoint: Checkpoint, clock: Clock) {
    this.#run = run
    this.#checkpoint = checkpoint
    this.#clock = clock
    this.#noted = monthOf(startedMs)
  }

  async settle({ counters }: Service): Promise<void> {
    const month = monthOf(this.#clock.now())
    if (month <= this.#noted) return
    this.#noted = month
    const before = counters.requests - counters.requestsIn(month)
    await this.#checkpoint.append([{ kind: 'month', run: this.#run, month, before }])
  }
}
