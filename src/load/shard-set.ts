import { ExportError, inGroups, type OwnedStore, sideBySide } from '../core/index.ts'
import { spanOf } from '../rows/index.ts'
import {
  type BatchRef,
  type CheckpointState,
  type CommitLog,
  type FoldedShard,
  isRedone,
  type JournalEntry,
  type LoggedRows,
  type OpenEntry,
  type PageEntry,
  type PlacedRows,
  type SealEntry,
  type SealedShard,
  type ShardIdentity,
} from '../state/index.ts'
import { sealedPath } from './layout.ts'
import { publishSealed } from './sealed.ts'
import { cutSlice, importedAt, recordBatchOf, type Slice } from './slice.ts'
import { countRows } from './take-rows.ts'
import type { ShardWriter } from './write-shard.ts'

export type ShardSetOptions = {
  readonly store: OwnedStore
  readonly writer: ShardWriter
  /** Rows of a shard; the last of a folder may have fewer. */
  readonly shardRows: number
  readonly log: CommitLog & {
    readonly state: Pick<CheckpointState, 'openShards' | 'nextShard' | 'partsOf' | 'redo'>
  }
  /** Whether reading an object costs a request. */
  readonly readsCost: boolean
  /** Called with each shard once it is committed, before it is published, and again once it is. */
  readonly onSealed: (shard: SealEntry) => void | Promise<void>
  readonly onPublished: (shard: SealEntry) => void
}

export type Commit = {
  /** In the order of the page. */
  readonly slices: readonly Slice[]
  /** Folders that get no more rows for now. Their shards are sealed. */
  readonly close: readonly string[]
  readonly entries: (placement: Placement) => readonly JournalEntry[]
  /** Bytes that these entries refer to by index. */
  readonly blobs: readonly Uint8Array[]
}

/** Where the rows of a page are: these keys of its entry. */
export type Placement = Pick<PageEntry, 'slices' | 'logged'>

/** A shard that gets rows, and how many it has. */
type OpenShard = ShardIdentity & { rows: number }

/** Shards that are written at a time: as many as keep a disk, and a store over a network, busy. */
const MAX_WRITTEN = 32

/** Rows wait in the log. A shard that has ended is written of these alone, behind the commits of pages. */
export class ShardSet {
  readonly #options: ShardSetOptions
  /** By folder; those that wait with what is exported again by `<folder>/`. */
  readonly #open = new Map<string, OpenShard>()
  /** Numbers that are taken and not committed yet: of the next part by folder, and of the next shard. */
  readonly #parts = new Map<string, number>()
  #nextShard = 0
  /** Shards that are written and published, with their rows. */
  readonly #work = new Map<Promise<void>, number>()
  /** After it nothing more is committed. */
  #failure: { readonly error: unknown } | null = null

  private constructor(options: ShardSetOptions) {
    this.#options = options
  }

  /** Goes on with the open shards. None has lost rows: see {@link lostShards}. */
  static async open(options: ShardSetOptions): Promise<ShardSet> {
    const set = new ShardSet(options)
    await set.#write(set.#restore([...options.log.state.openShards.values()]))
    await set.settled()
    return set
  }

