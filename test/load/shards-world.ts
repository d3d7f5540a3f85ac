import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { expect } from 'vitest'
import {
  decodeRecordBatch,
  encodeRecordBatch,
  type Log,
  type NamedQuery,
  nameQuery,
  type PageEntry,
  partitionKey,
  type RecordBatch,
  type Store,
  type Window,
  type WindowRun,
  windowRange,
} from '../../src/core/index.ts'
import { aggregateRows } from '../../src/load/aggregate-rows.ts'
import { rowObjects } from '../../src/load/encode/record-batch-column.ts'
import {
  type Commit,
  PageRows,
  type PartitionRange,
  type ShardCoder,
  ShardSet,
  type Slice,
  shardHash,
} from '../../src/load/index.ts'
import { chainsOf } from '../../src/plan/chains.ts'
import { type Invalidation, invalidate, invalidationOf } from '../../src/run/data-set/invalidate.ts'
import { openSettledCheckpoint } from '../../src/run/data-set/recover.ts'
import {
  type Checkpoint,
  type CheckpointState,
  chainEntry,
  hasBegun,
  readCheckpoint,
  type SealedShard,
  splitPath,
} from '../../src/state/index.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { HEADER } from '../state/lines.ts'
import { lossyStore } from '../support/lossy-store.ts'
import { recordBatchOf, specs } from './record-batch-builder.ts'

/** What the service has for one query: pages, which one chain asks for. */
export type Answers = {
  /** Where the rows of each window go; windows may share a folder. */
  readonly folders: readonly string[]
  /** Of each page the windows of its rows, in their order. */
  readonly pages: readonly (readonly number[])[]
}

/** Answers with so many rows a page, all for one folder. */
export function answersOf(folder: string, ...rows: readonly number[]): Answers {
  return { folders: [folder], pages: rows.map((count) => Array.from({ length: count }, () => 0)) }
}

/** A row in a shard: the number of its query, its window, and its number among the rows of the query. */
export type Row = { readonly query: number; readonly window: number; readonly row: number }

const COLUMNS = specs({ query: 'int64', window: 'int64', row: 'int64', source_id: 'text' })

/** A line of text for each row; the footer is one about the row groups. */
export const textCoder: ShardCoder = {
  header: async () => Buffer.from('a shard\n'),
  encode: async (recordBatches) => {
    const texts: string[] = []
    const decoded: RecordBatch[] = []
    let rows = 0
    for (const given of recordBatches) {
      // What a worker thread does with them: the buffers are gone afterwards.
      const transfer = given.buffer instanceof ArrayBuffer ? [given.buffer] : []
      const recordBatch = decodeRecordBatch(structuredClone(given, { transfer }))
      for (const row of rowObjects(recordBatch, COLUMNS))
        texts.push(`${COLUMNS.map(({ name }) => row[name]).join(' ')}\n`)
      rows += recordBatch.rows
      decoded.push(recordBatch)
    }
    const sums = aggregateRows(decoded)
    const bytes = new Uint8Array(Buffer.from(texts.join('')))
    return {
      bytes,
      crc: crc32(bytes),
      rows,
      meta: { lines: texts.length },
      aggregates: sums,
    }
  },
  footer: async (rowGroups) => Buffer.from(`#${JSON.stringify(rowGroups)}\n`),
  hash: shardHash,
}

function queryOf(query: number): NamedQuery {
  return nameQuery({ type: 'domain', fqdn: `d${query}.com` }, `d${query}.com`)
}

const FIRST_DAY = Date.UTC(2024, 0, 1) * 1000
const DAY = 86_400_000_000

function windowAt(window: number): Window {
  return { from: FIRST_DAY + window * DAY, until: FIRST_DAY + (window + 1) * DAY }
}

export function keyOf(query: number, window: number): string {
  return partitionKey(queryOf(query).name, windowAt(window))
}

function timeOf({ window, row }: Row): number {
  return windowAt(window).from + row
}

/** Every row of a query, page by page. */
function rowsOf(query: number, { pages }: Answers): Row[][] {
  let row = 0
  return pages.map((windows) => windows.map((window) => ({ query, window, row: row++ })))
}

