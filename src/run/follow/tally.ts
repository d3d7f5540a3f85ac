import type { ErrorKind, ExportError, Log } from '../../core/index.ts'
import type { DecodedPage, RejectedItem } from '../../rows/index.ts'
import type { Chain, PageChange } from './chain.ts'
import { PartitionFault } from './pages/quarantine.ts'

// A service that sends new names with every page must not fill the log.
const MAX_FIELDS_NAMED = 1000
const MAX_REASONS = 50
const MAX_REASON = 200

// More causes are not readable; `status` shows the rest.
const MAX_CAUSES = 100

export type FailureCause = {
  readonly what: string
  readonly kind: ErrorKind
  readonly partitions: number
  readonly first: string
  readonly next: string
  /** The number of rejected items by field and rule. */
  readonly reasons: Readonly<Record<string, number>>
}

type Cause = Omit<FailureCause, 'what' | 'partitions' | 'reasons'> & {
  partitions: number
  readonly reasons: Map<string, number>
}

export class Tally {
  done = 0
  readonly doneBefore: number
  failed = 0
  /** Windows that its chains have passed, parts as fractions. */
  advanced = 0
  rows = 0
  quarantined = 0
  repeated = 0
  /** Whether late rows came for a partition that had ended. */
  hasReopened = false
  /** Partitions that failed in a row, without a usable response in between. */
  failuresInRow = 0
  readonly failures: { readonly partition: string; readonly message: string }[] = []
  readonly #unknownFields: Set<string>
  readonly #reasons = new Map<string, number>()
  readonly #causes = new Map<string, Cause>()
  readonly #failed = new Set<string>()

  /** @param known unknown fields that earlier runs have reported */
  constructor({ done }: { readonly done: number }, known: Iterable<string> = []) {
    this.done = done
    this.doneBefore = done
    this.#unknownFields = new Set(known)
  }

  page(page: Pick<DecodedPage, 'rows' | 'repeated' | 'quarantined'>): void {
    for (const { issues } of page.quarantined) countReason(this.#reasons, issues)
    this.rows += page.rows
    this.quarantined += page.quarantined.length
    this.repeated += page.repeated
    // A page of rejected items alone is none that can be used.
    if (page.rows > 0 || page.quarantined.length === 0) this.failuresInRow = 0
  }

  /** A partition is done. One that failed in this run counts as failed, also if late rows make up for it. */
  finish(partition: string): void {
    if (!this.#failed.has(partition)) this.done++
  }

  reopen(partition: string): void {
    this.hasReopened = true
    if (!this.#failed.has(partition)) this.done--
  }

  /** The number of quarantined items by reason, regardless of the index in a list. */
  get reasons(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#reasons)
  }

  newFields(page: DecodedPage): readonly string[] {
    if (this.#unknownFields.size >= MAX_FIELDS_NAMED) return []
    const fresh = Object.keys(page.unknownFields).filter((name) => !this.#unknownFields.has(name))
    for (const name of fresh) this.#unknownFields.add(name)
    return fresh
  }

  /** @returns how many partitions failed for the same cause before */
  partitionFailed(partition: string, error: ExportError): number {
    const { kind, message, next } = error
    // Late rows may fail a partition again.
    if (!this.#failed.has(partition)) this.failed++
    this.#failed.add(partition)
    this.failuresInRow++
    // A summary of ten thousand failures is not readable; `status` shows the rest.
    if (this.failures.length < 100) this.failures.push({ partition, message })
    const what = causeOf(error)
    const known = this.#causes.get(what)
    const cause = known ?? { kind, partitions: 0, first: partition, next, reasons: new Map() }
    if (known === undefined && this.#causes.size < MAX_CAUSES) this.#causes.set(what, cause)
    cause.partitions++
    if (error instanceof PartitionFault)
      for (const issues of error.rejected) countReason(cause.reasons, issues)
    return cause.partitions - 1
  }

  get causes(): readonly FailureCause[] {
    const all = [...this.#causes].map(([what, cause]) => ({
      what,
      ...cause,
      reasons: Object.fromEntries(cause.reasons),
    }))
    return all.sort((a, b) => b.partitions - a.partitions)
  }
}

/** What all partitions that fail for the same reason share. */
export function causeOf(error: ExportError): string {
  return error instanceof PartitionFault ? error.common : error.what
}

type Issues = RejectedItem['issues']

function countReason(reasons: Map<string, number>, [first]: Issues): void {
  if (first === undefined) return
  const reason = `${first.path.replace(/\d+/g, '*')}: ${first.message}`.slice(0, MAX_REASON)
  const under = reasons.has(reason) || reasons.size < MAX_REASONS ? reason : '…'
  reasons.set(under, (reasons.get(under) ?? 0) + 1)
}

/** Logs which partitions of a chain start, are done, and fail; each start comes before its end. */
export class PartitionEvents {
  readonly #chain: Chain
  readonly #log: Log
  readonly #started = new Set<number>()

  constructor(chain: Chain, log: Log) {
    this.#chain = chain
    this.#log = log
  }

  begin(): void {
    this.#start(this.#chain.watermark)
  }

  committed({ finished, reopened }: Pick<PageChange, 'finished' | 'reopened'>): void {
    for (const index of reopened) this.#start(index)
    for (const index of finished) {
      this.#start(index)
      this.#started.delete(index)
      const { rows = 0, quarantined = 0, requests = 0 } = this.#chain.foldedAt(index) ?? {}
      const { key } = this.#chain.partitionAt(index)
      const fields = { event: 'partition.done', partition: key, rows, quarantined, requests }
      this.#log('info', 'partition done', fields)
    }
    if (!this.#chain.isOver) this.#start(this.#chain.watermark)
  }

  failed(
    index: number,
    { kind, onTerminal }: ExportError,
    counts: { readonly requests: number; readonly alike: number },
  ): void {
    this.#start(index)
    const { key } = this.#chain.partitionAt(index)
    this.#log('error', onTerminal, { event: 'partition.failed', partition: key, kind, ...counts })
  }

  #start(index: number): void {
    if (index >= this.#chain.windows.count || this.#started.has(index)) return
    this.#started.add(index)
    const { key } = this.#chain.partitionAt(index)
    const rows = this.#chain.foldedAt(index)?.rows ?? 0
    const fields = { event: 'partition.start', partition: key, chain: this.#chain.chain, rows }
    this.#log('info', 'partition started', fields)
  }
}
