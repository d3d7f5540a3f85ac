import type { Store } from '../core/index.ts'
import { OPEN_FOLDER, openLogPath, openShardPath } from './layout.ts'
import { OpenShard, type PageRows, type ShardCoder } from './open-shard.ts'
import { recordBytes } from './row-log.ts'
import { setAsideStrangers } from './set-aside.ts'
import type { Place, RestoredShard, ShardLine } from './shard-lines.ts'
import { workplace } from './workplace.ts'

export type ShardSetOptions<Page> = {
  readonly store: Store
  readonly coder: ShardCoder
  readonly extension: string
  /** Rows that are encoded together, up to the next page boundary. */
  readonly chunkRows: number
  /** Rows after which a shard is closed, at the next page boundary. */
  readonly shardRows: number
  /** Puts lines on record, all in one step; what they say counts once it resolves. */
  readonly record: (lines: readonly ShardLine<Page>[]) => Promise<void>
  /** The number that the next shard gets. */
  readonly nextShard: number
  /** Shards begun so far in a folder. */
  readonly partsOf: (folder: string) => number
  readonly warn: (message: string) => void
}

type Commit<Page> = {
  readonly rows: PageRows | null
  readonly page: Page
  readonly close: boolean
  resolve(): void
  reject(error: unknown): void
}

// Keeps memory bounded when values are long.
const CHUNK_BYTES = 16 << 20

/**
 * The shards that are open at one time, one a folder. Pages of many cursor chains may go into one folder;
 * they take turns. A page is committed with the data first and the record second.
 */
export class ShardSet<Page extends object> {
  readonly #options: ShardSetOptions<Page>
  readonly #open = new Map<string, OpenShard>()
  /** Open shards of earlier runs that nobody has asked for yet, by folder. */
  readonly #left = new Map<string, RestoredShard>()
  readonly #turns = new Map<string, Promise<void>>()
  /** Pages that wait for their folder's next turn. */
  readonly #waiting = new Map<string, Commit<Page>[]>()
  #nextShard: number
  readonly #workplace = workplace()

  constructor(options: ShardSetOptions<Page>) {
    this.#options = options
    this.#nextShard = options.nextShard
  }