  /** @returns shards that had ended: only the last one of a folder gets more rows, if it is not full */
  #restore(shards: readonly FoldedShard[]): readonly OpenShard[] {
    const ended: OpenShard[] = []
    const { shardRows } = this.#options
    for (const folded of shards.toSorted((a, b) => a.part - b.part)) {
      const { shard, folder, part, schema, batches, partitions } = folded
      const key = this.#keyOf(folder, partitions)
      ended.push(...this.#end(key))
      this.#open.set(key, { shard, folder, part, schema, rows: totalRows(batches) })
    }
    for (const [key, { rows }] of this.#open) if (rows >= shardRows) ended.push(...this.#end(key))
    return ended
  }

  get openFolders(): readonly string[] {
    return [...new Set(Array.from(this.#open.values(), ({ folder }) => folder))]
  }

  /** Commits a page, in the order of the calls. Shards that end with it are begun to be written. */
  async commit({ slices, close, entries, blobs }: Commit): Promise<void> {
    this.#requireWell()
    const placed = this.#place(slices, close, blobs)
    const { opened } = placed
    try {
      await this.#options.log.commit([...opened, ...entries(placementOf(placed))], placed.blobs)
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
    // A run may write to a million folders.
    for (const { folder, part } of opened)
      if (this.#parts.get(folder) === part + 1) this.#parts.delete(folder)
    await this.#write(placed.ended)
  }

  /** Ends shards. Resolves when they are published. */
  async seal(folders: readonly string[]): Promise<void> {
    await this.#write(folders.flatMap((folder) => this.#endAll(folder)))
    await this.settled()
  }

  /** Resolves when every shard that has ended is committed and published. @throws what failed */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work.keys())
    this.#requireWell()
  }

  /** Ends the work. The rows of open shards are in the log; a later run continues them. */
  async close(): Promise<void> {
    await this.settled().catch(() => {})
    this.#open.clear()
  }

  #requireWell(): void {
    if (this.#failure !== null) throw this.#failure.error
  }

  /** Nothing is awaited meanwhile, so the rows of a folder stay in the order of pages. */
  #place(slices: Commit['slices'], close: Commit['close'], blobs: Commit['blobs']): PlacedPage {
    const placed: PlacedPage = { slices: [], logged: [], blobs: [...blobs], opened: [], ended: [] }
    const { shardRows } = this.#options
    for (const slice of slices) {
      const { folder, schema, ranges } = slice
      const key = this.#keyOf(
        folder,
        ranges.map(({ partition }) => partition),
      )
      const count = countRows(slice.rows)
      const open = this.#open.get(key)
      // A shard has one schema.
      if (open !== undefined && open.schema !== schema) placed.ended.push(...this.#end(key))
      for (let at = 0, to = 0; at < count; at = to) {
        const shard = this.#open.get(key) ?? this.#begin(key, slice, placed)
        to = Math.min(count, at + shardRows - shard.rows)
        placeRows(placed, shard, cutSlice(slice, at, to))
        if (shard.rows === shardRows) placed.ended.push(...this.#end(key))
      }
    }
    for (const folder of close) placed.ended.push(...this.#endAll(folder))
    return placed
  }

  #keyOf(folder: string, partitions: Iterable<string>): string {
    return isRedone(this.#options.log.state, { partitions }) ? `${folder}/` : folder
  }

  #begin(key: string, { folder, schema }: Slice, { opened }: PlacedPage): OpenShard {
    const { state } = this.#options.log
    const part = Math.max(state.partsOf.get(folder) ?? 0, this.#parts.get(folder) ?? 0)
    this.#parts.set(folder, part + 1)
    const shard = Math.max(state.nextShard, this.#nextShard)
    this.#nextShard = shard + 1
    opened.push({ kind: 'open', shard, folder, part, schema: schema || undefined })
    const open = { shard, folder, part, schema, rows: 0 }
    this.#open.set(key, open)
    return open
  }

  #endAll(folder: string): readonly OpenShard[] {
    return [...this.#end(folder), ...this.#end(`${folder}/`)]
  }

  #end(key: string): readonly OpenShard[] {
    const shard = this.#open.get(key)
    this.#open.delete(key)
    return shard === undefined ? [] : [shard]
  }

  /**
   * Begins to write shards that have ended, and whose rows are committed; after a failure none. While others with as many
   * rows as a full one are written, it waits, so that the log does not grow faster than shards are written.
   */
  async #write(ended: readonly OpenShard[]): Promise<void> {
    const { log } = this.#options
    for (const shard of ended) {
      // What is exported again waits: see `swapRedone`.
      if (isRedone(log.state, log.state.openShards.get(shard.shard)!)) continue
      const isRoom = (): boolean =>
        this.#work.size < MAX_WRITTEN && sum(this.#work.values()) + shard.rows <= this.#options.shardRows
      while (this.#work.size > 0 && !isRoom()) await Promise.race(this.#work.keys())
      if (this.#failure !== null) return
      const work = this.#writeShard(shard.shard)
        .catch((error: unknown) => {
          this.#failure ??= { error }
        })
        .finally(() => this.#work.delete(work))
      this.#work.set(work, shard.rows)
    }
  }

  async #writeShard(number: number): Promise<void> {
    const { log, writer } = this.#options
    const seal: SealEntry = {
      kind: 'seal',
      ...(await writeOpen(writer, log, log.state.openShards.get(number)!)),
    }
    await log.commit([seal])
    await this.#options.onSealed(seal)
    await this.#publish(seal)
  }

  async #publish(seal: SealEntry): Promise<void> {
    const { store, readsCost } = this.#options
    if (readsCost) await store.publish(sealedPath(seal.shard, seal.sha256), seal.path)
    else await publishSealed(store, seal)
    this.#options.onPublished(seal)
  }
}

/** Writes a shard of its rows in the log. Commit it, then publish it. */
export async function writeOpen(
  write: ShardWriter,
  log: Pick<CommitLog, 'read'>,
  open: FoldedShard,
): Promise<SealedShard> {
  const written = await write(open, rowsOf(open, log), totalRows(open.batches))
  return { ...written, partitions: [...open.partitions], imported_at: open.importedAt }
}

/** The rows of a page in their shards, the shards that begin with it, and those that end. */
type PlacedPage = {
  readonly slices: PlacedRows[]
  readonly logged: LoggedRows[]
  readonly blobs: Uint8Array[]
  readonly opened: OpenEntry[]
  readonly ended: OpenShard[]
}

function placeRows({ slices, logged, blobs }: PlacedPage, open: OpenShard, slice: Slice): void {
  const { shard } = open
  const placed = new Map<string, PlacedRows>()
  let at = 0
  for (const { partition, rows } of slice.ranges) {
    const before = placed.get(partition)
    placed.set(partition, {
      // The window's part of the key: {@link windowRange}.
      window: partition.slice(partition.lastIndexOf('/') + 1),
      shard,
      rows: rows + (before?.rows ?? 0),
      imported_at: spanOf(before?.imported_at ?? null, importedAt(slice, at, at + rows)),
    })
    at += rows
  }
  slices.push(...placed.values())
  logged.push({ shard, rows: at, blob: blobs.push(recordBatchOf(slice)) - 1 })
  open.rows += at
}

function placementOf({ slices, logged }: PlacedPage): Placement {
  return slices.length === 0 ? {} : { slices, logged }
}

/** The numbers of open shards whose rows in the log are lost or changed. */
export async function lostShards(log: ShardSetOptions['log']): Promise<ReadonlySet<number>> {
  const lost = new Set<number>()
  await sideBySide(batchesOf(log.state.openShards.values()), async ({ shard, at }) => {
    if (!lost.has(shard) && (await log.read(at)) === null) lost.add(shard)
  })
  return lost
}

function* batchesOf(
  shards: Iterable<FoldedShard>,
): Generator<{ readonly shard: number; readonly at: BatchRef['at'] }> {
  for (const { shard, batches } of shards) for (const { at } of batches) yield { shard, at }
}

/** So many bytes, and so many record batches, are read at once. */
const READ_BYTES = 1 << 20
const READ_BATCHES = 32

/** @throws ExportError `damaged` when the log has lost some */
async function* rowsOf({ batches }: FoldedShard, log: Pick<CommitLog, 'read'>): AsyncGenerator<Uint8Array> {
  const sizeOf = ({ at }: BatchRef): number => Math.max(at.bytes, READ_BYTES / READ_BATCHES)
  for (const some of inGroups(batches, READ_BYTES, sizeOf))
    yield* await Promise.all(some.map(({ at }) => log.read(at).then((read) => read ?? lost(at.file))))
}

function lost(file: number): never {
  throw new ExportError({
    kind: 'damaged',
    what: `Rows in file ${file} of the log are lost or changed`,
    where: '_state/log',
    next: 'Check the disk and run again: the partitions concerned are exported anew.',
  })
}

function totalRows(batches: readonly BatchRef[]): number {
  return sum(batches.map(({ rows }) => rows))
}

function sum(numbers: Iterable<number>): number {
  let total = 0
  for (const each of numbers) total += each
  return total
}
