import {
  ExportError,
  type OwnedStore,
  type Scratch,
  type SealEntry,
  type Serial,
  type ShardIdentity,
  type Span,
  spanOf,
} from '../core/index.ts'
import { sealedPath, shardPath } from './layout.ts'
import type { LoggedBatch } from './row-cache.ts'
import type { RowGroupMeasure } from './row-group-measure.ts'
import type { ShardCoder, ShardCoding } from './shard-coder.ts'

/** What all shards of a set share. */
export type OpenShardTools = {
  readonly store: OwnedStore
  readonly coder: ShardCoder
  /** Encodes one row group at a time. */
  readonly encoding: Serial
}

/** Rows that are not encoded yet: those of a page, or in the log. */
export type RowsToEncode = { readonly rows: number; readonly batch: Uint8Array | LoggedBatch }

/**
 * One shard while it gets rows. Its row groups are encoded one after the other, into a scratch that nothing durable
 * depends on: after a crash they are encoded again from the log.
 */
export class OpenShard {
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** How full the next row group is. */
  readonly measure: RowGroupMeasure
  rows = 0
  /** Whether none of its rows is in the log. */
  isFresh = true

  readonly #tools: OpenShardTools
  readonly #partitions = new Set<string>()
  readonly #coding: ShardCoding
  #encoded = 0
  #span: Span | null = null
  #replaced = 0
  /** Rows of the next row group. */
  #next: RowsToEncode[] = []
  #scratch: Scratch | null = null
  /** The last work on the shard. */
  #last: Promise<void> = Promise.resolve()

  constructor(tools: OpenShardTools, measure: RowGroupMeasure, { shard, folder, part }: ShardIdentity) {
    this.#tools = tools
    this.#coding = tools.coder.begin()
    this.measure = measure
    this.shard = shard
    this.folder = folder
    this.part = part
  }

  /** Counts rows of a partition that belong to it. */
  count(partition: string, rows: number, importedAt: Span | null): void {
    this.#partitions.add(partition)
    this.rows += rows
    this.#span = spanOf(this.#span, importedAt)
  }

  /** Whether it has rows in a row group that has not ended. */
  get hasRest(): boolean {
    return this.#next.length > 0
  }

  /** Adds rows to the next row group. */
  add(rows: RowsToEncode): void {
    this.#next.push(rows)
  }

  /** Ends the row group: it is encoded after the ones before it. @returns when that is done */
  endRowGroup(): Promise<void> {
    const rows = this.#next
    this.#next = []
    const before = this.#last
    this.#last = (async () => {
      await before
      // What waits for a commit must not keep other shards from being encoded.
      await Promise.all(rows.map(({ batch }) => (batch instanceof Uint8Array ? null : batch.at)))
      await this.#tools.encoding(() => this.#encode(rows))
    })()
    this.#last.catch(() => {})
    return this.#last
  }

  /** Ends the shard. Commit the entry, then publish it. */
  async seal(extension: string): Promise<SealEntry> {
    if (this.hasRest) throw new Error('the shard has rows that are not encoded')
    await this.#last
    if (this.#encoded !== this.rows) throw this.#otherRows()
    const { parts, sha256 } = await this.#coding.end()
    const scratch = await this.#append(parts)
    const bytes = scratch.size
    // A file of that name has the same content.
    await scratch.create(sealedPath(this.shard, sha256))
    return {
      kind: 'seal',
      shard: this.shard,
      path: shardPath(this.folder, this.part, extension),
      rows: this.rows,
      bytes,
      sha256,
      partitions: [...this.#partitions],
      imported_at: this.#span,
      ...(this.#replaced === 0 ? {} : { replaced: this.#replaced }),
    }
  }

  /** Ends the work on it and removes its scratch. */
  async discard(): Promise<void> {
    await this.#last.catch(() => {})
    this.#coding.discard()
    await this.#scratch?.discard()
  }

  async #encode(rows: readonly RowsToEncode[]): Promise<void> {
    const batches = await Promise.all(
      rows.map(({ batch }) => (batch instanceof Uint8Array ? batch : batch.take())),
    )
    const encoded = await this.#coding.encode(batches)
    for (const [i, { batch }] of rows.entries()) {
      if (!(batch instanceof Uint8Array)) batch.give(batches[i]!)
    }
    this.#encoded += encoded.rows
    this.#replaced += encoded.replaced
    await this.#append(encoded.parts)
  }

  async #append(parts: readonly Uint8Array[]): Promise<Scratch> {
    this.#scratch ??= this.#tools.store.scratch()
    for (const part of parts) await this.#scratch.append(part)
    return this.#scratch
  }

  #otherRows(): ExportError {
    return new ExportError({
      kind: 'damaged',
      what: `The shard would hold ${this.#encoded} rows, but ${this.rows} are committed`,
      where: `${this.folder}, part ${this.part}`,
      next: 'Run again: its rows are read from the log anew. Report this error if it comes again.',
    })
  }
}
