import type { DecodedPage } from '../../core/index.ts'
import type { Fact } from '../../state/index.ts'

// A service that makes up new names with every page is not to fill the log.
const MAX_FIELDS_NAMED = 1000

/** What this run has done so far, and what is left; counted as it happens. */
export class Tally {
  done = 0
  readonly doneBefore: number
  failed = 0
  /** Windows that its chains have come through, parts of them as fractions. */
  advanced = 0
  rows = 0
  shards = 0
  bytes = 0
  quarantined = 0
  /** NUL characters that became U+FFFD, in CSV. */
  replacedNuls = 0
  repeated = 0
  /** Partitions that were done when more of their rows came. */
  reopened = 0
  /** Partitions that failed in a row, with no answer that could be used in between. */
  failuresInRow = 0
  /** Since when pages are being committed, epoch ms; in the order of their beginnings. */
  readonly #commits = new Set<{ readonly sinceMs: number }>()
  #chains = 0
  #chainPages = 0
  readonly failures: { readonly partition: string; readonly message: string }[] = []
  readonly #unknownFields = new Set<string>()

  constructor({ done }: { readonly done: number }) {
    this.done = done
    this.doneBefore = done
  }

  /** A page is being committed. @returns to be called when it is, or can't be */
  committing(nowMs: number): () => void {
    const commit = { sinceMs: nowMs }
    this.#commits.add(commit)
    return () => this.#commits.delete(commit)
  }

  /** Since when the page is being committed that came first; null: none is. */
  get committingSinceMs(): number | null {
    const [first] = this.#commits
    return first?.sinceMs ?? null
  }

  page(page: DecodedPage): void {
    this.rows += page.rows
    this.quarantined += page.quarantined.length
    this.repeated += page.repeated
    this.failuresInRow = 0
  }

  /** A chain has come to its end with so many pages. */
  chain(pages: number): void {
    this.#chains++
    this.#chainPages += pages
  }

  /** Pages that a chain takes on average; null while there are too few to say. */
  get pagesOfChains(): number | null {
    return this.#chains < 3 ? null : this.#chainPages / this.#chains
  }

  /** Those of a page's unknown fields that no page of this run had before. */
  newFields(page: DecodedPage): readonly string[] {
    if (this.#unknownFields.size >= MAX_FIELDS_NAMED) return []
    const fresh = Object.keys(page.unknownFields).filter((name) => !this.#unknownFields.has(name))
    for (const name of fresh) this.#unknownFields.add(name)
    return fresh
  }

  recorded(lines: readonly Fact[]): void {
    for (const line of lines) {
      if (line.kind !== 'seal') continue
      this.shards++
      this.bytes += line.bytes
      this.replacedNuls += line.replaced ?? 0
    }
  }

  partitionFailed(partition: string, message: string): void {
    this.failed++
    this.failuresInRow++
    // A summary of ten thousand failures helps nobody; the rest is in `status`.
    if (this.failures.length < 100) this.failures.push({ partition, message })
  }
}
