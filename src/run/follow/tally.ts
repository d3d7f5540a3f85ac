import type { ErrorKind, ExportError, Log } from '../../core/index.ts'
import type { RejectedItem } from '../../rows/index.ts'
import type { Chain, PageChange, SplitPage } from './chain.ts'
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

/** Counts what a run does, and logs what somebody should know of it. The start of a partition comes before its end. */
export class Tally {
  done = 0
  readonly doneBefore: number
  failed = 0
  /** Windows that its chains have passed, parts as fractions. */
  advanced = 0
  rows = 0
  quarantined = 0
  repeated = 0
  /** Partitions that failed in a row, without a usable response in between. */
  failuresInRow = 0
  readonly failures: { readonly partition: string; readonly message: string }[] = []
  readonly #log: Log
  readonly #unknownFields: Set<string>
  readonly #reasons = new Map<string, number>()
  readonly #causes = new Map<string, Cause>()
  readonly #started = new Set<string>()
  readonly #failed = new Set<string>()
  #hasReopened = false

  /** @param known unknown fields that earlier runs have reported */
  constructor(done: number, known: Iterable<string>, log: Log) {
    this.done = done
    this.doneBefore = done
    this.#unknownFields = new Set(known)
    this.#log = log
  }

  /** A chain is followed. */
  follows(chain: Chain): void {
    this.#start(chain, chain.watermark)
  }

  #start(chain: Chain, index: number): void {
    if (index >= chain.windows.count) return
    const { key: partition } = chain.partitionAt(index)
    if (this.#started.has(partition)) return
    this.#started.add(partition)
    const rows = chain.foldedAt(index)?.rows ?? 0
    const fields = { event: 'partition.start', partition, chain: chain.chain, rows }
    this.#log('info', 'partition started', fields)
  }

  /** @param finished partitions that are done with the page */
  committed(
    chain: Chain,
    { page, ...split }: SplitPage,
    { entry: { repeated = 0 }, reopened }: PageChange,
    finished: readonly number[],
  ): void {
    if (repeated > 0 && this.repeated === 0) {
      const message = 'the service repeats rows on later pages; each is exported once'
      this.#log('warn', message, { partition: chain.current.key, repeated })
    }
    // Without what belongs to windows that other chains have.
    const rows = [...split.rows.values()].reduce((sum, each) => sum + each, 0)
    const rejected = [...split.rejected.values()].flat()
    for (const { issues } of rejected) countReason(this.#reasons, issues)
    this.rows += rows
    this.quarantined += rejected.length
    this.repeated += repeated
    // A page of rejected items alone is none that can be used.
    if (rows > 0 || rejected.length === 0) this.failuresInRow = 0
    this.#nameNew(Object.keys(page.unknownFields))
    for (const index of reopened) this.#reopen(chain, index)
    this.finish(chain, finished)
    if (!chain.isOver) this.#start(chain, chain.watermark)
  }

  #nameNew(fields: readonly string[]): void {
    const known = this.#unknownFields
    const fresh = known.size >= MAX_FIELDS_NAMED ? [] : fields.filter((name) => !known.has(name))
    if (fresh.length === 0) return
    for (const name of fresh) known.add(name)
    const message =
      'the service sends fields that are not exported; transform.extra_columns adds them as columns'
    this.#log('warn', message, { fields: fresh.join(', ') })
  }

  /** Partitions are done. One that failed in this run counts as failed, also if late rows make up for it. */
  finish(chain: Chain, indexes: readonly number[]): void {
    for (const index of indexes) {
      this.#start(chain, index)
      const { key: partition } = chain.partitionAt(index)
      this.#started.delete(partition)
      if (!this.#failed.has(partition)) this.done++
      const { rows = 0, quarantined = 0, requests = 0 } = chain.foldedAt(index) ?? {}
      this.#log('info', 'partition done', { event: 'partition.done', partition, rows, quarantined, requests })
    }
  }

  #reopen(chain: Chain, index: number): void {
    const { key: partition } = chain.partitionAt(index)
    if (!this.#hasReopened) {
      const message = 'late rows for finished partitions; they are written to additional shards'
      this.#log('warn', message, { partition })
    }
    this.#hasReopened = true
    if (!this.#failed.has(partition)) this.done--
    this.#start(chain, index)
  }

  /** The number of quarantined items by reason, regardless of the index in a list. */
  get reasons(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#reasons)
  }

  fail(chain: Chain, index: number, error: ExportError, requests: number): void {
    this.#start(chain, index)
    this.partitionFailed(chain.partitionAt(index).key, error, requests)
  }

  partitionFailed(partition: string, error: ExportError, requests: number): void {
    const { kind, message, next, onTerminal } = error
    this.#started.delete(partition)
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
    const alike = cause.partitions++
    if (error instanceof PartitionFault)
      for (const issues of error.rejected) countReason(cause.reasons, issues)
    this.#log('error', onTerminal, { event: 'partition.failed', partition, kind, requests, alike })
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
