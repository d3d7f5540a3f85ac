import {
  AggregateTally,
  type BlobRef,
  type CommitLog,
  decodeRecordBatch,
  type JournalEntry,
  type LoggedRows,
  type OpenEntry,
  type OpenShardRecord,
  type OwnedStore,
  type PageEntry,
  ROW_GROUP_LIMITS,
  type SealEntry,
  type Span,
  serial,
  sideBySide,
  spanOf,
  windowOfKey,
} from '../core/index.ts'
import { sealedPath } from './layout.ts'
import { OpenShard, type OpenShardTools, type ShardCoder } from './open-shard.ts'
import { moveUnknownShards } from './orphans.ts'
import { type LoggedBatch, RowCache } from './row-cache.ts'
import { byteSizes, RowGroupMeasure } from './row-group-measure.ts'
import { changedSinceSealed, isAsSealed } from './sealed.ts'
import { cutSlice, importedAt, recordBatchOf, type Slice } from './slice.ts'
import { countRows } from './take-rows.ts'

export type ShardSetOptions = {
  readonly store: OwnedStore
  readonly coder: ShardCoder
  readonly extension: string
  /** Rows of a row group. */
  readonly rowGroupRows: number
  /** Rows of a shard; the last of a folder may have fewer. */
  readonly shardRows: number
  readonly log: CommitLog
  /** Whether reading an object costs a request. */
  readonly readsCost: boolean
  /** Number of the next shard. */
  readonly nextShard: number
  /** Number of shards begun so far in a folder. */
  readonly partsOf: (folder: string) => number
  /** Finished shards that are not published yet, by number, those that are sealed meanwhile too. */
  readonly held: ReadonlyMap<number, { readonly sha256: string; readonly bytes: number }>
  readonly warn: (message: string) => void
  /** Called with each shard once it is committed, and again once it is published. */
  readonly onSealed: (shard: SealEntry) => void
  readonly onPublished: (shard: SealEntry) => void
}

/** A page to be committed. */
export type Commit = {
  /** In the order of the page. */
  readonly slices: readonly Slice[]
  /** Folders that get no more rows for now. Their shards are sealed. */
  readonly close: readonly string[]
  /** Entries to commit with the rows. The page's entry gets the placement of the rows. */
  readonly entries: readonly JournalEntry[]
  /** Bytes that these entries refer to by index. */
  readonly blobs: readonly Uint8Array[]
}

/** Memory for rows that wait to be encoded. A full page takes about a megabyte. */
const CACHE_BYTES = 32 << 20
/** On a disk, reading a longer record batch back takes no longer than its bytes do. */
const SHORT_BYTES = 64 << 10
/** Ended row groups that wait to be encoded. Pages are committed meanwhile; then they wait. */
const MAX_ROW_GROUPS_WAITING = 3
const MAX_WORK_WAITING = 64

/**
 * The open shards, one for each folder. A page may have rows for many folders, and a folder may get rows of many chains.
 * Rows are committed to the log. Their row groups are encoded behind the commits, and a sealed shard gets a commit of its
 * own. A shard whose rows all come with one page is sealed first, and committed with it.
 */
export class ShardSet {
  readonly #options: ShardSetOptions
  readonly #tools: OpenShardTools
  readonly #rows: RowCache
  readonly #open = new Map<string, OpenShard>()
  /** Shards that get no more rows and are not published. */
  readonly #sealing = new Set<OpenShard>()
  /** Number of the next part of folders with shards that are not committed yet. */
  readonly #parts = new Map<string, number>()
  /** Folders that are searched for unknown shards. */
  readonly #checked = new Map<string, Promise<void>>()
  readonly #work = new Set<Promise<void>>()
  readonly #placing = serial()
  readonly #committing = serial('stop')
  #sealed: Sealed[] = []
  #nextShard: number
  #rowGroupsWaiting = 0
  #failure: { readonly error: unknown } | null = null

  private constructor(options: ShardSetOptions) {
    this.#options = options
    this.#tools = { store: options.store, coder: options.coder, encoding: serial() }
    this.#rows = new RowCache(options.log, CACHE_BYTES, options.readsCost ? CACHE_BYTES : SHORT_BYTES)
    this.#nextShard = options.nextShard
  }

