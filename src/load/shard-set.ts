import {
  type Aggregates,
  AggregateTally,
  type JournalEntry,
  type JournalWriter,
  type LoggedRows,
  type OpenShardRecord,
  type PageEntry,
  ROW_GROUP_LIMITS,
  type SealEntry,
  type ShardEntry,
  type Span,
  type Store,
  sideBySide,
  spanOf,
  windowOfKey,
} from '../core/index.ts'
import { FolderQueue } from './folder-queue.ts'
import { OPEN_FOLDER, openLogPath, openShardPath } from './layout.ts'
import {
  type EncodeBuffer,
  makeEncodeBuffer,
  OpenShard,
  type OpenShardTools,
  rowsAreLost,
  type ShardCoder,
} from './open-shard.ts'
import { finishMoves, moveUnknownShards } from './orphans.ts'
import { RowGroupMeasure } from './row-group-measure.ts'
import { cutSlice, importedAt, recordBatchOf, type Slice } from './slice.ts'
import { countRows } from './take-rows.ts'

export type ShardSetOptions = {
  readonly store: Store
  readonly coder: ShardCoder
  /** The buffer of the coder, if other shard sets use the coder too. */
  readonly encodeBuffer?: EncodeBuffer
  readonly extension: string
  /** Rows of a row group. */
  readonly rowGroupRows: number
  /** Rows of a shard; the last of a folder may have fewer. */
  readonly shardRows: number
  /** Commits entries, all of them or none. They are committed once `append` resolves. */
  readonly journal: JournalWriter
  /** Number of the next shard. */
  readonly nextShard: number
  /** Number of shards begun so far in a folder. */
  readonly partsOf: (folder: string) => number
  /** Finished shards that are not published yet, by number, those that are sealed meanwhile too. */
  readonly held: ReadonlyMap<number, { readonly bytes: number }>
  readonly warn: (message: string) => void
  /** Called with each shard once it is committed and published. */
  readonly onPublished: (shard: SealEntry) => void
}

/** A page to be committed. */
export type Commit = {
  /** In the order of the page. */
  readonly slices: readonly Slice[]
  /** Folders that get no more rows for now. Their shards are sealed in the same step. */
  readonly close: readonly string[]
  /** Entries to commit with the rows. The page's entry gets the placement of the rows. */
  readonly entries: readonly JournalEntry[]
}

/** Shards with open files, besides those being written. */
const MAX_SHARDS_WITH_OPEN_FILES = 64

/**
 * The open shards, one for each folder. A page may have rows for many folders, and a folder may get rows of many
 * chains. Pages that share a folder are committed one after the other, all others concurrently. Data is written first,
 * then one line of the journal, for any number of shards.
 */