/** What rows of a page go into which folder. */
export function slicesOf(rows: readonly Row[], folderOf: (row: Row) => string): Slice[] {
  if (rows.length === 0) return []
  const cells = rows.map(({ query, window, row }) => ({ query, window, row, source_id: `s${row % 3}` }))
  const recordBatch = encodeRecordBatch(recordBatchOf(COLUMNS, cells, [['source_id']]))
  const page = new PageRows(recordBatch, Float64Array.from(rows, timeOf))
  const folders = new Map<string, number[]>()
  for (const [at, row] of rows.entries()) {
    const folder = folderOf(row)
    folders.set(folder, [...(folders.get(folder) ?? []), at])
  }
  return [...folders].map(([folder, places]): Slice => {
    const ranges: PartitionRange[] = []
    for (const place of places) {
      const partition = keyOf(rows[place]!.query, rows[place]!.window)
      const last = ranges.at(-1)
      if (last?.partition === partition) ranges[ranges.length - 1] = { partition, rows: last.rows + 1 }
      else ranges.push({ partition, rows: 1 })
    }
    const [from, to] = [places[0]!, places.at(-1)! + 1]
    return {
      page,
      folder,
      rows: to - from === places.length ? { from, to } : Uint32Array.from(places),
      ranges,
    }
  })
}

/** So many rows of a query's first window, all for one folder. */
export function sliceOf(query: number, folder: string, count: number): Slice[] {
  const rows = Array.from({ length: count }, (_, row): Row => ({ query, window: 0, row }))
  return slicesOf(rows, () => folder)
}

/** The entry of a page. */
export function pageLine(chain: number, next: string | null, watermark?: number): PageEntry {
  return { kind: 'page', chain, next, requests: 1, ...(watermark === undefined ? {} : { watermark }) }
}

// Small beside the lines and record batches here, so that they span several blocks, as long ones do on a disk.
const BLOCK_BYTES = 16

export type WorldOptions = {
  readonly rowGroupRows: number
  readonly shardRows: number
  /** Each folder is one window's, and its shard is closed with that; else folders are shared and sealed at the end. */
  readonly owned: boolean
}

/** A chain that is still to be followed. */
type Work = { readonly chain: number; readonly windows: WindowRun; hasEnded: boolean }

/** A data set that pages of many chains are committed to, opened and recovered as a run does it. */
export class World {
  readonly root: string
  readonly store: Store
  /** Takes the power away: `disk.cut`. */
  readonly disk: ReturnType<typeof lossyStore>
  readonly answers: readonly Answers[]
  options: WorldOptions
  shards: ShardSet | null = null
  checkpoint: Checkpoint | null = null
  readonly warnings: string[] = []
  /** Shards that were told once they were in the journal and had their names. */
  readonly told: string[] = []
  /** What recoveries gave up. */
  readonly invalidated: Invalidation[] = []
  /** What is left to do, by query. */
  #works: Work[][] = []

  constructor(answers: readonly Answers[], options: WorldOptions) {
    const { root, store } = temporaryStore()
    this.root = root
    this.disk = lossyStore(store, root, BLOCK_BYTES)
    this.store = this.disk.store
    this.answers = answers
    this.options = options
  }

  /** Opens what is there and brings it in order, through another store if need be. */
  async open(store: Store = this.store): Promise<void> {
    for (;;) {
      const warn = (message: string): void => void this.warnings.push(message)
      const checkpoint = await openSettledCheckpoint(store, HEADER, () => {}, warn)
      this.checkpoint = checkpoint
      const { state } = checkpoint
      const { rowGroupRows, shardRows } = this.options
      const shards = new ShardSet({
        store,
        coder: textCoder,
        extension: '.csv',
        rowGroupRows,
        shardRows,
        nextShard: state.nextShard,
        partsOf: (folder) => state.partsOf.get(folder) ?? 0,
        journal: checkpoint,
        warn,
        onPublished: ({ path, sha256 }) => {
          const isOnRecord = [...state.shards].some((shard) => shard.path === path && shard.sha256 === sha256)
          if (!isOnRecord || !existsSync(join(this.root, path))) expect.unreachable(`told too soon: ${path}`)
          this.told.push(path)
        },
      })
      const lost = await shards.restore(state.openShards.values())
      this.shards = shards
      if (lost.size === 0) return this.#plan(state)
      await checkpoint.close()
      const given = invalidationOf(state, { partitions: [], shards: lost })
      expect([...given.shards]).toEqual(expect.arrayContaining([...lost]))
      await invalidate(store, state, given)
      this.invalidated.push(given)
    }
  }

