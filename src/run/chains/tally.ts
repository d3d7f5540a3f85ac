import type { DecodedPage } from '../../core/index.ts'
import type { Fact } from '../../state/index.ts'

// A service that makes up new names with every page is not to fill the log.
const MAX_FIELDS_NAMED = 1000
const MAX_REASONS = 50
const MAX_REASON = 200

/** @param items of each query */
export function leastSearches(items: Iterable<number>, pageSize: number): number {
  let searches = 0
  for (const each of items) searches += Math.max(1, Math.ceil(each / pageSize))
  return searches
}

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
  /** Items by query. */
  readonly #items = new Map<string, number>()
  readonly #reasons = new Map<string, number>()

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

  /** @param query its name */
  page(page: DecodedPage, query: string): void {
    this.#items.set(query, (this.#items.get(query) ?? 0) + page.items - page.repeated)
    for (const { issues } of page.quarantined) this.#setAside(issues)
    this.rows += page.rows
    this.quarantined += page.quarantined.length
    this.repeated += page.repeated
    this.failuresInRow = 0
  }

  /** The fewest searches that the items of this run could have come with, a query's apart from others'. */
  least(pageSize: number): number {
    return leastSearches(this.#items.values(), pageSize)
  }

  /** Why items were set aside, and how many, whichever entry of a list it was; null: none were. */
  get reasons(): Record<string, number> | null {
    return this.#reasons.size === 0 ? null : Object.fromEntries(this.#reasons)
  }

  #setAside(issues: DecodedPage['quarantined'][number]['issues']): void {
    const [first] = issues
    if (first === undefined) return
    const reason = `${first.path.replace(/\d+/g, '*')}: ${first.message}`.slice(0, MAX_REASON)
    const under = this.#reasons.has(reason) || this.#reasons.size < MAX_REASONS ? reason : '…'
    this.#reasons.set(under, (this.#reasons.get(under) ?? 0) + 1)
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
