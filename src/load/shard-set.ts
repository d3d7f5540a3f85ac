import {
  type Aggregates,
  AggregateTally,
  CHUNK_LIMITS,
  countRows,
  type JournalEntry,
  type JournalWriter,
  type LoggedRows,
  type OpenShardRecord,
  type PageEntry,
  type SealEntry,
  type ShardEntry,
  type Store,
  sideBySide,
  spanOf,
  windowOfKey,
} from '../core/index.ts'
import { ChunkMeasure } from './chunk-measure.ts'
import { OPEN_FOLDER, openLogPath, openShardPath } from './layout.ts'
import { OpenShard, type ShardCoder } from './open-shard.ts'
import { cutPiece, frameOf, importedAt, type Piece } from './piece.ts'
import type { PlacedRows, Places } from './placed-rows.ts'
import { finishSettingAside, setAsideStrangers } from './set-aside.ts'
import { Turns } from './turns.ts'
import { type Workplace, workplace } from './workplace.ts'

export type ShardSetOptions = {
  readonly store: Store
  readonly coder: ShardCoder
  /** That of the coder: whoever else uses it takes turns there. Left out: nobody else does. */
  readonly workplace?: Workplace
  readonly extension: string
  /** Rows that are encoded together. */
  readonly chunkRows: number
  /** Rows of a shard; the last of a folder may have fewer. */
  readonly shardRows: number
  /** Takes entries, all of them or none; what they say counts once `append` resolves. */
  readonly journal: JournalWriter
  /** The number that the next shard gets. */
  readonly nextShard: number
  /** Shards begun so far in a folder. */
  readonly partsOf: (folder: string) => number
  readonly warn: (message: string) => void
  /** Called with each shard once it is on record and has its final name. */
  readonly onPublished: (shard: SealEntry) => void
}

/** A page on its way to disk. */
export type Commit = {
  /** In the order of the page. */
  readonly pieces: readonly Piece[]
  /** Folders that get no more rows for now, so that their shards are made whole in the same step. */
  readonly close: readonly string[]
  /** What is to be on record with the rows; the page's own entry is told where they stand. */
  readonly entries: readonly JournalEntry[]
}

/** Shards that hold files open beyond those being written. */
const MAX_AWAKE = 64

/**
 * The shards that are open at one time, one a folder. A page may bring rows for many folders, and a folder get rows of
 * many chains; pages that meet in a folder take turns, all others go side by side. A page is committed with the data
 * first and one record second, however many shards it goes into.
 */
