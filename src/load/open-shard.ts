import { crc32 } from 'node:zlib'
import {
  type Aggregates,
  AggregateTally,
  decodeRecordBatch,
  ExportError,
  type Log,
  type OpenShardRecord,
  ROW_GROUP_LIMITS,
  type RowGroupEntry,
  type SealEntry,
  type Serial,
  type Span,
  type Store,
  serial,
  spanOf,
} from '../core/index.ts'
import type { EncodedRowGroupWithAggregates } from './aggregate-rows.ts'
import type { WrittenRowGroup } from './encode/encoder.ts'
import { openLogPath, openShardPath, shardPath } from './layout.ts'
import { type RowGroupMeasure, weigh } from './row-group-measure.ts'
import type { ShardHash } from './shard-hash.ts'
import { appendRecordBatches, readRecordBatches } from './write-ahead-log.ts'

/** Encodes rows into the bytes of a shard, in this thread or another one. See ShardEncoder. */
export type ShardCoder = {
  header(): Promise<Uint8Array>
  /**
   * Transfers the buffers of the record batches, except shared memory: they may be detached afterwards. The result is
   * valid until the next call.
   */
  encode(recordBatches: readonly Uint8Array[]): Promise<EncodedRowGroupWithAggregates>
  footer(rowGroups: readonly WrittenRowGroup[]): Promise<Uint8Array>
  /** Begins the hash of a shard. */
  hash(): ShardHash
}

/** Memory in which the shards of a set are encoded, one at a time. */
export type EncodeBuffer = {
  /** Runs one task at a time. */
  readonly exclusive: Serial
  /** Returns shared memory of this size, not cleared. All calls return the same memory, except for very large sizes. */
  take(bytes: number): Uint8Array
}

/** Spare room: shared memory that became too small is garbage-collected late. */
const HEADROOM = 1.25
const MAX_KEPT_BYTES = 64 << 20

export function makeEncodeBuffer(): EncodeBuffer {
  let memory = new SharedArrayBuffer(0)
  return {
    exclusive: serial(),
    take(bytes) {
      if (bytes > MAX_KEPT_BYTES) return new Uint8Array(new SharedArrayBuffer(bytes))
      if (memory.byteLength < bytes) memory = new SharedArrayBuffer(Math.ceil(bytes * HEADROOM))
      return new Uint8Array(memory, 0, bytes)
    },
  }
}

type Identity = { readonly shard: number; readonly folder: string; readonly part: number }

/**
 * One shard while it is being written: encoded row groups in `_state/open/<n>.part`, and the rows of later pages in a
 * write-ahead log beside it. Methods fsync what they write before they resolve. Rows are part of the data set only once
 * the caller has committed their journal entry. A log is never overwritten while the journal may name it. A generation
 * is the rows of one row group; each generation goes into the file that the generation before it did not use.
 */
export class OpenShard {
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** How full the next row group is. */
  readonly measure: RowGroupMeasure
  rows = 0

  readonly #store: Store
  readonly #coder: ShardCoder
  readonly #buffer: EncodeBuffer
  readonly #partitions = new Set<string>()
  readonly #rowGroups: WrittenRowGroup[] = []
  /** Whether a part of the file was written by an earlier commit, and how far each row group goes. */
  #isLeft = false
  readonly #written: { readonly offset: number; readonly bytes: number; readonly crc: number }[] = []
  #span: Span | null = null
  readonly #aggregates = new AggregateTally(ROW_GROUP_LIMITS)
  #replaced = 0
  #generation = 1
  /** End offsets of the log's records. */
  #ends: number[] = []
  #log: Log | null = null
  #file: Log | null = null
  /** Size of the file while it is closed; null: there is none yet. */
  #fileSize: number | null = null
  /** Generations whose log files may exist. */
  readonly #logged = new Set<number>()
  readonly #hash: ShardHash

