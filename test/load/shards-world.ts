import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Log, Store } from '../../src/core/index.ts'
import { type PageRows, type ShardCoder, ShardSet } from '../../src/load/index.ts'
import { openSettledCheckpoint, rollBack } from '../../src/run/recover.ts'
import {
  type Checkpoint,
  type Line,
  type PageFacts,
  readCheckpoint,
  type SealedShard,
} from '../../src/state/index.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { HEADER } from '../state/lines.ts'
import { lossyStore } from '../support/lossy-store.ts'

export type Page = Omit<PageFacts, 'shard' | 'log'>

/** Pages of one chain by their rows; they all go into one folder. */
export type ChainPages = { readonly folder: string; readonly rows: readonly number[] }

/** Frames as lines of text, one after the other; the footer is one line about the chunks. */
export const textCoder: ShardCoder = {
  header: async () => Buffer.from('a shard\n'),
  encode: async (frames) => {
    // What a worker thread does with them: the buffers are gone afterwards.
    const texts = frames.map((frame) => {
      const transfer = frame.buffer instanceof ArrayBuffer ? [frame.buffer] : []
      return Buffer.from(structuredClone(frame, { transfer }))
    })
    const rows = texts.map((text) => Number(text.toString().split(' ')[2]))
    return {
      bytes: new Uint8Array(Buffer.concat(texts)),
      rows: rows.reduce((sum, more) => sum + more, 0),
      meta: { frames: frames.length },
    }
  },
  footer: async (chunks) => Buffer.from(`#${JSON.stringify(chunks)}\n`),
}

export function keyOf(chain: number): string {
  return `domain.d${chain}.com/all`
}

/** What a page commits: a frame that names its chain and number, and its line. */
export function pageOf(
  chain: number,
  number: number,
  { rows }: ChainPages,
): { rows: PageRows | null; page: Page } {
  const count = rows[number] ?? 0
  const partition = keyOf(chain)
  const next = number === rows.length - 1 ? null : `${chain}-${number}`
  const page = { partition, next, rows: count, requests: 1 }
  if (count === 0) return { rows: null, page }
  const text = Buffer.from(`${chain} ${number} ${count}`)
  const frame = new Uint8Array(Math.ceil((text.length + 1) / 8) * 8).fill(0x20)
  frame.set(text)
  frame[frame.length - 1] = 10
  const importedAt = { min: number * 10, max: number * 10 + chain }
  return { rows: { partition, frame, rows: count, importedAt }, page: { ...page, imported_at: importedAt } }
}

// Small beside the lines and frames here, so that they span several blocks, as long ones do on a disk.
const BLOCK_BYTES = 16

export type WorldOptions = {
  readonly shardRows: number
  /** Closes a folder's shard with the last page of a chain; else folders are shared and sealed at the end. */
  readonly owned: boolean
}

/** A data set that chains are committed to page by page, opened and recovered as a run does it. */
export class World {
  readonly root: string
  readonly store: Store
  /** Takes the power away: `disk.cut`. */
  readonly disk: ReturnType<typeof lossyStore>
  readonly chains: readonly ChainPages[]
  options: WorldOptions
  shards: ShardSet<Page> | null = null
  checkpoint: Checkpoint | null = null
  readonly warnings: string[] = []
  /** Pages that a recovery gave up. */
  givenUp = 0

  constructor(chains: readonly ChainPages[], options: WorldOptions) {
    const { root, store } = temporaryStore()
    this.root = root
    this.disk = lossyStore(store, root, BLOCK_BYTES)
    this.store = this.disk.store
    this.chains = chains
    this.options = options
  }

  /** Opens what is there and brings it in order, through another store if need be. */
  async open(store: Store = this.store): Promise<void> {
    for (;;) {
      const warn = (message: string): void => void this.warnings.push(message)
      const checkpoint = await openSettledCheckpoint(store, HEADER, () => {}, warn)
      this.checkpoint = checkpoint
      const { state } = checkpoint
      const shards = new ShardSet<Page>({
        store,
        coder: textCoder,
        extension: '.csv',
        chunkRows: 100_000,
        shardRows: this.options.shardRows,
        nextShard: state.nextShard,
        partsOf: (folder) => state.partsOf.get(folder) ?? 0,
        record: (lines) => checkpoint.append(lines as readonly Line[]),
        warn,
      })
      const lost = await shards.restore(state.openShards.values())
      this.shards = shards
      if (lost.size === 0) return
      await checkpoint.close()
      const pages = await rollBack(store, state, lost)
      expect(pages).toBeGreaterThan(0)
      this.givenUp += pages
    }
  }

  async close(): Promise<void> {
    await this.shards?.close()
    await this.checkpoint?.close()
    this.shards = null
    this.checkpoint = null
  }

  pagesOf(chain: number): number {
    const record = this.checkpoint?.state.partitions.get(keyOf(chain))
    return record?.pages ?? 0
  }

  /** Commits the next page of a chain. @returns false when it has none left */
  async commitNext(chain: number): Promise<boolean> {
    const pages = this.chains[chain]
    const number = this.pagesOf(chain)
    if (pages === undefined || number >= pages.rows.length) return false
    const { rows, page } = pageOf(chain, number, pages)
    await this.shards?.commit(pages.folder, rows, page, this.options.owned && page.next === null)
    return true
  }

  /** Commits every page that is left, of one chain after the other in turns. @param onCommit called after each */
  async commitInTurns(onCommit: () => void = () => {}): Promise<void> {
    for (let more = true; more; ) {
      more = false
      for (const chain of this.chains.keys()) {
        if (!(await this.commitNext(chain))) continue
        more = true
        onCommit()
      }
    }
  }

