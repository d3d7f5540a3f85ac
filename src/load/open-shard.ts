import { createHash, type Hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { ExportError, int64FromJson, type Log, type Span, type Store } from '../core/index.ts'
import type { EncodedChunk, PlacedChunk } from './encode/index.ts'
import { openLogPath, openShardPath, shardPath } from './layout.ts'
import { appendRecords, readRecords } from './row-log.ts'
import type { ChunkLine, Place, RestoredShard, ShardLine } from './shard-lines.ts'
import type { Workplace } from './workplace.ts'

/** Turns rows into the bytes of a shard, wherever the work is done. See ShardEncoder. */
export type ShardCoder = {
  header(): Promise<Uint8Array>
  /**
   * Takes the frames' buffers over, but for shared memory: they may be gone afterwards. What it gives is good until
   * the next call.
   */
  encode(frames: readonly Uint8Array[]): Promise<EncodedChunk>
  footer(chunks: readonly PlacedChunk[]): Promise<Uint8Array>
}

export type PageRows = {
  readonly partition: string
  readonly frame: Uint8Array
  readonly rows: number
  readonly importedAt: Span | null
}

type Identity = { readonly shard: number; readonly folder: string; readonly part: number }
type SealLine = Extract<ShardLine<never>, { kind: 'seal' }>

/**
 * One shard while it is being written: encoded chunks in `_state/open/<n>.part`, and the rows of younger
 * pages in `_state/open/<n>.log`. Everything is flushed before the method that wrote it resolves; nothing
 * counts until the caller has put it on record.
 */
export class OpenShard {
  readonly shard: number
  readonly folder: string
  readonly part: number
  rows = 0
  /** Rows in the log, which are not encoded yet. */
  pendingRows = 0

  readonly #store: Store
  readonly #coder: ShardCoder
  readonly #workplace: Workplace
  readonly #partitions = new Set<string>()
  readonly #chunks: PlacedChunk[] = []
  #span: Span | null = null
  #replaced = 0
  #generation = 0
  /** Ends of the log's records. */
  #ends: number[] = []
  #log: Log | null = null
  #file: Log | null = null
  #hash: Hash = createHash('sha256')

  /** @param workplace shared with the other shards that are open */
  constructor(store: Store, coder: ShardCoder, workplace: Workplace, { shard, folder, part }: Identity) {
    this.#store = store
    this.#coder = coder
    this.#workplace = workplace
    this.shard = shard
    this.folder = folder
    this.part = part
  }

  /** Bytes of the log. */
  get pendingBytes(): number {
    return this.#log?.size ?? 0
  }

  /** Notes a partition that the shard belongs to, though it has no rows of it. */
  claim(partition: string): void {
    this.#partitions.add(partition)
  }

  /** Makes the rows of some pages durable in the log, in one step. @returns where those of each page stand */
  async log(pages: readonly PageRows[]): Promise<Place[]> {
    this.#log ??= await this.#store.openLog(openLogPath(this.shard), 0)
    const frames = pages.map(({ frame }) => frame)
    const ends = await appendRecords(this.#log, this.#generation, frames)
    for (const page of pages) {
      this.#take(page)
      this.pendingRows += page.rows
    }
    this.#ends.push(...ends)
    return ends.map((end) => ({ shard: this.shard, log: { generation: this.#generation, end } }))
  }

  /** Encodes the rows of the log as one chunk of the shard. Put the line on record, then call `nextGeneration`. */
  async encodePending(): Promise<ChunkLine> {
    const file = await this.#openFile()
    const chunk = await this.#appendChunk(file, null)
    await file.flush()
    return { kind: 'chunk', shard: this.shard, generation: this.#generation, ...chunk }
  }

  async nextGeneration(): Promise<void> {
    this.#generation++
    this.#ends = []
    this.pendingRows = 0
    await this.#log?.reset()
  }

  /**
   * Makes the shard whole: the rows of the log and of a last page as its last chunk, then its closing bytes.
   * Put the line on record, then call `publish`.
   */
  async seal(extension: string, lastPage: PageRows | null): Promise<SealLine> {
    if (lastPage !== null) this.#take(lastPage)
    const file = await this.#openFile()
    if (lastPage !== null || this.#ends.length > 0) await this.#appendChunk(file, lastPage)
    await this.#append(file, await this.#coder.footer(this.#chunks))
    await file.flush()
    return {
      kind: 'seal',
      shard: this.shard,
      path: shardPath(this.folder, this.part, extension),
      rows: this.rows,
      bytes: file.size,
      sha256: this.#hash.digest('hex'),
      partitions: [...this.#partitions],
      imported_at: this.#span,
      ...(this.#replaced === 0 ? {} : { replaced: this.#replaced }),
    }
  }

  async publish(path: string): Promise<void> {
    const logged = this.#log !== null
    await this.close()
    await this.#store.publish(openShardPath(this.shard), path)
    if (logged) await this.#store.remove(openLogPath(this.shard))
  }

  async close(): Promise<void> {
    await this.#file?.close()
    await this.#log?.close()
    this.#file = null
    this.#log = null
  }

  /**
   * Takes up what an earlier run left, checking every byte that the checkpoint vouches for.
   * @returns how many of the shard's pages are intact; fewer than all means: roll back, then restore again
   */
  async restore(left: RestoredShard): Promise<number> {
    const encoded = await this.#restoreChunks(left.chunks)
    if (encoded < left.chunks.length) {
      const lost = left.chunks[encoded]!.generation
      const firstLost = left.pages.findIndex(({ generation }) => generation >= lost)
      return firstLost < 0 ? left.pages.length : firstLost
    }
    const last = left.chunks.at(-1)
    this.#generation = last === undefined ? 0 : last.generation + 1
    const flushed = left.pages.filter(({ generation }) => generation < this.#generation).length
    const pending = left.pages.slice(flushed)
    const ends = pending.map(({ end }) => end)
    const isThere = (await this.#store.size(openLogPath(this.shard))) !== null
    const intact = isThere ? await this.#workplace.inTurn(async () => (await this.#records(ends)).length) : 0
    if (intact < pending.length) return flushed + intact
    this.#ends = ends
    this.#log = await this.#store.openLog(openLogPath(this.shard), ends.at(-1) ?? 0)
    for (const page of left.pages) this.#take(page)
    for (const page of pending) this.pendingRows += page.rows
    return left.pages.length
  }

  /** The log's frames, up to the first that is not whole; good for as long as the workplace is ours. */
  async #records(ends: readonly number[]): Promise<Uint8Array[]> {
    const path = openLogPath(this.shard)
    if (ends.length === 0) return []
    const room = this.#workplace.room(ends.at(-1)!)
    const bytes = room.subarray(0, await this.#store.readInto(path, room))
    return readRecords(bytes, this.#generation, ends)
  }

  /**
   * Encodes the rows of the log, and behind them those of a last page, as one chunk of the shard. They are read back
   * from the log, so that the rows of open shards need no memory, however many shards there are.
   */
  #appendChunk(
    file: Log,
    lastPage: PageRows | null,
  ): Promise<Omit<ChunkLine, 'kind' | 'shard' | 'generation'>> {
    return this.#workplace.inTurn(async () => {
      const frames = await this.#records(this.#ends)
      if (frames.length < this.#ends.length) throw notWhatWasWritten(openLogPath(this.shard))
      if (lastPage !== null) frames.push(lastPage.frame)
      const { bytes, rows, meta, replaced = 0 } = await this.#coder.encode(frames)
      const offset = file.size
      await this.#append(file, bytes)
      this.#chunks.push({ offset, rows, meta })
      this.#replaced += replaced
      const counted = replaced === 0 ? {} : { replaced }
      return { offset, bytes: bytes.byteLength, crc: crc32(bytes), rows, meta, ...counted }
    })
  }

  async #append(file: Log, bytes: Uint8Array): Promise<void> {
    await file.append([bytes])
    this.#hash.update(bytes)
  }

  /** @returns how many of the chunks are intact */
  async #restoreChunks(chunks: readonly ChunkLine[]): Promise<number> {
    if (chunks.length === 0) return 0
    const path = openShardPath(this.shard)
    if ((await this.#store.size(path)) === null) return 0
    const header = await this.#coder.header()
    if (Buffer.compare(await this.#store.readRange(path, 0, header.byteLength), header) !== 0) return 0
    this.#hash.update(header)
    let end = header.byteLength
    for (const [index, { offset, bytes, crc, rows, meta, replaced = 0 }] of chunks.entries()) {
      const encoded = await this.#store.readRange(path, offset, offset + bytes)
      if (encoded.byteLength < bytes || crc32(encoded) !== crc) return index
      this.#hash.update(encoded)
      this.#chunks.push({ offset, rows, meta })
      this.#replaced += replaced
      end = offset + bytes
    }
    this.#file = await this.#store.openLog(path, end)
    return chunks.length
  }

  async #openFile(): Promise<Log> {
    if (this.#file === null) {
      this.#file = await this.#store.openLog(openShardPath(this.shard), 0)
      await this.#append(this.#file, await this.#coder.header())
    }
    return this.#file
  }

  #take({ partition, rows, importedAt }: Pick<PageRows, 'partition' | 'rows' | 'importedAt'>): void {
    this.#partitions.add(partition)
    this.rows += rows
    if (importedAt !== null) this.#span = this.#span === null ? importedAt : spanOf(this.#span, importedAt)
  }
}

/** What covers both. */
function spanOf(a: Span, b: Span): Span {
  return {
    min: int64FromJson(b.min) < int64FromJson(a.min) ? b.min : a.min,
    max: int64FromJson(b.max) > int64FromJson(a.max) ? b.max : a.max,
  }
}

/** What was flushed a moment ago is read back otherwise: the disk is not to be trusted. */
function notWhatWasWritten(path: string): ExportError {
  return new ExportError(
    'storage',
    'The rows read back are not those that were written',
    path,
    'Look at the disk; the next run goes back to the last good page.',
  )
}