export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #open = new Map<string, OpenShard>()
  /** Open shards of earlier runs that nobody has asked for yet, by folder. */
  readonly #left = new Map<string, OpenShardRecord>()
  readonly #turns: Turns<Commit>
  /** Parts of folders whose lines are on their way. */
  readonly #parts = new Map<string, number>()
  #nextShard: number
  readonly #workplace: Workplace

  constructor(options: ShardSetOptions) {
    this.#options = options
    this.#workplace = options.workplace ?? workplace()
    this.#nextShard = options.nextShard
    this.#turns = new Turns((commits) => this.#commit(commits))
  }

  /**
   * Looks through the open shards of earlier runs; each is taken up when its folder is written to.
   * @returns shards that have lost rows. When there are any, the checkpoint is to give them up first, and this set is of
   *   no use any more
   */
  async restore(left: Iterable<OpenShardRecord>): Promise<ReadonlySet<number>> {
    const lost = new Set<number>()
    const kept = new Set<string>()
    for (const restored of left) {
      kept.add(openShardPath(restored.shard))
      // Without records what lies there is in a chunk by now.
      if (restored.records.length > 0) kept.add(openLogPath(restored.shard, restored.generation))
      const shard = this.#newShard(restored)
      try {
        if (!(await shard.restore(restored))) lost.add(restored.shard)
      } finally {
        await shard.sleep()
      }
      this.#left.set(restored.folder, restored)
    }
    if (lost.size === 0) await this.#removeLeftovers(kept)
    return lost
  }

  /** Folders that have an open shard. */
  get openFolders(): readonly string[] {
    return [...this.#open.keys(), ...this.#left.keys()]
  }

  /**
   * Commits a page. Those that come while others of their folders are being committed are committed together.
   */
  commit(commit: Commit): Promise<void> {
    const folders = new Set(commit.close)
    for (const { folder } of commit.pieces) folders.add(folder)
    return this.#turns.add(folders, commit)
  }

  /** Makes the open shards of some folders whole, where there are any. */
  seal(folders: readonly string[]): Promise<void> {
    return this.commit({ pieces: [], close: folders, entries: [] })
  }

  /** Makes a whole shard without any rows, which tells readers the columns: for a data set that has no other. */
  async sealEmpty(folder: string, partition: string): Promise<void> {
    const shard = await this.#begin(folder)
    shard.take(partition, 0, null)
    const line = await shard.seal(this.#options.extension)
    await this.#options.journal.append([line])
    await this.#publish(shard, line)
    this.#open.delete(folder)
    this.#parts.delete(folder)
  }

  /** Lets go of all open shards as they are; a later run takes them up. */
  async close(): Promise<void> {
    await this.#turns.settled()
    for (const shard of this.#open.values()) await shard.sleep()
    this.#open.clear()
  }

  async #commit(commits: readonly Commit[]): Promise<void> {
    const works = new Map<string, FolderWork>()
    const workOf = (folder: string): FolderWork => {
      const work = works.get(folder) ?? { pieces: [], close: false, places: new Map(), lines: [], sealed: [] }
      works.set(folder, work)
      return work
    }
    for (const { pieces, close } of commits) {
      for (const piece of pieces) workOf(piece.folder).pieces.push(piece)
      for (const folder of close) workOf(folder).close = true
    }
    try {
      await this.#carryOut(works, commits)
    } catch (error) {
      // Nobody else knows of them any more.
      for (const { sealed } of works.values()) for (const { shard } of sealed) await shard.sleep()
      throw error
    }
    for (const folder of works.keys()) this.#parts.delete(folder)
    await this.#sendToSleep()
  }

  /** Data first, then the record, then the names. */
  async #carryOut(works: ReadonlyMap<string, FolderWork>, commits: readonly Commit[]): Promise<void> {
    await sideBySide(works, ([folder, work]) => this.#write(folder, work))
    const lines: JournalEntry[] = [...works.values()].flatMap(({ lines }) => lines)
    const sealed = [...works.values()].flatMap(({ sealed }) => sealed)
    if (sealed.length > 0) lines.push({ kind: 'sums', ...sumsOf(sealed) })
    for (const { pieces, entries } of commits) {
      const places = pieces.map((piece) => works.get(piece.folder)!.places.get(piece)!)
      for (const entry of entries) lines.push(entry.kind === 'page' ? withPlaces(entry, places) : entry)
    }
    if (lines.length > 0) await this.#options.journal.append(lines)
    await sideBySide(sealed, ({ shard, line }) => this.#publish(shard, line))
  }

  async #publish(shard: OpenShard, line: SealEntry): Promise<void> {
    await shard.publish(line.path)
    this.#options.onPublished(line)
  }

  /** Makes the rows of one folder durable: whole chunks and shards encoded, the rest in the log of the open shard. */
  async #write(folder: string, work: FolderWork): Promise<void> {
    let shard = await this.#openIn(folder)
    let isNew = false
    // Rows that are neither encoded nor in the log yet, and who is to know where they come to stand in it.
    let waiting: { frame: Uint8Array; rows: number; logged: LoggedRows[] }[] = []
    let chunks: ShardEntry[] = []
    const encode = async (open: OpenShard): Promise<void> => {
      chunks.push(await open.encode(waiting.map(({ frame }) => frame)))
      waiting = []
    }
    const seal = async (open: OpenShard): Promise<void> => {
      if (open.measure.rows > 0) await encode(open)
      const line = await open.seal(this.#options.extension)
      work.lines.push(line)
      work.sealed.push({ shard: open, line })
      this.#open.delete(folder)
      shard = undefined
      chunks = []
    }
    for (const piece of work.pieces) {
      const placed: PlacedRows[] = []
      const logged: LoggedRows[] = []
      work.places.set(piece, { placed, logged })
      const count = countRows(piece.rows)
      for (let at = 0; at < count; ) {
        if (shard === undefined) {
          shard = await this.#begin(folder)
          isNew = true
        }
        const most = this.#options.shardRows - shard.rows
        const taken = shard.measure.take(piece.page.weights, piece.rows, at, most)
        if (taken > 0) {
          const cut = cutPiece(piece, at, at + taken)
          placed.push(...place(cut, shard))
          waiting.push({ frame: frameOf(cut), rows: taken, logged })
          at += taken
        }
        if (shard.rows >= this.#options.shardRows) await seal(shard)
        else if (shard.measure.isFull) await encode(shard)
      }
    }
    if (shard === undefined) return
    if (work.close && shard.rows > 0) return seal(shard)
    if (isNew) work.lines.push({ kind: 'open', shard: shard.shard, folder, part: shard.part })
    work.lines.push(...chunks)
    // Nothing is to be written any more when this has failed.
    const [logging, flushed] = await Promise.allSettled([
      waiting.length > 0 ? shard.log(waiting.map(({ frame }) => frame)) : [],
      chunks.length > 0 ? shard.flush() : undefined,
    ])
    if (flushed.status === 'rejected') throw flushed.reason
    if (logging.status === 'rejected') throw logging.reason
    for (const [i, place] of logging.value.entries()) {
      const { rows, logged } = waiting[i]!
      logged.push({ shard: shard.shard, rows, ...place })
    }
  }

  /** The folder's open shard, taken up from an earlier run where it left one. */
  async #openIn(folder: string): Promise<OpenShard | undefined> {
    const restored = this.#left.get(folder)
    if (restored === undefined) {
      const shard = this.#open.get(folder)
      // The last one used is the last to be sent to sleep.
      if (shard !== undefined && this.#open.delete(folder)) this.#open.set(folder, shard)
      return shard
    }
    const shard = this.#newShard(restored)
    this.#open.set(folder, shard)
    await this.#moveAside(folder, restored.part)
    await shard.restore(restored)
    this.#left.delete(folder)
    return shard
  }

  async #begin(folder: string): Promise<OpenShard> {
    const part = Math.max(this.#options.partsOf(folder), this.#parts.get(folder) ?? 0)
    await this.#moveAside(folder, part)
    this.#parts.set(folder, part + 1)
    const shard = this.#newShard({ shard: this.#nextShard++, folder, part })
    this.#open.set(folder, shard)
    return shard
  }

  #newShard(identity: { shard: number; folder: string; part: number }): OpenShard {
    const { store, coder, chunkRows } = this.#options
    const measure = new ChunkMeasure(chunkRows)
    return new OpenShard({ store, coder, workplace: this.#workplace, measure }, identity)
  }

  #moveAside(folder: string, known: number): Promise<void> {
    const { store, warn } = this.#options
    return setAsideStrangers(store, folder, (_path, part) => part < known, warn)
  }

  /** A thousand folders that are written to in turn are not to hold a thousand files open. */
  async #sendToSleep(): Promise<void> {
    const awake = [...this.#open].filter(([, shard]) => shard.isAwake)
    for (const [folder, shard] of awake.slice(0, Math.max(0, awake.length - MAX_AWAKE))) {
      if (!this.#turns.isTaken(folder)) await shard.sleep()
    }
  }

  async #removeLeftovers(kept: ReadonlySet<string>): Promise<void> {
    await finishSettingAside(this.#options.store)
    for (const name of await this.#options.store.list(OPEN_FOLDER)) {
      const path = `${OPEN_FOLDER}/${name}`
      if (!kept.has(path)) await this.#options.store.remove(path)
    }
  }
}

/** What a batch of pages brings for one folder, and what comes of it. */
type FolderWork = {
  readonly pieces: Piece[]
  close: boolean
  readonly places: Map<Piece, Places>
  readonly lines: ShardEntry[]
  readonly sealed: { readonly shard: OpenShard; readonly line: SealEntry }[]
}

/** Together, as a page may complete a thousand shards that have the same sources. */
function sumsOf(sealed: FolderWork['sealed']): Aggregates {
  const tally = new AggregateTally(CHUNK_LIMITS)
  for (const { shard } of sealed) tally.add(shard.sums)
  return tally.sums()
}

/** Notes the rows of a piece in the shard that they go into. @returns where they stand, partition by partition */
function place(piece: Piece, shard: OpenShard): Iterable<PlacedRows> {
  const placed = new Map<string, PlacedRows>()
  let at = 0
  for (const { partition, rows } of piece.stretches) {
    const span = importedAt(piece, at, at + rows)
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

/** The entry of a page with where its rows stand. */
function withPlaces(page: PageEntry, places: readonly Places[]): PageEntry {
  const placed = places.flatMap(({ placed }) => placed)
  const logged = places.flatMap(({ logged }) => logged)
  if (placed.length === 0) return page
  const pieces = placed.map(({ partition, shard, rows, importedAt }) => ({
    window: windowOfKey(partition),
    shard,
    rows,
    imported_at: importedAt,
  }))
  return { ...page, pieces, ...(logged.length === 0 ? {} : { logged }) }
}
