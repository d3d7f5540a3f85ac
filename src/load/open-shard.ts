import { createHash } from 'node:crypto'
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
import type { EncodedRowGroup, WrittenRowGroup } from './encode/encoder.ts'
import { sealedPath, shardPath } from './layout.ts'
import type { LoggedBatch } from './row-cache.ts'
import type { RowGroupMeasure } from './row-group-measure.ts'

/** Encodes rows into the bytes of a shard, in this thread or another one. See ShardEncoder. */
export type ShardCoder = {
  header(): Promise<Uint8Array>
  /**
   * Transfers the buffers of the record batches, except shared memory: they may be detached afterwards. The result is
   * valid until the next call.
   */
  encode(recordBatches: readonly Uint8Array[]): Promise<EncodedRowGroup>
  footer(rowGroups: readonly WrittenRowGroup[]): Promise<Uint8Array>
  /** Begins the hash of a shard. */
  hash(): ShardHash
}

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
  readonly #rowGroups: WrittenRowGroup[] = []
  readonly #hash: ShardHash
  #span: Span | null = null
  #replaced = 0
  /** Rows of the next row group. */
  #next: RowsToEncode[] = []
  #scratch: Scratch | null = null
  /** The last work on the shard. */
  #last: Promise<void> = Promise.resolve()

  constructor(tools: OpenShardTools, measure: RowGroupMeasure, { shard, folder, part }: ShardIdentity) {
    this.#tools = tools
    this.#hash = tools.coder.hash()
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
    const encoded = this.#rowGroups.reduce((sum, { rows }) => sum + rows, 0)
    if (encoded !== this.rows) throw this.#otherRows(encoded)
    const scratch = await this.#opened()
    await this.#append(scratch, await this.#tools.coder.footer(this.#rowGroups))
    const sha256 = await this.#hash.digest()
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
    await this.#scratch?.discard()
  }

  async #encode(rows: readonly RowsToEncode[]): Promise<void> {
    const batches = await Promise.all(
      rows.map(({ batch }) => (batch instanceof Uint8Array ? batch : batch.take())),
    )
    const encoded = await this.#tools.coder.encode(batches)
    for (const [i, { batch }] of rows.entries()) {
      if (!(batch instanceof Uint8Array)) batch.give(batches[i]!)
    }
    const scratch = await this.#opened()
    const offset = scratch.size
    this.#rowGroups.push({ offset, rows: encoded.rows, meta: encoded.meta })
    this.#replaced += encoded.replaced ?? 0
    await this.#append(scratch, encoded.bytes)
  }

  async #opened(): Promise<Scratch> {
    if (this.#scratch === null) {
      this.#scratch = this.#tools.store.scratch()
      await this.#append(this.#scratch, await this.#tools.coder.header())
    }
    return this.#scratch
  }

  async #append(scratch: Scratch, bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes)
    await scratch.append(bytes)
  }

  #otherRows(encoded: number): ExportError {
    return new ExportError({
      kind: 'damaged',
      what: `The shard would hold ${encoded} rows, but ${this.rows} are committed`,
      where: `${this.folder}, part ${this.part}`,
      next: 'Run again: its rows are read from the log anew. Report this error if it comes again.',
    })
  }
}

/** SHA-256 over the bytes of a shard, added in order. */
export type ShardHash = {
  /** The next call of the coder may overwrite the bytes that its last call returned. */
  update(bytes: Uint8Array): void
  /** The digest in hex. Call it once. */
  digest(): Promise<string>
}

/** Hashes in the calling thread. */
export function shardHash(): ShardHash {
  const hash = createHash('sha256')
  return {
    update: (bytes) => void hash.update(bytes),
    digest: async () => hash.digest('hex'),
  }
}

/** A thread that hashes. It serves calls in their order. */
export type HashThread = {
  /** Adds bytes to the hash; the first call begins it. */
  update(segments: readonly Uint8Array[]): Promise<unknown>
  /** Adds bytes to a hash that has begun, and ends it. */
  digest(segments: readonly Uint8Array[]): Promise<string>
}

/** Hashing fewer bytes takes less time than a request to another thread. */
const MIN_SENT_BYTES = 64 << 10

/** Hashes in the encoding thread, unless the shard is small. Bytes in shared memory are not copied. */
export function shardHashIn(thread: HashThread): ShardHash {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let hasBegun = false
  const take = (): Uint8Array[] => {
    const segments = held
    held = []
    heldBytes = 0
    return segments
  }
  return {
    update(bytes) {
      const isLarge = bytes.byteLength >= MIN_SENT_BYTES
      held.push(isLarge ? bytes : new Uint8Array(bytes))
      heldBytes += bytes.byteLength
      if (heldBytes < MIN_SENT_BYTES) return
      hasBegun = true
      // If the thread has ended, the digest fails as well.
      thread.update(take()).catch(() => {})
    },
    digest() {
      if (hasBegun) return thread.digest(take())
      const hash = shardHash()
      for (const bytes of take()) hash.update(bytes)
      return hash.digest()
    },
  }
}
