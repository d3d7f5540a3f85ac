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
import { removeReplaced, replaceRedone } from '../../src/run/data-set/replace.ts'
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

/** The responses of the service for one query: pages, which one chain requests. */
export type Responses = {
  /** The folder for the rows of each window; windows may share one. */
  readonly folders: readonly string[]
  /** For each page the windows of its rows, in order. */
  readonly pages: readonly (readonly number[])[]
}

/** Responses with these numbers of rows, a page each, all for one folder. */
export function responsesOf(folder: string, ...rows: readonly number[]): Responses {
  return { folders: [folder], pages: rows.map((count) => Array.from({ length: count }, () => 0)) }
}

/** A row in a shard: the number of its query, its window, and its number among the rows of the query. */
export type Row = { readonly query: number; readonly window: number; readonly row: number }

const COLUMNS = specs({ query: 'int64', window: 'int64', row: 'int64', source_id: 'text' })

/** A line of text for each row; the footer is a line about the row groups. */
export const textCoder: ShardCoder = {
  header: async () => Buffer.from('a shard\n'),
  encode: async (recordBatches) => {
    const texts: string[] = []
    const decoded: RecordBatch[] = []
    let rows = 0
    for (const given of recordBatches) {
      // As a worker thread transfers them: the buffers are detached afterwards.
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
function rowsOf(query: number, { pages }: Responses): Row[][] {
  let row = 0
  return pages.map((windows) => windows.map((window) => ({ query, window, row: row++ })))
}

/** The slices of a page, one for each folder. */
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
  return [...folders].map(([folder, indexes]): Slice => {
    const ranges: PartitionRange[] = []
    for (const index of indexes) {
      const partition = keyOf(rows[index]!.query, rows[index]!.window)
      const last = ranges.at(-1)
      if (last?.partition === partition) ranges[ranges.length - 1] = { partition, rows: last.rows + 1 }
      else ranges.push({ partition, rows: 1 })
    }
    const [from, to] = [indexes[0]!, indexes.at(-1)! + 1]
    return {
      page,
      folder,
      rows: to - from === indexes.length ? { from, to } : Uint32Array.from(indexes),
      ranges,
    }
  })
}

/** Rows of a query's first window, all for one folder. */
export function sliceOf(query: number, folder: string, count: number): Slice[] {
  const rows = Array.from({ length: count }, (_, row): Row => ({ query, window: 0, row }))
  return slicesOf(rows, () => folder)
}

/** The entry of a page. */
export function pageLine(chain: number, next: string | null, watermark?: number): PageEntry {
  return { kind: 'page', chain, next, requests: 1, ...(watermark === undefined ? {} : { watermark }) }
}

// Small compared with the lines and record batches here, which so span several blocks, as long ones do on a disk.
const BLOCK_BYTES = 16

export type WorldOptions = {
  readonly rowGroupRows: number
  readonly shardRows: number
  /** Each folder has one window, and its shard is sealed with it; else folders are shared and sealed at the end. */
  readonly owned: boolean
}

/** A chain that is not done. */
type Work = { readonly chain: number; readonly windows: WindowRun; hasEnded: boolean }

/** A data set with commits of pages of many chains, opened and recovered as by a run. */
export class World {
  readonly root: string
  readonly store: Store
  /** `disk.cut` simulates lost power. */
  readonly disk: ReturnType<typeof lossyStore>
  readonly responses: readonly Responses[]
  options: WorldOptions
  shards: ShardSet | null = null
  checkpoint: Checkpoint | null = null
  readonly warnings: string[] = []
  /** Shards that were reported once they were in the journal and had their names. */
  readonly published: string[] = []
  /** What recoveries invalidated. */
  readonly invalidated: Invalidation[] = []
  /** The chains that are not done, by query. */
  #works: Work[][] = []
  #opened: Store | null = null

  constructor(responses: readonly Responses[], options: WorldOptions) {
    const { root, store } = temporaryStore()
    this.root = root
    this.disk = lossyStore(store, root, BLOCK_BYTES)
    this.store = this.disk.store
    this.responses = responses
    this.options = options
  }

  /** Opens and recovers the data set, through another store if one is given. */
  async open(store: Store = this.store): Promise<void> {
    for (;;) {
      const warn = (message: string): void => void this.warnings.push(message)
      const checkpoint = await openSettledCheckpoint(store, HEADER, () => {}, warn)
      this.checkpoint = checkpoint
      this.#opened = store
      await removeReplaced(store, checkpoint)
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
        held: state.held,
        journal: checkpoint,
        warn,
        onPublished: ({ path, sha256 }) => {
          const isOnRecord = [...state.shards].some((shard) => shard.path === path && shard.sha256 === sha256)
          if (!isOnRecord || !existsSync(join(this.root, path)))
            expect.unreachable(`published too early: ${path}`)
          this.published.push(path)
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

  /** Plans the chains of the partitions that are not done. */
  #plan(state: CheckpointState): void {
    let chains = state.nextChain
    this.#works = this.responses.map(({ folders }, index) => {
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
        // No other chain has one of its windows.
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

  /** Pages of a query that are in the journal, if nothing of it was invalidated. */
  pagesOf(query: number): number {
    const { state } = this.checkpoint!
    const { name } = queryOf(query)
    for (const chain of state.chains.values()) if (chain.query === name) return chain.pages
    const isDone = this.responses[query]!.folders.every(
      (_, window) => state.partitions.get(keyOf(query, window))?.state === 'done',
    )
    return isDone ? this.responses[query]!.pages.length : 0
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
    const responses = this.responses[query]!
    const record = this.checkpoint!.state.chains.get(chain)
    const { from, until } = windows.range!
    const pages = rowsOf(query, responses).map((rows) =>
      rows.filter((row) => timeOf(row) >= from && timeOf(row) < until),
    )
    const number = record?.pages ?? 0
    const isLast = number === pages.length - 1
    const left = pages
      .slice(number + 1)
      .flatMap((rows) => rows.map((row) => windows.indexOfInstant(timeOf(row))))
    const watermark = isLast ? windows.count : Math.min(windows.count - 1, ...left)
    const folderAt = (at: number): string => responses.folders[(at - FIRST_DAY) / DAY]!
    const finished = windows.part(record?.watermark ?? 0, watermark)
    return {
      slices: slicesOf(pages[number]!, ({ window }) => responses.folders[window]!),
      close: this.options.owned
        ? Array.from({ length: finished.count }, (_, index) => folderAt(finished.at(index)!.from))
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
      for (const query of this.responses.keys()) {
        if (!(await this.commitNext(query))) continue
        more = true
        onCommit()
      }
    }
  }

  /** Commits the next page of every query at once. @returns false when none has one left */
  async commitRound(): Promise<boolean> {
    const commits = await Promise.allSettled(
      [...this.responses.keys()].map((query) => this.commitNext(query)),
    )
    const failed = commits.find((commit) => commit.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return commits.some((commit) => commit.status === 'fulfilled' && commit.value)
  }

  /** Commits every page that is left, in the order of the queries given and then in turns, and seals. */
  async finish(order: readonly number[] = []): Promise<void> {
    for (const query of order) await this.commitNext(query)
    await this.commitInTurns()
    await this.shards!.seal(this.shards!.openFolders)
    await this.replace()
    await this.close()
  }

  /** Replaces what was exported again, as a run does at its end. */
  async replace(): Promise<void> {
    await replaceRedone(this.#opened!, this.checkpoint!)
    await removeReplaced(this.#opened!, this.checkpoint!)
  }

  /** The published shards of the data set, by path. */
  files(): Map<string, string> {
    const files = new Map<string, string>()
    const folder = join(this.root, 'credentials')
    if (!existsSync(folder)) return files
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      if (path.endsWith('.csv')) files.set(`credentials/${path}`, readFileSync(join(folder, path), 'utf8'))
    }
    return files
  }

  /** Every row once, in its folder and in order; every shard as the checkpoint says; no other file. */
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
    for (const [query, responses] of this.responses.entries()) {
      const rows = rowsOf(query, responses).flat()
      total += rows.length
      for (const [window, folder] of responses.folders.entries()) {
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

/** The rows of a shard. Checks that its row groups are where its footer says, and full except for the last. */
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

/** Simulates the end of the process: from then on nothing reaches the disk. */
export class Crash extends Error {}

/**
 * A store whose process ends during its n-th change: of the bytes that are being appended then only a part
 * reaches the disk. `used` counts the changes.
 */
export function crashingStore(store: Store, atChange: number) {
  let used = 0
  const open: Log[] = []
  const isLast = (): boolean => {
    if (used >= atChange) throw new Crash()
    return ++used === atChange
  }
  const change = async <T>(work: () => Promise<T>): Promise<T> => {
    // Half of the crashes come before the change, half after it, before it is confirmed.
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
    /** Releases what the end of the process would release. */
    async end() {
      for (const log of open) await log.close()
    },
  }
}