  /** Commits the next page of every chain at once. @returns false when no chain has one left */
  async commitRound(): Promise<boolean> {
    const commits = await Promise.allSettled([...this.chains.keys()].map((chain) => this.commitNext(chain)))
    const failed = commits.find((commit) => commit.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return commits.some((commit) => commit.status === 'fulfilled' && commit.value)
  }

  /** Commits every page that is left, in the order of the chains given and then in turns, and seals. */
  async finish(order: readonly number[] = []): Promise<void> {
    for (const chain of order) await this.commitNext(chain)
    await this.commitInTurns()
    for (const folder of this.shards?.openFolders ?? []) await this.shards?.seal(folder)
    await this.close()
  }

  /** Shards as they stand in the data set, by path. */
  files(): Map<string, string> {
    const files = new Map<string, string>()
    const folder = join(this.root, 'credentials')
    if (!existsSync(folder)) return files
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      if (path.endsWith('.csv')) files.set(`credentials/${path}`, readFileSync(join(folder, path), 'utf8'))
    }
    return files
  }

  /** Every row of every chain once and in order, every shard as the checkpoint says, nothing left over. */
  async expectComplete(): Promise<void> {
    const state = await readCheckpoint(this.store)
    if (state === null) throw new Error('no checkpoint')
    const files = this.files()
    expect([...files.keys()].toSorted()).toEqual([...state.shards].map(({ path }) => path).toSorted())
    expect(await this.store.list('_state/open')).toEqual([])
    for (const [chain, { folder, rows }] of this.chains.entries()) {
      const found = [...files]
        .filter(([path]) => path.startsWith(`${folder}/`))
        .flatMap(([, text]) => framesOf(text))
        .filter((frame) => frame.chain === chain)
        .map(({ number }) => number)
      expect(found).toEqual([...rows.keys()].filter((number) => rows[number] !== 0))
      expect(state.partitions.get(keyOf(chain))).toMatchObject({
        state: 'done',
        pages: rows.length,
        rows: rows.reduce((sum, more) => sum + more, 0),
      })
    }
    for (const shard of state.shards) this.#expectShard(shard, files.get(shard.path) ?? '')
  }

  #expectShard(shard: SealedShard, text: string): void {
    const frames = framesOf(text)
    const sum = frames.reduce((rows, frame) => rows + frame.rows, 0)
    expect(shard).toMatchObject({
      rows: sum,
      bytes: text.length,
      sha256: createHash('sha256').update(text).digest('hex'),
      imported_at: {
        min: Math.min(...frames.map(({ number }) => number * 10)),
        max: Math.max(...frames.map(({ number, chain }) => number * 10 + chain)),
      },
    })
    expect(shard.partitions.toSorted()).toEqual([...new Set(frames.map(({ chain }) => keyOf(chain)))].sort())
    // A shard is closed as soon as it holds enough rows, and not before a page is whole.
    expect(sum - (frames.at(-1)?.rows ?? 0)).toBeLessThan(this.options.shardRows)
  }
}

type Frame = { readonly chain: number; readonly number: number; readonly rows: number }

/** The frames of a shard, after checking that its chunks are where its footer says. */
export function framesOf(text: string): Frame[] {
  const lines = text.split('\n')
  expect(lines[0]).toBe('a shard')
  const footer = lines.at(-2) ?? ''
  const chunks = JSON.parse(footer.slice(1)) as { offset: number; rows: number; meta: { frames: number } }[]
  const frames = lines.slice(1, -2).map((line) => {
    const [chain, number, rows] = line.trimEnd().split(' ').map(Number)
    return { chain: chain ?? -1, number: number ?? -1, rows: rows ?? -1 }
  })
  let at = 0
  for (const { offset, rows, meta } of chunks) {
    expect(text.slice(0, offset).split('\n').length - 2).toBe(at)
    const own = frames.slice(at, at + meta.frames)
    expect(own.reduce((sum, frame) => sum + frame.rows, 0)).toBe(rows)
    at += meta.frames
  }
  expect(at).toBe(frames.length)
  return frames
}

/** Stands for the end of the process: from then on nothing reaches the disk any more. */
export class Crash extends Error {}

/**
 * A store whose process ends in the midst of its n-th change: of what is being appended then only a part
 * comes to the disk. `used` counts the changes.
 */
export function crashingStore(store: Store, atChange: number) {
  let used = 0
  const open: Log[] = []
  const isLast = (): boolean => {
    if (used >= atChange) throw new Crash()
    return ++used === atChange
  }
  const change = async <T>(work: () => Promise<T>): Promise<T> => {
    // Half of the crashes come before the change, half after it, when nobody learns of it any more.
    if (isLast()) {
      if (used % 2 === 0) await work()
      throw new Crash()
    }
    return work()
  }
  const logOf = (log: Log): Log => ({
    path: log.path,
    get size() {
      return log.size
    },
    append: async (chunks) => {
      if (!isLast()) return log.append(chunks)
      const all = Buffer.concat(chunks)
      await log.append([all.subarray(0, Math.floor((all.length * (used % 4)) / 3))])
      throw new Crash()
    },
    reset: () => change(() => log.reset()),
    flush: () => change(() => log.flush()),
    close: () => log.close(),
  })
  const crashing: Store = {
    ...store,
    openLog: (path, size) =>
      change(async () => {
        const log = await store.openLog(path, size)
        open.push(log)
        return logOf(log)
      }),
    writeWhole: (path, chunks) => change(() => store.writeWhole(path, chunks)),
    publish: (from, to) => change(() => store.publish(from, to)),
    remove: (path) => change(() => store.remove(path)),
  }
  return {
    store: crashing,
    used: () => used,
    /** Gives back what the process would have given back by ending. */
    async end() {
      for (const log of open) await log.close()
    },
  }
}