  /**
   * Opens the shards that earlier runs left open, with every row that is committed.
   * @returns the set; or the numbers of shards that have lost rows. The checkpoint must invalidate these first
   */
  static async open(
    options: ShardSetOptions,
    left: Iterable<OpenShardRecord>,
  ): Promise<{ readonly set: ShardSet } | { readonly lost: ReadonlySet<number> }> {
    const set = new ShardSet(options)
    const lost = new Set<number>()
    try {
      await sideBySide(options.held, async ([shard, { sha256, bytes }]) => {
        if ((await options.store.size(sealedPath(shard, sha256))) !== bytes) lost.add(shard)
      })
      await sideBySide(left, async (record) => {
        if (!(await set.#restore(record))) lost.add(record.shard)
      })
      if (lost.size === 0) {
        set.#sealEarlier()
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

  /** Folders that have an open shard. */
  get openFolders(): readonly string[] {
    return [...this.#open.keys()]
  }

  /** Commits a page, in the order of the calls. It waits while too many row groups wait to be encoded. */
  async commit(commit: Commit): Promise<void> {
    const folders = new Set(commit.slices.map(({ folder }) => folder))
    const checked = sideBySide(folders, (folder) => this.#checkFolder(folder))
    checked.catch(() => {})
    const placed = await this.#placing(async () => {
      await checked
      while (this.#failure === null && this.#isBehind) await Promise.race(this.#work)
      this.#requireWell()
      return this.#place(commit)
    })
    const done = this.#commitPlaced(commit, placed)
    placed.committed(done.then(({ blobs }) => blobs))
    const { seals } = await done
    for (const { seal } of seals) this.#options.onSealed(seal)
    await sideBySide(seals, ({ shard, seal }) => this.#publish(shard, seal))
  }

  async #commitPlaced(
    commit: Commit,
    placed: Placed,
  ): Promise<{ seals: readonly Sealed[]; blobs: readonly BlobRef[] }> {
    try {
      const seals: Sealed[] = []
      // Sealed before the commit, so that their rows need not be in the log.
      await sideBySide(placed.whole, async (shard) => {
        seals.push({ shard, seal: await this.#sealWhole(shard) })
      })
      const entries = commit.entries.map((entry) =>
        entry.kind === 'page' ? withPlacements(entry, placed.slices, placed.logged) : entry,
      )
      const all = [...sealEntries(seals), ...placed.opened, ...entries]
      return { seals, blobs: all.length === 0 ? [] : await this.#options.log.commit(all, placed.blobs) }
    } catch (error) {
      this.#failure ??= { error }
      throw error
    }
  }

  /** Seals the open shards of some folders. */
  async seal(folders: readonly string[]): Promise<void> {
    for (const folder of folders) this.#close(folder)
    await this.settled()
  }

  /** Makes a shard without rows, for a data set without other shards. Readers get the columns from it. */
  async sealEmpty(folder: string, partition: string): Promise<void> {
    await this.#checkFolder(folder)
    const shard = this.#begin(folder)
    this.#open.delete(folder)
    shard.count(partition, 0, null)
    await this.#commitSeal(shard, await shard.seal(this.#options.extension))
  }

  /** Resolves when everything that was ended is encoded, committed and published. @throws what failed */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work)
    this.#requireWell()
  }

  /** Ends the work. The rows of open shards are in the log; a later run continues them. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#work)
    for (const shard of [...this.#open.values(), ...this.#sealing]) await shard.discard()
    this.#open.clear()
    this.#sealing.clear()
  }

  /** @returns whether all its rows are there */
  async #restore(record: OpenShardRecord): Promise<boolean> {
    const shard = this.#newShard(record)
    shard.isFresh = false
    const other = this.#open.get(record.folder)
    if (other === undefined || other.part < shard.part) this.#open.set(record.folder, shard)
    // Only the last shard of a folder gets more rows. The others had ended.
    if (other !== undefined) this.#sealing.add(other.part < shard.part ? other : shard)
    for (const { rows, at } of record.records) {
      const bytes = await this.#options.log.read(at)
      if (bytes === null) return false
      // How full the row group is depends on its rows.
      const batch = this.#rows.add(bytes, Promise.resolve(at))
      const recordBatch = decodeRecordBatch(bytes)
      if (recordBatch.rows !== rows) return false
      shard.measure.take(byteSizes(recordBatch), { from: 0, to: rows }, 0, rows)
      shard.add({ rows, batch })
      shard.rows += rows
      if (!shard.measure.isFull) continue
      shard.measure.reset()
      await this.#endRowGroup(shard)
    }
    for (const partition of record.partitions) shard.count(partition, 0, record.importedAt)
    return true
  }

  /** Seals restored shards that had ended. */
  #sealEarlier(): void {
    for (const shard of this.#sealing) this.#behind(this.#sealBehind(shard))
  }

  get #isBehind(): boolean {
    return this.#rowGroupsWaiting >= MAX_ROW_GROUPS_WAITING || this.#work.size >= MAX_WORK_WAITING
  }

  #requireWell(): void {
    if (this.#failure !== null) throw this.#failure.error
  }

  /** Work behind the commits. After a failure nothing more is committed. */
  #behind(work: Promise<void>): void {
    const settled = work
      .catch((error: unknown) => {
        this.#failure ??= { error }
      })
      .finally(() => this.#work.delete(settled))
    this.#work.add(settled)
  }

  /**
   * Assigns the rows of a page to shards. Nothing is awaited meanwhile, so the rows of a folder stay in the order of
   * pages.
   */
  #place({ slices, close, blobs }: Commit): Placed {
    const placed = new Placed(blobs, this.#rows)
    for (const slice of slices) {
      const { folder } = slice
      const count = countRows(slice.rows)
      for (let at = 0; at < count; ) {
        const shard = this.#open.get(folder) ?? placed.begun(this.#begin(folder))
        const most = this.#options.shardRows - shard.rows
        const taken = shard.measure.take(slice.page.weights, slice.rows, at, most)
        if (taken > 0) placed.add(shard, cutSlice(slice, at, at + taken))
        at += taken
        if (shard.rows >= this.#options.shardRows) this.#end(shard, placed)
        else if (shard.measure.isFull) {
          shard.measure.reset()
          placed.later(shard, () => this.#behind(this.#endRowGroup(shard)))
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

  /** Ends a shard that gets no more rows. */
  #end(shard: OpenShard, placed: Placed): void {
    this.#takeFromOpen(shard)
    placed.later(shard, () => this.#behind(this.#sealBehind(shard)), true)
  }

  #close(folder: string): void {
    const shard = this.#open.get(folder)
    if (shard === undefined) return
    this.#takeFromOpen(shard)
    this.#behind(this.#sealBehind(shard))
  }

  #takeFromOpen(shard: OpenShard): void {
    this.#open.delete(shard.folder)
    this.#sealing.add(shard)
  }

  async #endRowGroup(shard: OpenShard): Promise<void> {
    this.#rowGroupsWaiting++
    try {
      await shard.endRowGroup()
    } finally {
      this.#rowGroupsWaiting--
    }
  }

  async #sealWhole(shard: OpenShard): Promise<SealEntry> {
    if (shard.hasRest) await shard.endRowGroup()
    return shard.seal(this.#options.extension)
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
      await this.#options.log.commit(sealEntries(ready))
      for (const { seal: each } of ready) this.#options.onSealed(each)
    })
    await this.#publish(shard, seal)
  }

  async #publish(shard: OpenShard, seal: SealEntry): Promise<void> {
    this.#sealing.delete(shard)
    this.#forgetFolder(shard)
    if (this.#options.held.has(seal.shard)) return
    const { store, readsCost } = this.#options
    if (!readsCost && !(await isAsSealed(store, seal))) {
      await store.requireLock()
      const keys = seal.partitions.join(' ')
      throw changedSinceSealed(seal, `Check the disk, then export it again: \`run --redo ${keys}\`.`)
    }
    await store.publish(sealedPath(seal.shard, seal.sha256), seal.path)
    this.#options.onPublished(seal)
  }

  /** From its commit on the checkpoint knows the shard's part. A run may write to a million folders. */
  #forgetFolder({ folder, part }: OpenShard): void {
    if (this.#parts.get(folder) !== part + 1) return
    this.#parts.delete(folder)
    this.#checked.delete(folder)
  }

  #begin(folder: string): OpenShard {
    const part = Math.max(this.#options.partsOf(folder), this.#parts.get(folder) ?? 0)
    this.#parts.set(folder, part + 1)
    const shard = this.#newShard({ shard: this.#nextShard++, folder, part })
    this.#open.set(folder, shard)
    return shard
  }

  #newShard(identity: Pick<OpenShardRecord, 'shard' | 'folder' | 'part'>): OpenShard {
    return new OpenShard(this.#tools, new RowGroupMeasure(this.#options.rowGroupRows), identity)
  }

  /** Once for each folder: pages of many chains may begin it at the same time. */
  #checkFolder(folder: string): Promise<void> {
    const { store, warn, partsOf } = this.#options
    const known = Math.max(partsOf(folder), this.#parts.get(folder) ?? 0)
    const checked =
      this.#checked.get(folder) ?? moveUnknownShards(store, folder, (_path, part) => part < known, warn)
    this.#checked.set(folder, checked)
    return checked
  }
}

/** Rows of a page in a shard. */
type PlacedRows = {
  /** The key of their partition. */
  readonly partition: string
  readonly shard: number
  readonly rows: number
  readonly importedAt: Span | null
}

/** How a page changes the open shards. */
class Placed {
  readonly slices: PlacedRows[] = []
  readonly logged: LoggedRows[] = []
  readonly blobs: Uint8Array[]
  readonly opened: OpenEntry[] = []
  /** Shards whose rows all come with this page. */
  readonly whole: OpenShard[] = []
  readonly #rows: RowCache
  readonly #begun = new Set<OpenShard>()
  readonly #steps = new Map<OpenShard, Step[]>()
  #resolve: (done: Promise<readonly BlobRef[]>) => void = () => {}
  readonly #done = new Promise<readonly BlobRef[]>((resolve) => {
    this.#resolve = resolve
  })

  constructor(blobs: readonly Uint8Array[], rows: RowCache) {
    this.blobs = [...blobs]
    this.#rows = rows
    // A page without logged rows has nobody else who waits.
    this.#done.catch(() => {})
  }

  begun(shard: OpenShard): OpenShard {
    this.#begun.add(shard)
    return shard
  }

  /** Counts rows in their shard, by partition. */
  add(shard: OpenShard, slice: Slice): void {
    const placed = new Map<string, PlacedRows>()
    let at = 0
    for (const { partition, rows } of slice.ranges) {
      const span = importedAt(slice, at, at + rows)
      shard.count(partition, rows, span)
      const before = placed.get(partition)
      placed.set(partition, {
        partition,
        shard: shard.shard,
        rows: rows + (before?.rows ?? 0),
        importedAt: spanOf(before?.importedAt ?? null, span),
      })
      at += rows
    }
    this.slices.push(...placed.values())
    this.#stepsOf(shard).push({ rows: countRows(slice.rows), bytes: recordBatchOf(slice) })
  }

  /** @param isEnd whether the shard gets no more rows */
  later(shard: OpenShard, work: () => void, isEnd = false): void {
    this.#stepsOf(shard).push({ work, isEnd })
  }

  /** Gives the rows to their shards: those of whole shards as they are, others by way of the log. */
  log(): void {
    for (const [shard, steps] of this.#steps) {
      const isWhole = shard.isFresh && steps.some((step) => 'work' in step && step.isEnd)
      if (isWhole) this.whole.push(shard)
      else if (this.#begun.has(shard)) {
        this.opened.push({ kind: 'open', shard: shard.shard, folder: shard.folder, part: shard.part })
      }
      if (!isWhole) shard.isFresh = false
      for (const step of steps) {
        if ('work' in step) {
          if (!isWhole) step.work()
          else if (!step.isEnd) void shard.endRowGroup()
        } else if (isWhole) shard.add({ rows: step.rows, batch: step.bytes })
        else shard.add({ rows: step.rows, batch: this.#logged(shard, step) })
      }
    }
  }

  #logged(
    shard: OpenShard,
    { rows, bytes }: { readonly rows: number; readonly bytes: Uint8Array },
  ): LoggedBatch {
    const blob = this.blobs.push(bytes) - 1
    this.logged.push({ shard: shard.shard, rows, blob })
    return this.#rows.add(
      bytes,
      this.#done.then((refs) => refs[blob]!),
    )
  }

  /** @param done the commit of the rows */
  committed(done: Promise<readonly BlobRef[]>): void {
    this.#resolve(done)
  }

  #stepsOf(shard: OpenShard): Step[] {
    const steps = this.#steps.get(shard) ?? []
    this.#steps.set(shard, steps)
    return steps
  }
}

/** Rows for a shard, or what is to be done after the rows before. */
type Step =
  | { readonly rows: number; readonly bytes: Uint8Array }
  | { readonly work: () => void; readonly isEnd: boolean }

type Sealed = { readonly shard: OpenShard; readonly seal: SealEntry }

/** The entries of some shards, with one for their aggregates: a page may complete a thousand with the same sources. */
function sealEntries(sealed: readonly Sealed[]): JournalEntry[] {
  if (sealed.length === 0) return []
  const tally = new AggregateTally(ROW_GROUP_LIMITS)
  for (const { shard } of sealed) tally.add(shard.aggregates)
  return [...sealed.map(({ seal }) => seal), { kind: 'aggregates', ...tally.aggregates() }]
}

/** The entry of a page with the placement of its rows. */
function withPlacements(
  page: PageEntry,
  placed: readonly PlacedRows[],
  logged: readonly LoggedRows[],
): PageEntry {
  if (placed.length === 0) return page
  const slices = placed.map(({ partition, shard, rows, importedAt }) => ({
    window: windowOfKey(partition),
    shard,
    rows,
    imported_at: importedAt,
  }))
  return { ...page, slices, ...(logged.length === 0 ? {} : { logged }) }
}