  /** The chains that it takes for what is not done. */
  #plan(state: CheckpointState): void {
    let chains = state.nextChain
    this.#works = this.answers.map(({ folders }, index) => {
      const query = queryOf(index)
      const records = [...(state.partitions.branches.get(query.name) ?? [])]
      const begun = {
        windows: new Map(
          records.flatMap(([name, record]) =>
            hasBegun(record) ? [[name, { done: record.state === 'done' }] as const] : [],
          ),
        ),
        chains: [...state.chains.values()].filter((chain) => chain.query === query.name),
      }
      const wanted = folders.map((_, window) => ({
        name: windowRange(windowAt(window)),
        window: windowAt(window),
      }))
      const planned = chainsOf(query, wanted, begun, { order: 'asc', perChain: null })
      return [...planned].map((chain): Work => {
        if (chain.kind === 'new') return { chain: chains++, windows: chain.windows, hasEnded: false }
        const { windows } = state.chains.get(chain.chain)!
        // Nobody else has taken any of them.
        expect(chain).toMatchObject({ wanted: windows.count, keep: null })
        return { chain: chain.chain, windows, hasEnded: false }
      })
    })
  }

  async close(): Promise<void> {
    await this.shards?.close()
    await this.checkpoint?.close()
    this.forget()
  }

  /** Leaves everything as it is. */
  forget(): void {
    this.shards = null
    this.checkpoint = null
  }

  /** Pages of a query that are in the journal, where nothing of it was given up. */
  pagesOf(query: number): number {
    const { state } = this.checkpoint!
    const { name } = queryOf(query)
    for (const chain of state.chains.values()) if (chain.query === name) return chain.pages
    const isDone = this.answers[query]!.folders.every(
      (_, window) => state.partitions.get(keyOf(query, window))?.state === 'done',
    )
    return isDone ? this.answers[query]!.pages.length : 0
  }

  /** Commits the next page of a query. @returns false when it has none left */
  async commitNext(query: number): Promise<boolean> {
    const work = this.#works[query]?.find(({ hasEnded }) => !hasEnded)
    if (work === undefined) return false
    const commit = this.#nextPage(query, work)
    await this.shards!.commit(commit)
    work.hasEnded = this.checkpoint?.state.chains.get(work.chain) === undefined
    return true
  }

  #nextPage(query: number, { chain, windows }: Work): Commit {
    const answers = this.answers[query]!
    const record = this.checkpoint!.state.chains.get(chain)
    const { from, until } = windows.range!
    const pages = rowsOf(query, answers).map((rows) =>
      rows.filter((row) => timeOf(row) >= from && timeOf(row) < until),
    )
    const number = record?.pages ?? 0
    const isLast = number === pages.length - 1
    const left = pages
      .slice(number + 1)
      .flatMap((rows) => rows.map((row) => windows.indexOfInstant(timeOf(row))))
    const watermark = isLast ? windows.count : Math.min(windows.count - 1, ...left)
    const folderAt = (at: number): string => answers.folders[(at - FIRST_DAY) / DAY]!
    const finished = windows.part(record?.watermark ?? 0, watermark)
    return {
      slices: slicesOf(pages[number]!, ({ window }) => answers.folders[window]!),
      close: this.options.owned
        ? Array.from({ length: finished.count }, (_, place) => folderAt(finished.at(place)!.from))
        : [],
      entries: [
        ...(record === undefined ? [chainEntry(chain, queryOf(query).name, windows)] : []),
        pageLine(chain, isLast ? null : `${chain}-${number}`, watermark),
      ],
    }
  }

  /** Commits every page that is left, of one query after the other in turns. @param onCommit called after each */
  async commitInTurns(onCommit: () => void = () => {}): Promise<void> {
    for (let more = true; more; ) {
      more = false
      for (const query of this.answers.keys()) {
        if (!(await this.commitNext(query))) continue
        more = true
        onCommit()
      }
    }
  }

  /** Commits the next page of every query at once. @returns false when none has one left */
  async commitRound(): Promise<boolean> {
    const commits = await Promise.allSettled([...this.answers.keys()].map((query) => this.commitNext(query)))
    const failed = commits.find((commit) => commit.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return commits.some((commit) => commit.status === 'fulfilled' && commit.value)
  }

  /** Commits every page that is left, in the order of the queries given and then in turns, and seals. */
  async finish(order: readonly number[] = []): Promise<void> {
    for (const query of order) await this.commitNext(query)
    await this.commitInTurns()
    await this.shards!.seal(this.shards!.openFolders)
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

  /** Every row once, where it belongs and in order; every shard as the checkpoint says; nothing left over. */
  async expectComplete(): Promise<void> {
    const state = await readCheckpoint(this.store)
    if (state === null) throw new Error('no checkpoint')
    const files = this.files()
    const shards = [...state.shards]
    expect([...files.keys()].toSorted()).toEqual(shards.map(({ path }) => path).toSorted())
    expect(await this.store.list('_state/open')).toEqual([])
    expect([...state.chains]).toEqual([])
    const found = [...files].flatMap(([path, text]) => {
      const [folder] = splitPath(path)
      return readShard(text, this.options.rowGroupRows).map((row) => ({ folder, row }))
    })
    let total = 0
    for (const [query, answers] of this.answers.entries()) {
      const rows = rowsOf(query, answers).flat()
      total += rows.length
      for (const [window, folder] of answers.folders.entries()) {
        const isOwn = (row: Row): boolean => row.query === query && row.window === window
        const expected = rows.filter(isOwn)
        expect(found.filter(({ row }) => isOwn(row))).toEqual(expected.map((row) => ({ folder, row })))
        expect(state.partitions.get(keyOf(query, window))).toMatchObject({
          state: 'done',
          rows: expected.length,
        })
      }
    }
    expect(found).toHaveLength(total)
    for (const shard of shards) this.#expectShard(shard, files.get(shard.path)!, shards)
  }

  #expectShard(shard: SealedShard, text: string, all: readonly SealedShard[]): void {
    const rows = readShard(text, this.options.rowGroupRows)
    const times = rows.map(timeOf)
    expect(shard).toMatchObject({
      rows: rows.length,
      bytes: text.length,
      sha256: createHash('sha256').update(text).digest('hex'),
      imported_at: { min: Math.min(...times), max: Math.max(...times) },
    })
    const partitions = new Set(rows.map(({ query, window }) => keyOf(query, window)))
    expect(shard.partitions.toSorted()).toEqual([...partitions].sort())
    const [folder, name] = splitPath(shard.path)
    const isLast = all.every(({ path }) => splitPath(path)[0] !== folder || splitPath(path)[1] <= name)
    if (isLast) expect(rows.length).toBeLessThanOrEqual(this.options.shardRows)
    else expect(rows).toHaveLength(this.options.shardRows)
  }
}