export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #open = new Map<string, OpenShard>()
  /** Open shards of earlier runs that this run has not written to yet, by folder. */
  readonly #unrestored = new Map<string, OpenShardRecord>()
  readonly #queue: FolderQueue<Commit>
  /** Numbers of parts whose entries are not committed yet, by folder. */
  readonly #parts = new Map<string, number>()
  #nextShard: number
  readonly #encodeBuffer: EncodeBuffer

  constructor(options: ShardSetOptions) {
    this.#options = options
    this.#encodeBuffer = options.encodeBuffer ?? makeEncodeBuffer()
    this.#nextShard = options.nextShard
    this.#queue = new FolderQueue((commits) => this.#commit(commits))
  }

  /**
   * Checks the open and held shards of earlier runs. Open ones are restored again when their folder is written to.
   * @returns shards that have lost rows. If there are any, the checkpoint must invalidate them first, and this set
   *   can't be used
   */
  async restore(left: Iterable<OpenShardRecord>): Promise<ReadonlySet<number>> {
    const lost = new Set<number>()
    const kept = new Set<string>()
    for (const restored of left) {
      kept.add(openShardPath(restored.shard))
      // Without records, all rows are in row groups, and the log is not needed.
      if (restored.records.length > 0) kept.add(openLogPath(restored.shard, restored.generation))
      if ((await OpenShard.restored(this.#tools(), restored)) === null) lost.add(restored.shard)
      this.#unrestored.set(restored.folder, restored)
    }
    for (const [shard, { bytes }] of this.#options.held) {
      kept.add(openShardPath(shard))
      if ((await this.#options.store.size(openShardPath(shard))) !== bytes) lost.add(shard)
    }
    if (lost.size === 0) await this.#removeLeftovers(kept)
    return lost
  }

  /** Folders that have an open shard. */
  get openFolders(): readonly string[] {
    return [...this.#open.keys(), ...this.#unrestored.keys()]
  }

  /** Commits a page. Pages that wait for the same folders are committed together. */
  commit(commit: Commit): Promise<void> {
    const folders = new Set(commit.close)
    for (const { folder } of commit.slices) folders.add(folder)
    return this.#queue.add(folders, commit)
  }

  /** Seals the open shards of some folders. */
  seal(folders: readonly string[]): Promise<void> {
    return this.commit({ slices: [], close: folders, entries: [] })
  }

  /** Makes a shard without rows, for a data set without other shards. Readers get the columns from it. */
  async sealEmpty(folder: string, partition: string): Promise<void> {
    const shard = await this.#begin(folder)
    shard.take(partition, 0, null)
    const seal = await shard.seal(this.#options.extension)
    await this.#options.journal.append([seal])
    await this.#publish(shard, seal)
    this.#open.delete(folder)
    this.#parts.delete(folder)
  }

  /** Closes all open shards as they are; a later run restores them. */
  async close(): Promise<void> {
    await this.#queue.settled()
    for (const shard of this.#open.values()) await shard.closeFiles()
    this.#open.clear()
  }

  async #commit(commits: readonly Commit[]): Promise<void> {
    const works = new Map<string, FolderWork>()
    const workOf = (folder: string): FolderWork => {
      const work = works.get(folder) ?? {
        slices: [],
        close: false,
        placements: new Map(),
        entries: [],
        sealed: [],
      }
      works.set(folder, work)
      return work
    }
    for (const { slices, close } of commits) {
      for (const slice of slices) workOf(slice.folder).slices.push(slice)
      for (const folder of close) workOf(folder).close = true
    }
    try {
      await this.#carryOut(works, commits)
    } catch (error) {
      // Sealed shards are no longer in the map of open shards, so `close` would miss them.
      for (const { sealed } of works.values()) for (const { shard } of sealed) await shard.closeFiles()
      throw error
    }
    for (const folder of works.keys()) this.#parts.delete(folder)
    await this.#closeIdleFiles()
  }

  /** Writes the data first, then the journal, then publishes the sealed shards. */
  async #carryOut(works: ReadonlyMap<string, FolderWork>, commits: readonly Commit[]): Promise<void> {
    await sideBySide(works, ([folder, work]) => this.#write(folder, work))
    const batch: JournalEntry[] = [...works.values()].flatMap(({ entries }) => entries)
    const sealed = [...works.values()].flatMap(({ sealed }) => sealed)
    if (sealed.length > 0) batch.push({ kind: 'aggregates', ...aggregatesOf(sealed) })
    for (const { slices, entries } of commits) {
      const placements = slices.map((slice) => works.get(slice.folder)!.placements.get(slice)!)
      for (const entry of entries)
        batch.push(entry.kind === 'page' ? withPlacements(entry, placements) : entry)
    }
    if (batch.length > 0) await this.#options.journal.append(batch)
    await sideBySide(sealed, ({ shard, seal }) => this.#publish(shard, seal))
  }

  async #publish(shard: OpenShard, seal: SealEntry): Promise<void> {
    const isHeld = this.#options.held.has(seal.shard)
    await shard.publish(isHeld ? null : seal.path)
    if (!isHeld) this.#options.onPublished(seal)
  }

  /** Makes the rows of one folder durable: encodes full row groups and shards, logs the rest. */
  async #write(folder: string, work: FolderWork): Promise<void> {
    let shard = await this.#openIn(folder)
    let isNew = false
    // Rows that are neither encoded nor in the log yet, and the list that gets their location in the log.
    let waiting: { recordBatch: Uint8Array; rows: number; logged: LoggedRows[] }[] = []
    let rowGroups: ShardEntry[] = []
    const encode = async (open: OpenShard): Promise<void> => {
      rowGroups.push(await open.encode(waiting.map(({ recordBatch }) => recordBatch)))
      waiting = []
    }
    const seal = async (open: OpenShard): Promise<void> => {
      if (open.measure.rows > 0) await encode(open)
      const entry = await open.seal(this.#options.extension)
      work.entries.push(entry)
      work.sealed.push({ shard: open, seal: entry })
      this.#open.delete(folder)
      shard = undefined
      rowGroups = []
    }
    for (const slice of work.slices) {
      const placed: PlacedRows[] = []
      const logged: LoggedRows[] = []
      work.placements.set(slice, { placed, logged })
      const count = countRows(slice.rows)
      for (let at = 0; at < count; ) {
        if (shard === undefined) {
          shard = await this.#begin(folder)
          isNew = true
        }
        const most = this.#options.shardRows - shard.rows
        const taken = shard.measure.take(slice.page.weights, slice.rows, at, most)
        if (taken > 0) {
          const cut = cutSlice(slice, at, at + taken)
          placed.push(...placeRows(cut, shard))
          waiting.push({ recordBatch: recordBatchOf(cut), rows: taken, logged })
          at += taken
        }
        if (shard.rows >= this.#options.shardRows) await seal(shard)
        else if (shard.measure.isFull) await encode(shard)
      }
    }
    if (shard === undefined) return
    if (work.close && shard.rows > 0) return seal(shard)
    if (isNew) work.entries.push({ kind: 'open', shard: shard.shard, folder, part: shard.part })
    work.entries.push(...rowGroups)
    // Waits for both even if one fails, so that nothing is written after this returns.
    const [logging, synced] = await Promise.allSettled([
      waiting.length > 0 ? shard.log(waiting.map(({ recordBatch }) => recordBatch)) : [],
      rowGroups.length > 0 ? shard.fsync() : undefined,
    ])
    if (synced.status === 'rejected') throw synced.reason
    if (logging.status === 'rejected') throw logging.reason
    for (const [i, location] of logging.value.entries()) {
      const { rows, logged } = waiting[i]!
      logged.push({ shard: shard.shard, rows, ...location })
    }
  }

  /** The folder's open shard, restored where an earlier run left one. */
  async #openIn(folder: string): Promise<OpenShard | undefined> {
    const restored = this.#unrestored.get(folder)
    if (restored === undefined) {
      const shard = this.#open.get(folder)
      // Reinserted at the end: the files of the least recently used shards are closed first.
      if (shard !== undefined && this.#open.delete(folder)) this.#open.set(folder, shard)
      return shard
    }
    await this.#moveUnknownShards(folder, restored.part)
    // It was intact when the run began.
    const shard = await OpenShard.restored(this.#tools(), restored)
    if (shard === null) throw rowsAreLost(openShardPath(restored.shard))
    this.#open.set(folder, shard)
    this.#unrestored.delete(folder)
    return shard
  }

  async #begin(folder: string): Promise<OpenShard> {
    const part = Math.max(this.#options.partsOf(folder), this.#parts.get(folder) ?? 0)
    await this.#moveUnknownShards(folder, part)
    this.#parts.set(folder, part + 1)
    const shard = new OpenShard(this.#tools(), { shard: this.#nextShard++, folder, part })
    this.#open.set(folder, shard)
    return shard
  }

  #tools(): OpenShardTools {
    const { store, coder, rowGroupRows } = this.#options
    return { store, coder, buffer: this.#encodeBuffer, measure: new RowGroupMeasure(rowGroupRows) }
  }

  #moveUnknownShards(folder: string, known: number): Promise<void> {
    const { store, warn } = this.#options
    return moveUnknownShards(store, folder, (_path, part) => part < known, warn)
  }

  /** Closes files of the least recently used shards, so that a thousand folders do not need a thousand open files. */
  async #closeIdleFiles(): Promise<void> {
    const opened = [...this.#open].filter(([, shard]) => shard.hasOpenFiles)
    for (const [folder, shard] of opened.slice(0, Math.max(0, opened.length - MAX_SHARDS_WITH_OPEN_FILES))) {
      if (!this.#queue.isBusy(folder)) await shard.closeFiles()
    }
  }

  async #removeLeftovers(kept: ReadonlySet<string>): Promise<void> {
    await finishMoves(this.#options.store)
    for (const name of await this.#options.store.list(OPEN_FOLDER)) {
      const path = `${OPEN_FOLDER}/${name}`
      if (!kept.has(path)) await this.#options.store.remove(path)
    }
  }
}

/** The slices of a batch of pages for one folder, and their results. */
type FolderWork = {
  readonly slices: Slice[]
  close: boolean
  readonly placements: Map<Slice, Placement>
  readonly entries: ShardEntry[]
  readonly sealed: { readonly shard: OpenShard; readonly seal: SealEntry }[]
}

/** One entry for all sealed shards: a page may complete a thousand shards that have the same sources. */
function aggregatesOf(sealed: FolderWork['sealed']): Aggregates {
  const tally = new AggregateTally(ROW_GROUP_LIMITS)
  for (const { shard } of sealed) tally.add(shard.aggregates)
  return tally.aggregates()
}

/** Counts the rows of a slice in their shard. @returns their placement by partition */
function placeRows(slice: Slice, shard: OpenShard): Iterable<PlacedRows> {
  const placed = new Map<string, PlacedRows>()
  let at = 0
  for (const { partition, rows } of slice.ranges) {
    const span = importedAt(slice, at, at + rows)
    shard.take(partition, rows, span)
    const before = placed.get(partition)
    placed.set(partition, {
      partition,
      shard: shard.shard,
      rows: rows + (before?.rows ?? 0),
      importedAt: spanOf(before?.importedAt ?? null, span),
    })
    at += rows
  }
  return placed.values()
}

/** The entry of a page with the placement of its rows. */
function withPlacements(page: PageEntry, placements: readonly Placement[]): PageEntry {
  const placed = placements.flatMap(({ placed }) => placed)
  const logged = placements.flatMap(({ logged }) => logged)
  if (placed.length === 0) return page
  const slices = placed.map(({ partition, shard, rows, importedAt }) => ({
    window: windowOfKey(partition),
    shard,
    rows,
    imported_at: importedAt,
  }))
  return { ...page, slices, ...(logged.length === 0 ? {} : { logged }) }
}

/** Rows of a page in a shard. */
type PlacedRows = {
  /** The key of their partition. */
  readonly partition: string
  readonly shard: number
  readonly rows: number
  readonly importedAt: Span | null
}

/** Where the rows of a page are: all of them by partition, and those in a write-ahead log. */
type Placement = { readonly placed: readonly PlacedRows[]; readonly logged: readonly LoggedRows[] }
