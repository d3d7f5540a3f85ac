import type { ExportError, Log } from '../../core/index.ts'
import type { Chain, PageChange, SplitPage } from './chain.ts'
import type { Tally } from './tally.ts'

/** Counts and logs which partitions of a chain start, are done, and fail; each start comes before its end. */
export class ChainReport {
  readonly #chain: Chain
  readonly #tally: Tally
  readonly #log: Log
  readonly #started = new Set<number>()

  constructor(chain: Chain, tally: Tally, log: Log) {
    this.#chain = chain
    this.#tally = tally
    this.#log = log
  }

  begin(): void {
    this.#start(this.#chain.watermark)
  }

  /** @param finished partitions that are done with the page */
  committed(
    { page, ...split }: SplitPage,
    { entry, reopened }: PageChange,
    finished: readonly number[],
  ): void {
    // Without what belongs to windows that other chains have.
    const rows = [...split.rows.values()].reduce((sum, each) => sum + each, 0)
    const quarantined = [...split.rejected.values()].flat()
    const { repeated = 0 } = entry
    this.#tally.page(
      { rows, repeated, quarantined, unknownFields: page.unknownFields },
      this.#chain.current.key,
    )
    for (const index of reopened) {
      this.#tally.reopen(this.#chain.partitionAt(index).key)
      this.#start(index)
    }
    this.done(finished)
    if (!this.#chain.isOver) this.#start(this.#chain.watermark)
  }

  done(indexes: readonly number[]): void {
    for (const index of indexes) {
      this.#start(index)
      this.#started.delete(index)
      const { key: partition } = this.#chain.partitionAt(index)
      this.#tally.finish(partition)
      const { rows = 0, quarantined = 0, requests = 0 } = this.#chain.foldedAt(index) ?? {}
      this.#log('info', 'partition done', { event: 'partition.done', partition, rows, quarantined, requests })
    }
  }

  failed(index: number, error: ExportError, requests: number): void {
    this.#start(index)
    this.#tally.partitionFailed(this.#chain.partitionAt(index).key, error, requests)
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