/** The rows of a shard, after checking that its row groups are where its footer says, and full but for the last. */
export function readShard(text: string, rowGroupRows: number): Row[] {
  const rows: Row[] = []
  const rowGroups = rowGroupsOf(text)
  let end = 'a shard\n'.length
  expect(text.slice(0, end)).toBe('a shard\n')
  for (const [index, rowGroup] of rowGroups.entries()) {
    expect(rowGroup.offset).toBe(end)
    const lines = text.slice(end).split('\n').slice(0, rowGroup.meta.lines)
    end += lines.reduce((bytes, line) => bytes + line.length + 1, 0)
    expect(lines).toHaveLength(rowGroup.rows)
    if (index < rowGroups.length - 1) expect(rowGroup.rows).toBe(rowGroupRows)
    else expect(rowGroup.rows).toBeLessThanOrEqual(rowGroupRows)
    for (const line of lines) {
      const [query, window, row, source] = line.split(' ')
      expect(source).toBe(`s${Number(row) % 3}`)
      rows.push({ query: Number(query), window: Number(window), row: Number(row) })
    }
  }
  expect(text.slice(end)).toMatch(/^#.*\n$/)
  return rows
}

/** What a shard's footer says of its row groups. */
export function rowGroupsOf(
  text: string,
): { readonly offset: number; readonly rows: number; readonly meta: { readonly lines: number } }[] {
  return JSON.parse(text.split('\n').at(-2)!.slice(1))
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
    fsync: () => change(() => log.fsync()),
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
