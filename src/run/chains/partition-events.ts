import type { ExportError } from '../../core/index.ts'
import type { RunObserver } from '../setting/observer.ts'
import type { ChainProgress } from './chain-progress.ts'
import type { PageProgress } from './page-progress.ts'

/** Tells the log which partitions a chain begins with, which are done and which fail: each start comes before its end. */
export class PartitionEvents {
  readonly #chain: ChainProgress
  readonly #log: RunObserver['log']
  /** Indexes of those that have started and are not done. */
  readonly #started = new Set<number>()

  constructor(chain: ChainProgress, log: RunObserver['log']) {
    this.#chain = chain
    this.#log = log
  }

  /** The chain is taken up. */
  begin(): void {
    this.#start(this.#chain.watermark)
  }

  committed({ finished, reopened }: PageProgress): void {
    for (const index of reopened) this.#start(index)
    for (const index of finished) {
      this.#start(index)
      this.#started.delete(index)
      const { rows = 0, quarantined = 0, requests = 0 } = this.#chain.recordAt(index) ?? {}
      const { key } = this.#chain.partitionAt(index)
      const facts = { event: 'partition.done', partition: key, rows, quarantined, requests }
      this.#log('info', 'partition done', facts)
    }
    if (!this.#chain.isOver) this.#start(this.#chain.watermark)
  }

  /** @param facts requests sent in vain, and how many failed for the same cause before */
  failed(
    index: number,
    { kind, message }: ExportError,
    facts: { readonly requests: number; readonly alike: number },
  ): void {
    this.#start(index)
    const { key } = this.#chain.partitionAt(index)
    this.#log('error', message, { event: 'partition.failed', partition: key, kind, ...facts })
  }

  #start(index: number): void {
    if (index >= this.#chain.windows.count || this.#started.has(index)) return
    this.#started.add(index)
    const { key } = this.#chain.partitionAt(index)
    const rows = this.#chain.recordAt(index)?.rows ?? 0
    this.#log('info', 'partition started', {
      event: 'partition.start',
      partition: key,
      chain: this.#chain.chain,
      rows,
    })
  }
}