  /**
   * Looks through the open shards of earlier runs; each is taken up when its folder is written to.
   * @returns shards that lost pages: number of intact pages by shard. When there are any, the checkpoint is to
   *   be rolled back to them first, and this set is of no use any more
   */
  async restore(left: Iterable<RestoredShard>): Promise<ReadonlyMap<number, number>> {
    const lost = new Map<number, number>()
    const kept = new Set<string>()
    for (const restored of left) {
      kept.add(openShardPath(restored.shard)).add(openLogPath(restored.shard))
      const shard = this.#newShard(restored)
      try {
        const intact = await shard.restore(restored)
        if (intact < restored.pages.length) lost.set(restored.shard, intact)
      } finally {
        await shard.close()
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
   * Commits a page: its rows, and with them its line. `close` says that the folder gets no more pages for
   * now, so the shard can be made whole in the same step. Pages that come while others of their folder are being
   * committed are committed together.
   */
  commit(folder: string, rows: PageRows | null, page: Page, close: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const commit = { rows, page, close, resolve, reject }
      const waiting = this.#waiting.get(folder)
      if (waiting === undefined) this.#commitInTurn(folder, [commit])
      else waiting.push(commit)
    })
  }

  #commitInTurn(folder: string, commits: Commit<Page>[]): void {
    this.#waiting.set(folder, commits)
    const turn = this.#inTurn(folder, async () => {
      this.#waiting.delete(folder)
      while (commits.length > 0) {
        const count = await this.#commitSome(folder, commits)
        for (const { resolve } of commits.splice(0, count)) resolve()
      }
    })
    turn.catch((error: unknown) => {
      this.#waiting.delete(folder)
      for (const { reject } of commits) reject(error)
    })
  }

  /**
   * Commits as many pages as can share their flushes; what comes of it is the same as one by one.
   * @returns how many of them, at least one
   */
  async #commitSome(folder: string, commits: readonly Commit<Page>[]): Promise<number> {
    const open = await this.#openIn(folder)
    const together = this.#together(commits, open)
    if (together.length === 0) {
      const { rows, page } = commits[0]!
      await this.#seal(open ?? (await this.#begin(folder)), rows, page)
      return 1
    }
    const pages = together.flatMap(({ rows }) => rows ?? [])
    const shard = pages.length === 0 ? undefined : (open ?? (await this.#begin(folder)))
    const places = (await shard?.log(pages)) ?? []
    let placed = 0
    const lines = together.map(({ rows, page }): ShardLine<Page> => {
      const place: Place = rows === null ? {} : places[placed++]!
      return { kind: 'page', ...page, ...place }
    })
    await this.#options.record(open === undefined && shard !== undefined ? [opening(shard), ...lines] : lines)
    if (shard !== undefined) await this.#encodeWhenDue(shard)
    return together.length
  }

  /** The first of these pages up to one that makes a chunk full, or before one that makes the shard whole. */
  #together(commits: readonly Commit<Page>[], open: OpenShard | undefined): readonly Commit<Page>[] {
    const { chunkRows, shardRows } = this.#options
    let allRows = open?.rows ?? 0
    let pendingRows = open?.pendingRows ?? 0
    let pendingBytes = open?.pendingBytes ?? 0
    let count = 0
    for (const { rows, close } of commits) {
      const isLast = rows === null ? close && allRows > 0 : close || allRows + rows.rows >= shardRows
      if (isLast) break
      count++
      if (rows === null) continue
      allRows += rows.rows
      pendingRows += rows.rows
      pendingBytes += recordBytes(rows.frame)
      if (pendingRows >= chunkRows || pendingBytes >= CHUNK_BYTES) break
    }
    return commits.slice(0, count)
  }

  /** Makes the folder's open shard whole, if there is one. */
  seal(folder: string): Promise<void> {
    return this.#inTurn(folder, async () => {
      const shard = await this.#openIn(folder)
      if (shard !== undefined && shard.rows > 0) await this.#seal(shard, null, null)
    })
  }

  /** Makes a whole shard without any rows, which tells readers the columns: for a data set that has no other. */
  sealEmpty(folder: string, partition: string): Promise<void> {
    return this.#inTurn(folder, async () => {
      const shard = await this.#begin(folder)
      shard.claim(partition)
      await this.#seal(shard, null, null)
    })
  }

  /** Lets go of a folder's open shard as it is; a later run takes it up. */
  release(folder: string): Promise<void> {
    return this.#inTurn(folder, async () => {
      await this.#open.get(folder)?.close()
      this.#open.delete(folder)
    })
  }

  /** Lets go of all open shards. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#turns.values())
    for (const shard of this.#open.values()) await shard.close()
    this.#open.clear()
  }

  /** The folder's open shard, taken up from an earlier run where it left one. */
  async #openIn(folder: string): Promise<OpenShard | undefined> {
    const restored = this.#left.get(folder)
    if (restored === undefined) return this.#open.get(folder)
    const shard = this.#newShard(restored)
    this.#open.set(folder, shard)
    await this.#moveAside(folder, restored.part)
    await shard.restore(restored)
    this.#left.delete(folder)
    // A crash may have come in between; chunks that begin elsewhere would be other bytes.
    await this.#encodeWhenDue(shard)
    return shard
  }

  async #encodeWhenDue(shard: OpenShard): Promise<void> {
    if (shard.pendingRows < this.#options.chunkRows && shard.pendingBytes < CHUNK_BYTES) return
    await this.#options.record([await shard.encodePending()])
    await shard.nextGeneration()
  }

  async #seal(shard: OpenShard, rows: PageRows | null, page: Page | null): Promise<void> {
    const line = await shard.seal(this.#options.extension, rows)
    await this.#options.record([page === null ? line : { ...line, page }])
    this.#open.delete(shard.folder)
    await shard.publish(line.path)
  }

  async #begin(folder: string): Promise<OpenShard> {
    const part = this.#options.partsOf(folder)
    await this.#moveAside(folder, part)
    const shard = this.#newShard({ shard: this.#nextShard++, folder, part })
    this.#open.set(folder, shard)
    return shard
  }

  #newShard(identity: { shard: number; folder: string; part: number }): OpenShard {
    return new OpenShard(this.#options.store, this.#options.coder, this.#workplace, identity)
  }

  #moveAside(folder: string, known: number): Promise<void> {
    const { store, warn } = this.#options
    return setAsideStrangers(store, folder, (_path, part) => part < known, warn)
  }

  async #removeLeftovers(kept: ReadonlySet<string>): Promise<void> {
    for (const name of await this.#options.store.list(OPEN_FOLDER)) {
      const path = `${OPEN_FOLDER}/${name}`
      if (!kept.has(path)) await this.#options.store.remove(path)
    }
  }

  /** Runs the pieces of work of one folder one after the other. */
  #inTurn(folder: string, work: () => Promise<void>): Promise<void> {
    const turn = (this.#turns.get(folder) ?? Promise.resolve()).then(work)
    this.#turns.set(folder, turn)
    const done = (): void => {
      if (this.#turns.get(folder) === turn) this.#turns.delete(folder)
    }
    turn.then(done, () => {})
    return turn
  }
}

function opening({ shard, folder, part }: OpenShard): ShardLine<never> {
  return { kind: 'open', shard, folder, part }
}
