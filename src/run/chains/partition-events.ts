import type { ExportError } from '../../core/index.ts'
import type { RunObserver } from '../setting/index.ts'
import type { ChainWork } from './chain-work.ts'
import type { CommittedPage } from './export-chain.ts'

/** Tells the log which partitions a chain begins with, which are done and which fail: each start comes before its end. */
export class PartitionEvents {
  readonly #chain: ChainWork
  readonly #log: RunObserver['log']
  /** Places of those that have started and are not done. */
  readonly #started = new Set<number>()

  constructor(chain: ChainWork, log: RunObserver['log']) {
    this.#chain = chain
    this.#log = log
  }

  /** The chain is taken up. */
  begin(): void {
    this.#start(this.#chain.passed)
  }

  committed({ finished, reopened }: CommittedPage): void {
    for (const place of reopened) this.#start(place)
    for (const place of finished) {
      this.#start(place)
      this.#started.delete(place)
      const { rows = 0, quarantined = 0, requests = 0 } = this.#chain.recordAt(place) ?? {}
      const { key } = this.#chain.partitionAt(place)
      const facts = { event: 'partition.done', partition: key, rows, quarantined, requests }
      this.#log('info', 'partition done', facts)
    }
    if (!this.#chain.isOver) this.#start(this.#chain.passed)
  }

  /** @param facts requests sent in vain, and how many failed for the same cause before */
  failed(
    place: number,
    { kind, message }: ExportError,
    facts: { readonly requests: number; readonly alike: number },
  ): void {
    this.#start(place)
    const { key } = this.#chain.partitionAt(place)
    this.#log('error', message, { event: 'partition.failed', partition: key, kind, ...facts })
  }

  #start(place: number): void {
    if (place >= this.#chain.windows.count || this.#started.has(place)) return
    this.#started.add(place)
    const { key } = this.#chain.partitionAt(place)
    const rows = this.#chain.recordAt(place)?.rows ?? 0
    this.#log('info', 'partition started', {
      event: 'partition.start',
      partition: key,
      chain: this.#chain.chain,
      rows,
    })
  }
}
