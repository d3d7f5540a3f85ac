import { type BlobRef, type CommitLog, ExportError } from '../core/index.ts'

/**
 * Memory for the rows of open shards, which are in the log. Many short record batches are kept until they are encoded,
 * so that sealing reads few objects back; beyond the limit they are read from the log.
 */
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
    if (byteLength > Math.min(this.#free, this.#largest))
      return new LoggedBatch(this.#log, at, null, () => {})
    this.#free -= byteLength
    return new LoggedBatch(this.#log, at, new Uint8Array(bytes), (freed) => {
      this.#free += freed
    })
  }
}

/** A record batch of an open shard, in the log. */
export class LoggedBatch {
  readonly at: Promise<BlobRef>
  readonly #log: CommitLog
  readonly #free: (bytes: number) => void
  #kept: Uint8Array | null

  constructor(log: CommitLog, at: Promise<BlobRef>, kept: Uint8Array | null, free: (bytes: number) => void) {
    this.#log = log
    this.at = at
    this.#kept = kept
    this.#free = free
    // Whoever encodes the batch gets the error.
    at.catch(() => {})
  }

  /** Its bytes in memory of their own, which the caller may transfer. Call it once. */
  async take(): Promise<Uint8Array> {
    const kept = this.#kept
    if (kept === null) {
      const at = await this.at
      const bytes = await this.#log.read(at)
      if (bytes === null) throw lostRows(at)
      return bytes
    }
    this.#kept = null
    this.#free(kept.byteLength)
    return kept
  }
}

/** Rows of the log were lost or changed while a run went on. */
function lostRows({ sequence }: BlobRef): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `Rows that commit ${sequence} of the log holds are lost or changed`,
    where: '_state/log',
    next: 'Check the disk and run again: the partitions concerned are exported anew.',
  })
}
