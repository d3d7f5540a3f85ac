import { type OwnedStore, serial, sideBySide } from '../core/index.ts'
import { decodeRecordBatch } from '../rows/index.ts'
import type { CommitLog, FoldedShard, JournalEntry, SealEntry, ShardIdentity } from '../state/index.ts'
import { SHORT_BYTES } from './encode/decode-record-batches.ts'
import { sealedPath } from './layout.ts'
import { OpenShard, type OpenShardTools } from './open-shard.ts'
import { Placed, type Placement } from './placed-page.ts'
import { RowCache } from './row-cache.ts'
import { byteSizes, RowGroupMeasure } from './row-group-measure.ts'
import { changedSinceSealed, isAsSealed, publishSealed } from './sealed.ts'
import type { ShardCoder } from './shard-coder.ts'
import { cutSlice, type Slice } from './slice.ts'
import { countRows } from './take-rows.ts'

export type ShardSetOptions = {
  readonly store: OwnedStore
  readonly coder: ShardCoder
  readonly extension: string
  readonly rowGroupRows: number
  /** Rows of a shard; the last of a folder may have fewer. */
  readonly shardRows: number
  readonly log: CommitLog
  /** Whether reading an object costs a request. */
  readonly readsCost: boolean
  /** A number above those of all shards that are committed. */
  readonly nextShard: () => number
  /** Number of shards begun so far in a folder. */
  readonly partsOf: (folder: string) => number
  /** Sealed shards that are not published yet, by number, those that are sealed meanwhile too. */
  readonly unpublished: ReadonlyMap<number, { readonly sha256: string; readonly bytes: number }>
  /** Called with each shard once it is committed, and again once it is published. */
  readonly onSealed: (shard: SealEntry) => void
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

/** Memory for rows that wait to be encoded. A full page takes about a megabyte. */
const CACHE_BYTES = 32 << 20
/** Shards are encoded behind the commits of pages. One whose rows all come with one page is committed with it. */
export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #tools: OpenShardTools
  readonly #rows: RowCache
  readonly #open = new Map<string, OpenShard>()
  /** Shards that get no more rows and are not published. */
  readonly #sealing = new Set<OpenShard>()
  /** Number of the next part of folders with shards that are not committed yet. */
  readonly #parts = new Map<string, number>()
  readonly #backlog = new Backlog()
  readonly #placing = serial()
  readonly #handing = serial('stop')
  readonly #committing = serial('stop')
  #sealed: Sealed[] = []
  #nextShard = 0

  private constructor(options: ShardSetOptions) {
    this.#options = options
    this.#tools = { store: options.store, coder: options.coder, encoding: serial() }
    // On a disk, long record batches are read back: that takes less time than to keep them through garbage collections.
    this.#rows = new RowCache(options.log, CACHE_BYTES, options.readsCost ? CACHE_BYTES : SHORT_BYTES)
  }

  /** @returns the set; or the numbers of shards that have lost rows. The checkpoint must invalidate these first */
  static async open(
    options: ShardSetOptions,
    left: Iterable<FoldedShard>,
  ): Promise<{ readonly set: ShardSet } | { readonly lost: ReadonlySet<number> }> {
    const set = new ShardSet(options)
    const lost = new Set<number>()
    try {
      await sideBySide(options.unpublished, async ([shard, { sha256, bytes }]) => {
        if ((await options.store.size(sealedPath(shard, sha256))) !== bytes) lost.add(shard)
      })
      await sideBySide(left, async (folded) => {
        if (!(await set.#restore(folded))) lost.add(folded.shard)
      })
      if (lost.size === 0) {
        for (const shard of set.#sealing) set.#backlog.add(set.#sealBehind(shard))
        await set.settled()
        return { set }
      }
    } catch (error) {
      await set.close()
      throw error
    }
    await set.close()
    return { lost }
  }

  get openFolders(): readonly string[] {
    return [...this.#open.keys()]
  }

  /** Commits a page, in the order of the calls. It waits while too many row groups wait to be encoded. */
  async commit(commit: Commit): Promise<void> {
    const { committed } = await this.#placing(async () => {
      await this.#backlog.room()
      const placed = this.#place(commit)
      const committed = this.#commitPlaced(commit, placed)
      placed.committed(committed.then(({ blobs }) => blobs))
      return { committed }
    })
    const { seals } = await committed
    for (const { seal } of seals) this.#options.onSealed(seal)
    await sideBySide(seals, ({ shard, seal }) => this.#publish(shard, seal))
  }

  /** The log gets pages in the order of their rows: one may add rows to a shard that the one before it begins. */
  async #commitPlaced({ entries }: Commit, placed: Placed) {
    try {
      const sealing = this.#sealWhole(placed)
      // Nobody asks for them once an earlier page has failed.
      sealing.catch(() => {})
      const { seals, logged } = await this.#handing(async () => {
        const seals = await sealing
        const all = [...seals.map(({ seal }) => seal), ...placed.opened, ...entries(placed.placement)]
        return { seals, logged: all.length === 0 ? null : this.#options.log.commit(all, placed.blobs) }
      })
      return { seals, blobs: (await logged) ?? [] }
    } catch (error) {
      this.#backlog.fail(error)
      throw error
    }
  }

  /** Seals the shards whose rows all come with a page before its commit, so that their rows need not be in the log. */
  async #sealWhole({ whole }: Placed): Promise<readonly Sealed[]> {
    const seals: Sealed[] = []
    await sideBySide(whole, async (shard) => {
      if (shard.hasRest) await shard.endRowGroup()
      seals.push({ shard, seal: await shard.seal(this.#options.extension) })
    })
    return seals
  }

  async seal(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      const shard = this.#open.get(folder)
      if (shard === undefined) continue
      // There may be thousands, and each opens a file.
      await this.#backlog.room()
      this.#takeFromOpen(shard)
      this.#backlog.add(this.#sealBehind(shard))
    }
    await this.settled()
  }

  /** Resolves when everything that was ended is encoded, committed and published. @throws what failed */
  settled(): Promise<void> {
    return this.#backlog.settled()
  }

  /** Ends the work. The rows of open shards are in the log; a later run continues them. */
  async close(): Promise<void> {
    await this.#backlog.settled().catch(() => {})
    for (const shard of [...this.#open.values(), ...this.#sealing]) await shard.discard()
    this.#open.clear()
    this.#sealing.clear()
  }

  /** @returns whether all its rows are there */
  async #restore(folded: FoldedShard): Promise<boolean> {
    const shard = this.#newShard(folded)
    shard.isFresh = false
    const other = this.#open.get(folded.folder)
    if (other === undefined || other.part < shard.part) this.#open.set(folded.folder, shard)
    // Only the last shard of a folder gets more rows. The others had ended.
    if (other !== undefined) this.#sealing.add(other.part < shard.part ? other : shard)
    for (const { rows, at } of folded.batches) {
      const bytes = await this.#options.log.read(at)
      if (bytes === null) return false
      // How full the row group is depends on its rows.
      const batch = this.#rows.add(bytes, Promise.resolve(at))
      const recordBatch = decodeRecordBatch(bytes)
      if (recordBatch.rows !== rows) return false
      shard.measure.take(byteSizes(recordBatch), { from: 0, to: rows }, 0, rows)
      shard.add(batch)
      shard.rows += rows
      if (!shard.measure.isFull) continue
      shard.measure.reset()
      await this.#endRowGroup(shard)
    }
    for (const partition of folded.partitions) shard.count(partition, 0, folded.importedAt)
    return true
  }

  /** Nothing is awaited meanwhile, so the rows of a folder stay in the order of pages. */
  #place({ slices, close, blobs }: Commit): Placed {
    const placed = new Placed(blobs, this.#rows)
    for (const slice of slices) {
      const { folder, schema } = slice
      const count = countRows(slice.rows)
      const open = this.#open.get(folder)
      // A shard has one schema.
      if (open !== undefined && open.schema !== schema) this.#end(open, placed)
      for (let at = 0; at < count; ) {
        const shard = this.#open.get(folder) ?? placed.begun(this.#begin(folder, schema))
        const most = this.#options.shardRows - shard.rows
        const taken = shard.measure.take(slice.page.sizes, slice.rows, at, most)
        if (taken > 0) placed.add(shard, cutSlice(slice, at, at + taken))
        at += taken
        if (shard.rows >= this.#options.shardRows) this.#end(shard, placed)
        else if (shard.measure.isFull) {
          shard.measure.reset()
          placed.later(shard, () => this.#backlog.add(this.#endRowGroup(shard)))
        }
      }
    }
    for (const folder of close) {
      const shard = this.#open.get(folder)
      if (shard !== undefined && shard.rows > 0) this.#end(shard, placed)
    }
    placed.log()
    return placed
  }

  #end(shard: OpenShard, placed: Placed): void {
    this.#takeFromOpen(shard)
    placed.later(shard, () => this.#backlog.add(this.#sealBehind(shard)), true)
  }

  #takeFromOpen(shard: OpenShard): void {
    this.#open.delete(shard.folder)
    this.#sealing.add(shard)
  }

  #endRowGroup(shard: OpenShard): Promise<void> {
    return this.#backlog.rowGroup(shard.endRowGroup())
  }

  async #sealBehind(shard: OpenShard): Promise<void> {
    if (shard.hasRest) await this.#endRowGroup(shard)
    await this.#commitSeal(shard, await shard.seal(this.#options.extension))
  }

  /** Commits a sealed shard, together with others that are ready, and publishes it. */
  async #commitSeal(shard: OpenShard, seal: SealEntry): Promise<void> {
    this.#sealed.push({ shard, seal })
    await this.#committing(async () => {
      const ready = this.#sealed
      if (ready.length === 0) return
      this.#sealed = []
      await this.#options.log.commit(ready.map(({ seal }) => seal))
      for (const { seal: each } of ready) this.#options.onSealed(each)
    })
    await this.#publish(shard, seal)
  }

  async #publish(shard: OpenShard, seal: SealEntry): Promise<void> {
    this.#sealing.delete(shard)
    // From its commit on the checkpoint knows the shard's part. A run may write to a million folders.
    if (this.#parts.get(shard.folder) === shard.part + 1) this.#parts.delete(shard.folder)
    if (this.#options.unpublished.has(seal.shard)) return
    const { store, readsCost } = this.#options
    if (readsCost) await store.publish(sealedPath(seal.shard, seal.sha256), seal.path)
    else {
      if (!(await isAsSealed(store, seal))) {
        await store.requireLock()
        throw changedSinceSealed(seal)
      }
      await publishSealed(store, seal)
    }
    this.#options.onPublished(seal)
  }

  #begin(folder: string, schema: number): OpenShard {
    const part = Math.max(this.#options.partsOf(folder), this.#parts.get(folder) ?? 0)
    this.#parts.set(folder, part + 1)
    const number = Math.max(this.#options.nextShard(), this.#nextShard)
    this.#nextShard = number + 1
    const shard = this.#newShard({ shard: number, folder, part, schema })
    this.#open.set(folder, shard)
    return shard
  }

  #newShard(identity: ShardIdentity): OpenShard {
    return new OpenShard(this.#tools, new RowGroupMeasure(this.#options.rowGroupRows), identity)
  }
}

type Sealed = { readonly shard: OpenShard; readonly seal: SealEntry }

/** Ended row groups that wait to be encoded. Pages are committed meanwhile; then they wait. */
const MAX_ROW_GROUPS = 3
const MAX_WORK = 64

/** The work behind the commits. After a failure nothing more is committed. */
export class Backlog {
  readonly #work = new Set<Promise<void>>()
  #rowGroups = 0
  #failure: { readonly error: unknown } | null = null

  add(work: Promise<void>): void {
    const settled = work.catch((error: unknown) => this.fail(error)).finally(() => this.#work.delete(settled))
    this.#work.add(settled)
  }

  /** Counts a row group until it is encoded. */
  async rowGroup(encoding: Promise<void>): Promise<void> {
    this.#rowGroups++
    try {
      await encoding
    } finally {
      this.#rowGroups--
    }
  }

  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** @throws the first failure */
  requireWell(): void {
    if (this.#failure !== null) throw this.#failure.error
  }

  /** Resolves when there is room for more work. @throws what failed */
  async room(): Promise<void> {
    while (this.#failure === null && (this.#rowGroups >= MAX_ROW_GROUPS || this.#work.size >= MAX_WORK))
      await Promise.race(this.#work)
    this.requireWell()
  }

  /** Resolves when everything is done. @throws what failed */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work)
    this.requireWell()
  }
}
