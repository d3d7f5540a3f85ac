/** Ended row groups that wait to be encoded. Pages are committed meanwhile; then they wait. */
const MAX_ROW_GROUPS = 3
const MAX_WORK = 64

/** The work behind the commits. After a failure nothing more is committed. */
export class Backlog {
  readonly #work = new Set<Promise<void>>()
  #rowGroups = 0
  #failure: { readonly error: unknown } | null = null

  add(work: Promise<void>): void {
    const settled = work.catch((error: unknown) => this.fail(error)).finally(() => this.#work.delete(settled))
    this.#work.add(settled)
  }

  /** Counts a row group until it is encoded. */
  async rowGroup(encoding: Promise<void>): Promise<void> {
    this.#rowGroups++
    try {
      await encoding
    } finally {
      this.#rowGroups--
    }
  }

  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** @throws the first failure */
  requireWell(): void {
    if (this.#failure !== null) throw this.#failure.error
  }

  /** Resolves when there is room for more work. @throws what failed */
  async room(): Promise<void> {
    while (this.#failure === null && (this.#rowGroups >= MAX_ROW_GROUPS || this.#work.size >= MAX_WORK))
      await Promise.race(this.#work)
    this.requireWell()
  }

  /** Resolves when everything is done. @throws what failed */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work)
    this.requireWell()
  }
}
