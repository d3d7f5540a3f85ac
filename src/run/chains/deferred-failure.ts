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
