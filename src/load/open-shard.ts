import { ExportError, type OwnedStore, type Scratch, type Serial } from '../core/index.ts'
import { type Span, spanOf } from '../rows/index.ts'
import { type SealEntry, type ShardIdentity, schemaKey } from '../state/index.ts'
import { sealedPath, shardPath } from './layout.ts'
import { LoggedBatch } from './row-cache.ts'
import type { RowGroupMeasure } from './row-group-measure.ts'
import type { ShardCoder, ShardCoding } from './shard-coder.ts'

export type OpenShardTools = {
  readonly store: OwnedStore
  readonly coder: ShardCoder
  /** Encodes one row group at a time. */
  readonly encoding: Serial
}

/** A record batch that is not encoded yet: of a page, or in the log. */
type BatchToEncode = Uint8Array | LoggedBatch

/** Short record batches are joined when they have so many bytes. Those of pages of 100 rows take a third then. */
const JOINED_BYTES = 1 << 20
const NONE = { count: 0, bytes: 0 }

/** Its row groups are encoded into a scratch that nothing durable depends on: after a crash, again from the log. */
export class OpenShard {
  readonly shard: number
  readonly folder: string
  readonly part: number
  readonly schema: number
  /** How full the next row group is. */
  readonly measure: RowGroupMeasure
  rows = 0
  /** Whether none of its rows is in the log. */
  isFresh = true

  readonly #tools: OpenShardTools
  readonly #partitions = new Set<string>()
  #coding: ShardCoding | null = null
  #encoded = 0
  #span: Span | null = null
  /** Rows of the next row group. */
  #next: BatchToEncode[] = []
  /** How many of these, the last ones, are short. */
  #short = NONE
  #scratch: Scratch | null = null
  #last: Promise<void> = Promise.resolve()

  constructor(
    tools: OpenShardTools,
    measure: RowGroupMeasure,
    { shard, folder, part, schema }: ShardIdentity,
  ) {
    this.#tools = tools
    this.measure = measure
    this.shard = shard
    this.folder = folder
    this.part = part
    this.schema = schema
  }

  count(partition: string, rows: number, importedAt: Span | null): void {
    this.#partitions.add(partition)
    this.rows += rows
    this.#span = spanOf(this.#span, importedAt)
  }

  /** Whether it has rows in a row group that has not ended. */
  get hasRest(): boolean {
    return this.#next.length > 0
  }

  add(batch: BatchToEncode): void {
    this.#next.push(batch)
    const bytes = batch instanceof LoggedBatch ? batch.shortBytes : 0
    this.#short = bytes === 0 ? NONE : { count: this.#short.count + 1, bytes: this.#short.bytes + bytes }
    if (this.#short.bytes < JOINED_BYTES) return
    const short = this.#next.splice(-this.#short.count) as LoggedBatch[]
    this.#next.push(...LoggedBatch.joined(short))
    this.#short = NONE
  }

  /** Ends the row group: it is encoded after the ones before it. @returns when that is done */
  endRowGroup(): Promise<void> {
    const batches = this.#next
    this.#next = []
    this.#short = NONE
    const before = this.#last
    this.#last = (async () => {
      await before
      // What waits for a commit must not keep other shards from being encoded.
      await Promise.all(batches.map((batch) => (batch instanceof Uint8Array ? null : batch.at)))
      await this.#tools.encoding(() => this.#encode(batches))
    })()
    this.#last.catch(() => {})
    return this.#last
  }

  /** Ends the shard. Commit the entry, then publish it. */
  async seal(extension: string): Promise<SealEntry> {
    if (this.hasRest) throw new Error('the shard has rows that are not encoded')
    await this.#last
    if (this.#encoded !== this.rows)
      throw new ExportError({
        kind: 'damaged',
        what: `The shard would hold ${this.#encoded} rows, but ${this.rows} are committed`,
        where: `${this.folder}, part ${this.part}`,
        next: 'Run again: its rows are read from the log anew. Report this error if it comes again.',
      })
    const { parts, sha256 } = await (await this.#begun()).end()
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
      ...schemaKey(this.schema),
    }
  }

  async discard(): Promise<void> {
    await this.#last.catch(() => {})
    await this.#scratch?.discard()
  }

  async #encode(batches: readonly BatchToEncode[]): Promise<void> {
    const taken = await Promise.all(
      batches.map((batch) => (batch instanceof Uint8Array ? batch : batch.take())),
    )
    const encoded = await (await this.#begun()).encode(taken)
    this.#encoded += encoded.rows
    await this.#append(encoded.parts)
  }

  async #begun(): Promise<ShardCoding> {
    this.#coding ??= await this.#tools.coder.begin(this.schema)
    return this.#coding
  }

  async #append(parts: readonly Uint8Array[]): Promise<Scratch> {
    this.#scratch ??= this.#tools.store.scratch()
    for (const part of parts) await this.#scratch.append(part)
    return this.#scratch
  }
}
