import { ExportError } from '../core/index.ts'
import type { BlobRef, CommitLog } from '../state/index.ts'
import { joinShort, SHORT_BYTES } from './encode/decode-record-batches.ts'

/** Short record batches of open shards stay in memory, so that sealing reads few files of the log back. */
export class RowCache {
  readonly #log: CommitLog
  readonly #largest: number
  #free: number

  /** @param bytes the memory @param largest bytes of a record batch that is kept; default: any */
  constructor(log: CommitLog, bytes: number, largest = bytes) {
    this.#log = log
    this.#free = bytes
    this.#largest = largest
  }

  /** @param at location of the record batch, once it is committed */
  add(bytes: Uint8Array, at: Promise<BlobRef>): LoggedBatch {
    const { byteLength } = bytes
    if (byteLength > Math.min(this.#free, this.#largest)) return new LoggedBatch(this.#log, at)
    this.#free -= byteLength
    return new LoggedBatch(this.#log, at, new Uint8Array(bytes), (freed) => {
      this.#free += freed
    })
  }
}

export class LoggedBatch {
  readonly at: Promise<BlobRef>
  readonly #log: CommitLog
  readonly #free: (bytes: number) => void
  #kept: Uint8Array | null

  constructor(
    log: CommitLog,
    at: Promise<BlobRef>,
    kept: Uint8Array | null = null,
    free: (bytes: number) => void = () => {},
  ) {
    this.#log = log
    this.at = at
    this.#kept = kept
    this.#free = free
    // Whoever encodes the batch gets the error.
    at.catch(() => {})
  }

  /** Joins record batches that are kept, rows in order: what pages have in common is kept once. */
  static joined(batches: readonly LoggedBatch[]): readonly LoggedBatch[] {
    const first = batches[0]!
    const joined = joinShort(batches.map((batch) => batch.#kept!))
    const before = batches.reduce((sum, { shortBytes }) => sum + shortBytes, 0)
    first.#free(before - joined.reduce((sum, { byteLength }) => sum + byteLength, 0))
    const at = Promise.all(batches.map((batch) => batch.at)).then((places) => places[0]!)
    return joined.map((bytes) => new LoggedBatch(first.#log, at, bytes, first.#free))
  }

  /** Bytes of a short record batch that is kept; else 0. */
  get shortBytes(): number {
    const bytes = this.#kept?.byteLength ?? 0
    return bytes < SHORT_BYTES ? bytes : 0
  }

  /** Its bytes. Call it once. */
  async take(): Promise<Uint8Array> {
    const kept = this.#kept
    if (kept === null) {
      const at = await this.at
      const bytes = await this.#log.read(at)
      if (bytes === null)
        throw new ExportError({
          kind: 'damaged',
          what: `Rows in file ${at.file} of the log are lost or changed`,
          where: '_state/log',
          next: 'Check the disk and run again: the partitions concerned are exported anew.',
        })
      return bytes
    }
    this.#kept = null
    this.#free(kept.byteLength)
    return kept
  }
}
