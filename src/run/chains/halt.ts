import type { ExportError } from '../../core/index.ts'

/** The way for one part of a run to stop all of it, and to say why. */
export class Halt {
  readonly #controller = new AbortController()
  /** Aborts when waits and new requests are to end: from outside, or for an error that concerns everybody. */
  readonly signal: AbortSignal
  error: ExportError | null = null

  constructor(stop: AbortSignal) {
    this.signal = AbortSignal.any([stop, this.#controller.signal])
  }

  /** Whether no new partition is to be begun. */
  get halted(): boolean {
    return this.error !== null || this.signal.aborted
  }

  /**
   * The first cause stands; what the others say when they are told to stop is not one. When the budget is
   * used up, requests that it still covers go on: each of the others meets its end by itself.
   */
  because(error: ExportError): void {
    if (this.error === null || this.error.kind === 'interrupted') this.error = error
    if (error.kind !== 'quota') this.#controller.abort(error)
  }

  /** Stops the run for an error that is thrown on. */
  abort(): void {
    this.#controller.abort()
  }
}

/** A failure that is reported later: what comes next may show that it is not that partition's own. */
export class DeferredFailure {
  #report: (() => Promise<void>) | null = null

  get isHeld(): boolean {
    return this.#report !== null
  }

  hold(report: () => Promise<void>): void {
    this.#report = report
  }

  drop(): void {
    this.#report = null
  }

  async settle(): Promise<void> {
    const report = this.#report
    this.#report = null
    await report?.()
  }
}