  /**
   * A shard as an earlier run, or an earlier commit, left it.
   * @returns null when not every committed byte is intact
   */
  static async restored(tools: OpenShardTools, left: OpenShardRecord): Promise<OpenShard | null> {
    const shard = new OpenShard(tools, left)
    return (await shard.#restore(left)) ? shard : null
  }

  /** @param buffer shared with the other open shards */
  constructor({ store, coder, buffer, measure }: OpenShardTools, { shard, folder, part }: Identity) {
    this.#store = store
    this.#coder = coder
    this.#hash = coder.hash()
    this.#buffer = buffer
    this.measure = measure
    this.shard = shard
    this.folder = folder
    this.part = part
  }

  /** Aggregates over the rows of its row groups. */
  get aggregates(): Aggregates {
    return this.#aggregates.aggregates()
  }

  /** Whether it has open files. */
  get hasOpenFiles(): boolean {
    return this.#log !== null || this.#file !== null
  }

  /** Counts rows that are added to it. */
  take(partition: string, rows: number, importedAt: Span | null): void {
    this.#partitions.add(partition)
    this.rows += rows
    this.#span = spanOf(this.#span, importedAt)
  }

  /** Makes record batches durable in the write-ahead log, in one step. @returns the end offset of each */
  async log(recordBatches: readonly Uint8Array[]): Promise<{ generation: number; end: number }[]> {
    this.#log ??= await this.#store.openLog(this.#logPath, this.#ends.at(-1) ?? 0)
    this.#logged.add(this.#generation)
    const ends = await appendRecordBatches(this.#log, this.#generation, recordBatches)
    this.#ends.push(...ends)
    return ends.map((end) => ({ generation: this.#generation, end }))
  }

  /**
   * Encodes the rows of the log, followed by those of some record batches, as one row group of the shard. Then the next
   * generation begins. The entry must be committed before the generation after the next one is written: that one uses
   * the same log file.
   */
  async encode(recordBatches: readonly Uint8Array[]): Promise<RowGroupEntry> {
    const file = await this.#openFile()
    const rowGroup = await this.#appendRowGroup(file, recordBatches)
    // A generation begins with its first write to the log.
    const generation = this.#ends.length > 0 ? this.#generation++ : this.#generation - 1
    await this.#log?.close()
    this.#log = null
    this.#ends = []
    this.measure.reset()
    return { kind: 'row-group', shard: this.shard, generation, ...rowGroup }
  }

  /** Fsyncs the encoded row groups. */
  async fsync(): Promise<void> {
    await this.#file?.fsync()
    this.#isLeft = true
  }

  /**
   * Seals the shard. Commit the entry, then call `publish`.
   * @throws ExportError `damaged` when rows or bytes of earlier commits are no longer there
   */
  async seal(extension: string): Promise<SealEntry> {
    const file = await this.#openFile()
    if (this.measure.rows > 0) throw new Error('the shard has rows that are not encoded')
    const rows = this.#rowGroups.reduce((sum, group) => sum + group.rows, 0)
    if (rows !== this.rows || !(await this.#isAsWritten())) throw rowsAreLost(this.#path)
    await this.#append(file, await this.#coder.footer(this.#rowGroups))
    await file.fsync()
    return {
      kind: 'seal',
      shard: this.shard,
      path: shardPath(this.folder, this.part, extension),
      rows: this.rows,
      bytes: file.size,
      sha256: await this.#hash.digest(),
      partitions: [...this.#partitions],
      imported_at: this.#span,
      ...(this.#replaced === 0 ? {} : { replaced: this.#replaced }),
    }
  }

  /** @param path null: the shard is published later */
  async publish(path: string | null): Promise<void> {
    await this.closeFiles()
    if (path !== null) await this.#store.publish(this.#path, path)
    const logs = new Set([...this.#logged].map((generation) => openLogPath(this.shard, generation)))
    for (const log of logs) await this.#store.remove(log)
  }

  /** Closes its files. The next write opens them again. */
  async closeFiles(): Promise<void> {
    const [file, log] = [this.#file, this.#log]
    if (file !== null) this.#fileSize = file.size
    // A write during the close opens them again.
    this.#file = null
    this.#log = null
    await file?.close()
    await log?.close()
  }

  async #restore(left: OpenShardRecord): Promise<boolean> {
    if (!(await this.#restoreRowGroups(left.rowGroups))) return false
    this.#generation = left.generation
    const ends = left.records.map(({ end }) => end)
    if (ends.length > 0) {
      if ((await this.#store.size(this.#logPath)) === null) return false
      this.#logged.add(left.generation)
      const isWhole = await this.#buffer.exclusive(async () => {
        const recordBatches = await this.#records(ends)
        // The journal does not record how full the row group is, so its rows are measured again.
        for (const bytes of recordBatches) {
          const recordBatch = decodeRecordBatch(bytes)
          this.measure.take(weigh(recordBatch), { from: 0, to: recordBatch.rows }, 0, recordBatch.rows)
        }
        return recordBatches.length === ends.length
      })
      if (!isWhole) return false
    }
    this.#ends = ends
    for (const partition of left.partitions) this.#partitions.add(partition)
    this.#span = left.importedAt
    for (const { rows } of [...left.rowGroups, ...left.records]) this.rows += rows
    return true
  }

  get #path(): string {
    return openShardPath(this.shard)
  }

  get #logPath(): string {
    return openLogPath(this.shard, this.#generation)
  }

  /** The log's record batches, up to the first invalid one. They are valid while this shard holds the buffer. */
  async #records(ends: readonly number[]): Promise<Uint8Array[]> {
    if (ends.length === 0) return []
    const buffer = this.#buffer.take(ends.at(-1)!)
    const bytes = buffer.subarray(0, await this.#store.readInto(this.#logPath, buffer))
    return readRecordBatches(bytes, this.#generation, ends)
  }

  /** Reads the rows back from the log, so that rows of open shards take no memory. */
  #appendRowGroup(
    file: Log,
    recordBatches: readonly Uint8Array[],
  ): Promise<Omit<RowGroupEntry, 'kind' | 'shard' | 'generation'>> {
    return this.#buffer.exclusive(async () => {
      const logged = await this.#records(this.#ends)
      if (logged.length < this.#ends.length) throw readBackDiffers(this.#logPath)
      const {
        bytes,
        crc,
        rows,
        meta,
        aggregates,
        replaced = 0,
      } = await this.#coder.encode([...logged, ...recordBatches])
      const offset = file.size
      await this.#append(file, bytes)
      this.#rowGroups.push({ offset, rows, meta })
      this.#written.push({ offset, bytes: bytes.byteLength, crc })
      this.#replaced += replaced
      this.#aggregates.add(aggregates)
      const counted = replaced === 0 ? {} : { replaced }
      return { offset, bytes: bytes.byteLength, crc, rows, meta, aggregates, ...counted }
    })
  }

  async #append(file: Log, bytes: Uint8Array): Promise<void> {
    await file.append([bytes])
    this.#hash.update(bytes)
  }

  /** @returns whether they are intact */
  async #restoreRowGroups(rowGroups: readonly RowGroupEntry[]): Promise<boolean> {
    if (rowGroups.length === 0) return true
    this.#isLeft = true
    this.#fileSize = 0
    for (const { offset, bytes, crc, rows, meta, aggregates, replaced = 0 } of rowGroups) {
      this.#rowGroups.push({ offset, rows, meta })
      this.#written.push({ offset, bytes, crc })
      this.#replaced += replaced
      this.#aggregates.add(aggregates)
      this.#fileSize = offset + bytes
    }
    return this.#readBack((bytes) => this.#hash.update(bytes))
  }

  /** Whether the bytes of earlier commits can still be read, where that costs little. */
  async #isAsWritten(): Promise<boolean> {
    return !this.#isLeft || !this.#store.isLocal || this.#readBack(() => {})
  }

  /** Reads header and row groups. @returns whether all of them are as they were written */
  async #readBack(take: (bytes: Uint8Array) => void): Promise<boolean> {
    if ((await this.#store.size(this.#path)) === null) return false
    const header = await this.#coder.header()
    if (Buffer.compare(await this.#store.readRange(this.#path, 0, header.byteLength), header) !== 0)
      return false
    take(header)
    for (const { offset, bytes, crc } of this.#written) {
      const encoded = await this.#store.readRange(this.#path, offset, offset + bytes)
      if (encoded.byteLength < bytes || crc32(encoded) !== crc) return false
      take(encoded)
    }
    return true
  }

  async #openFile(): Promise<Log> {
    if (this.#file !== null) return this.#file
    this.#file = await this.#store.openLog(this.#path, this.#fileSize ?? 0)
    if (this.#fileSize === null) await this.#append(this.#file, await this.#coder.header())
    this.#fileSize = this.#file.size
    return this.#file
  }
}

/** What all shards of a set share. */
export type OpenShardTools = {
  readonly store: Store
  readonly coder: ShardCoder
  readonly buffer: EncodeBuffer
  readonly measure: RowGroupMeasure
}

/** The error for committed rows of an open shard that are no longer there. */
export function rowsAreLost(path: string): ExportError {
  return new ExportError(
    'damaged',
    'Committed rows of an open shard changed or vanished while the run was going on',
    path,
    'Find out what else writes to the folder. The next run exports the partitions concerned again.',
  )
}

/** The disk returned other bytes than those that were just fsynced. */
function readBackDiffers(path: string): ExportError {
  return new ExportError(
    'storage',
    'The rows read back differ from those written',
    path,
    'Check the disk; the next run resumes after the last intact page.',
  )
}
