import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'vitest'
import {
  type NamedQuery,
  nameQuery,
  type OwnedStore,
  partitionKey,
  type Store,
  type Window,
  type WindowRun,
  windowRange,
} from '../../src/core/index.ts'
import { openChecked } from '../../src/data-set/open/open-checked.ts'
import { type Invalidation, invalidationOf, redoEntry } from '../../src/data-set/redo/invalidate.ts'
import { swapRedone } from '../../src/data-set/redo/swap-redone.ts'
import { publishCommitted } from '../../src/data-set/settle/publish.ts'
import { removeUnnamed } from '../../src/data-set/settle/settle.ts'
import type { ShardEncoder } from '../../src/load/encode/encoder.ts'
import { rowObjects } from '../../src/load/encode/record-batch-column.ts'
import {
  type Commit,
  lostShards,
  PageRows,
  type PartitionRange,
  ShardSet,
  type ShardSetOptions,
  type Slice,
  shardWriter,
} from '../../src/load/index.ts'
import { chainsOf } from '../../src/pipeline/plan/chains.ts'
import { encodeRecordBatch } from '../../src/rows/index.ts'
import {
  type CheckpointState,
  chainEntry,
  hasBegun,
  type Journal,
  type PageEntry,
  presentOf,
  readCheckpoint,
  type SealEntry,
  type SealedShard,
  splitPath,
} from '../../src/state/index.ts'
import { newOwner, temporaryStore } from '../disk/temporary-store.ts'
import { HEADER } from '../state/lines.ts'
import { recordBatchOf, specs } from './record-batch-builder.ts'

/** The responses of the service for one query: pages, which one chain requests. */
export type Responses = {
  /** The folder for the rows of each window; windows may share one. */
  readonly folders: readonly string[]
  /** For each page the windows of its rows, in order. */
  readonly pages: readonly (readonly number[])[]
}

export function responsesOf(folder: string, ...rows: readonly number[]): Responses {
  return { folders: [folder], pages: rows.map((count) => Array.from({ length: count }, () => 0)) }
}

/** A row in a shard: the number of its query, its window, and its number among the rows of the query. */
export type Row = { readonly query: number; readonly window: number; readonly row: number }

const COLUMNS = specs({ query: 'int64', window: 'int64', row: 'int64', source_id: 'text' })

/** A line of text for each row; the footer is a line about the row groups. */
export const textEncoder: ShardEncoder = {
  header: () => Buffer.from('a shard\n'),
  encode: async (recordBatches) => {
    const texts = recordBatches.flatMap((recordBatch) =>
      Array.from(
        rowObjects(recordBatch, COLUMNS),
        (row) => `${COLUMNS.map(({ name }) => row[name]).join(' ')}\n`,
      ),
    )
    return { bytes: new Uint8Array(Buffer.from(texts.join(''))), rows: texts.length, chunks: [] }
  },
  footer: async (rowGroups) => Buffer.from(`#${JSON.stringify(rowGroups)}\n`),
}

/** An encoder that lets pages be committed while it encodes. */
export function slowEncoder(encoder: ShardEncoder, turns: () => number): ShardEncoder {
  return {
    ...encoder,
    async encode(recordBatches) {
      for (let left = turns(); left > 0; left--) await turn()
      return encoder.encode(recordBatches)
    },
  }
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

const timeOf = ({ window, row }: Row): number => windowAt(window).from + row

function rowsOf(query: number, { pages }: Responses): Row[][] {
  let row = 0
  return pages.map((windows) => windows.map((window) => ({ query, window, row: row++ })))
}

export function slicesOf(rows: readonly Row[], folderOf: (row: Row) => string): Slice[] {
  if (rows.length === 0) return []
  const cells = rows.map(({ query, window, row }) => ({ query, window, row, source_id: `s${row % 3}` }))
  const recordBatch = encodeRecordBatch(recordBatchOf(COLUMNS, cells, [['source_id']]))
  const page = new PageRows(recordBatch, Float64Array.from(rows, timeOf))
  return slicesOfPage(page, rows, folderOf, ({ query, window }) => keyOf(query, window))
}

/** The slices of a page by the folders of its rows; one without a folder is left out. */
export function slicesOfPage<T>(
  page: PageRows,
  rows: readonly T[],
  folderOf: (row: T) => string | null,
  partitionOf: (row: T) => string,
): Slice[] {
  const folders = new Map<string, number[]>()
  for (const [at, row] of rows.entries()) {
    const folder = folderOf(row)
    if (folder !== null) folders.set(folder, [...(folders.get(folder) ?? []), at])
  }
  return [...folders].map(([folder, indexes]): Slice => {
    const ranges: PartitionRange[] = []
    for (const index of indexes) {
      const partition = partitionOf(rows[index]!)
      const last = ranges.at(-1)
      if (last?.partition === partition) ranges[ranges.length - 1] = { partition, rows: last.rows + 1 }
      else ranges.push({ partition, rows: 1 })
    }
    const [from, to] = [indexes[0]!, indexes.at(-1)! + 1]
    const isRange = to - from === indexes.length
    return { page, folder, schema: 0, rows: isRange ? { from, to } : Uint32Array.from(indexes), ranges }
  })
}

export function sliceOf(query: number, folder: string, count: number): Slice[] {
  const rows = Array.from({ length: count }, (_, row): Row => ({ query, window: 0, row }))
  return slicesOf(rows, () => folder)
}

export function pageLine(chain: number, next: string | null, watermark?: number): PageEntry {
  return { kind: 'page', chain, next, requests: 1, ...(watermark === undefined ? {} : { watermark }) }
}

type Written = { store: OwnedStore; encoder?: ShardEncoder; extension?: string; rowGroupRows?: number }
type Opened = Written & Pick<ShardSetOptions, 'log'> & Partial<ShardSetOptions>

function writerOf({ store, encoder = textEncoder, extension = '.csv', rowGroupRows = 100_000 }: Written) {
  return shardWriter({ store, encoderOf: async () => encoder, extension, rowGroupRows })
}

/** Opens the shards of a log, all of whose rows are there. */
export function openShards(given: Opened): Promise<ShardSet> {
  return ShardSet.open({
    writer: writerOf(given),
    shardRows: 1_000_000,
    readsCost: false,
    onSealed: () => {},
    onPublished: () => {},
    ...given,
  })
}

/** A seal says what its shard holds. @param rows the time and the partition of each */
export function expectSeal(
  seal: SealedShard | undefined,
  bytes: Uint8Array | string,
  rows: readonly { readonly time: number; readonly partition: string }[],
): void {
  const times = rows.map(({ time }) => time)
  expect(seal).toMatchObject({
    rows: rows.length,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    imported_at: { min: Math.min(...times), max: Math.max(...times) },
  })
  const partitions = new Set(rows.map(({ partition }) => partition))
  expect(seal?.partitions.toSorted()).toEqual([...partitions].sort())
}

export type WorldOptions = {
  readonly rowGroupRows: number
  readonly shardRows: number
  /** Each folder has one window, and its shard is sealed with it; else folders are shared and sealed at the end. */
  readonly owned: boolean
  readonly encoder?: ShardEncoder
}

/** A chain that is not done. */
type Work = { readonly chain: number; readonly windows: WindowRun; hasEnded: boolean }

/** A data set with commits of pages of many chains, opened and recovered as by a run. */
export class World {
  readonly root: string
  readonly store: Store
  readonly responses: readonly Responses[]
  options: WorldOptions
  shards: ShardSet | null = null
  journal: Journal | null = null
  own: OwnedStore | null = null
  /** Shards that were reported once they were committed and had their names. */
  readonly published: string[] = []
  /** What recoveries invalidated. */
  readonly invalidated: Invalidation[] = []
  /** Owners that were not released. */
  #former: string[] = []
  /** The chains that are not done, by query. */
  #works: Work[][] = []

  constructor(responses: readonly Responses[], options: WorldOptions) {
    const { root, store } = temporaryStore()
    this.root = root
    this.store = store
    this.responses = responses
    this.options = options
  }

  /** Opens and recovers the data set, as an owner whose changes go through `wrap`. */
  async open(wrap: (own: OwnedStore) => OwnedStore = (own) => own): Promise<void> {
    const owner = newOwner()
    const own = wrap(await this.store.own(owner))
    this.#former.push(owner)
    await own.takeOver(this.#former.slice(0, -1))
    this.own = own
    for (;;) {
      const journal = await openChecked(own, HEADER)
      this.journal = journal
      await removeUnnamed(own, journal.state, new AbortController().signal)
      const { state } = journal
      const { rowGroupRows, shardRows, encoder = textEncoder } = this.options
      const isOnRecord = ({ path, sha256 }: SealEntry): boolean =>
        [...state.shards].some((shard) => shard.path === path && shard.sha256 === sha256)
      const lost = await lostShards(journal)
      if (lost.size > 0) {
        const given = invalidationOf(state, { partitions: [], shards: lost })
        await journal.append([redoEntry(given)])
        await journal.close()
        this.invalidated.push(given)
        continue
      }
      this.shards = await openShards({
        store: own,
        encoder,
        rowGroupRows,
        shardRows,
        log: journal,
        onSealed(shard) {
          if (!isOnRecord(shard)) expect.unreachable(`reported too early: ${shard.path}`)
        },
        onPublished: (shard) => {
          if (!isOnRecord(shard) || !existsSync(join(this.root, shard.path)))
            expect.unreachable(`published too early: ${shard.path}`)
          this.published.push(shard.path)
        },
      })
      return this.#plan(state)
    }
  }

  /** Plans the chains of the partitions that are not done. */
  #plan(state: CheckpointState): void {
    let chains = state.nextChain
    this.#works = this.responses.map(({ folders }, index) => {
      const query = queryOf(index)
      const windows = new Map<string, { done: boolean }>()
      for (const name of state.partitions.branches.get(query.name)?.keys() ?? []) {
        const present = presentOf(state, `${query.name}/${name}`)
        if (present !== undefined && hasBegun(present)) windows.set(name, { done: present.state === 'done' })
      }
      const chainsOfQuery = [...state.chains.values()].filter((chain) => chain.query === query.name)
      const wanted = [...folders.keys()]
        .map(windowAt)
        .map((window) => ({ name: windowRange(window), window }))
      const begun = { windows, chains: chainsOfQuery }
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
    await this.journal?.close()
    await this.own?.release()
    this.#former = []
    this.forget()
  }

  forget(): void {
    this.shards = null
    this.journal = null
    this.own = null
  }

  /** Pages of a query that are in the journal, if nothing of it was invalidated. */
  pagesOf(query: number): number {
    const { state } = this.journal!
    const { name } = queryOf(query)
    for (const chain of state.chains.values()) if (chain.query === name) return chain.pages
    const isDone = this.responses[query]!.folders.every(
      (_, window) => presentOf(state, keyOf(query, window))?.state === 'done',
    )
    return isDone ? this.responses[query]!.pages.length : 0
  }

  /** Commits the next page of a query. @returns false when it has none left */
  async commitNext(query: number): Promise<boolean> {
    const work = this.#works[query]?.find(({ hasEnded }) => !hasEnded)
    if (work === undefined) return false
    const commit = this.#nextPage(query, work)
    await this.shards!.commit(commit)
    work.hasEnded = this.journal?.state.chains.get(work.chain) === undefined
    return true
  }

  #nextPage(query: number, { chain, windows }: Work): Commit {
    const responses = this.responses[query]!
    const record = this.journal!.state.chains.get(chain)
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
      entries: (placement) => [
        ...(record === undefined ? [chainEntry(chain, queryOf(query).name, windows)] : []),
        { ...pageLine(chain, isLast ? null : `${chain}-${number}`, watermark), ...placement },
      ],
      blobs: [],
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

  /** The same, the next page of every query at once. */
  async commitInRounds(onCommit: () => void = () => {}): Promise<void> {
    for (;;) {
      const queries = [...this.responses.keys()]
      const commits = await Promise.allSettled(queries.map((query) => this.commitNext(query)))
      const failed = commits.find((commit) => commit.status === 'rejected')
      if (failed !== undefined) throw failed.reason
      if (commits.every((commit) => commit.status === 'fulfilled' && !commit.value)) return
      onCommit()
    }
  }

  /** Commits every page that is left, in turns, and seals. */
  async finish(): Promise<void> {
    await this.commitInTurns()
    await this.shards!.seal(this.shards!.openFolders)
    // As a run does at its end.
    const { signal } = new AbortController()
    await swapRedone(this.own!, this.journal!, writerOf({ ...this.options, store: this.own! }), signal)
    await publishCommitted(this.own!, this.journal!.state)
    await removeUnnamed(this.own!, this.journal!.state, new AbortController().signal)
    await this.close()
  }

  /** The published shards of the data set, by path. */
  files(): Map<string, string> {
    const files = new Map<string, string>()
    const folder = join(this.root, 'credentials')
    if (!existsSync(folder)) return files
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
      if (path.endsWith('.csv')) files.set(`credentials/${path}`, readFileSync(join(folder, path), 'utf8'))
    return files
  }

  /** Every row once, in its folder and in order; every shard as the checkpoint says; no other file. */
  async expectComplete(): Promise<void> {
    const state = await readCheckpoint(this.store)
    if (state === null) throw new Error('no checkpoint')
    const files = this.files()
    const shards = [...state.shards]
    expect([...files.keys()].toSorted()).toEqual(shards.map(({ path }) => path).toSorted())
    expect(state.openShards.size).toBe(0)
    expect([...state.chains]).toEqual([])
    // Nothing waits any more.
    expect(await this.store.list('_state/sealed')).toEqual([])
    expect(await this.store.list('_state/log')).toEqual([])
    expect(await this.store.list('_state')).not.toContainEqual(expect.stringMatching(/^open\./))
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
    const rowOf = (row: Row) => ({ time: timeOf(row), partition: keyOf(row.query, row.window) })
    expectSeal(shard, text, rows.map(rowOf))
    const [folder, name] = splitPath(shard.path)
    const isLast = all.every(({ path }) => splitPath(path)[0] !== folder || splitPath(path)[1] <= name)
    // What was exported again has shards of its own.
    if (isLast || this.invalidated.length > 0) expect(rows.length).toBeLessThanOrEqual(this.options.shardRows)
    else expect(rows).toHaveLength(this.options.shardRows)
  }
}

/** The rows of a shard. Checks that its row groups are where its footer says, and full except for the last. */
export function readShard(text: string, rowGroupRows: number): Row[] {
  const rows: Row[] = []
  const rowGroups: { offset: number; rows: number }[] = JSON.parse(text.split('\n').at(-2)!.slice(1))
  let end = 'a shard\n'.length
  expect(text.slice(0, end)).toBe('a shard\n')
  for (const [index, rowGroup] of rowGroups.entries()) {
    expect(rowGroup.offset).toBe(end)
    const lines = text.slice(end).split('\n').slice(0, rowGroup.rows)
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

/** Simulates the end of the process: from then on nothing reaches the disk. */
export class Crash extends Error {}

/**
 * Makes stores whose process ends during the n-th change of all. `used` counts the changes.
 * @param isMade whether it ends after the change, before it is confirmed; else before it, or in the middle of what is
 *   appended. Left out: half of the crashes
 */
export function crashing(atChange: number, isMade = atChange % 2 === 1) {
  let used = 0
  const underway = new Set<Promise<unknown>>()
  const change = async <T>(work: () => Promise<T>, partly?: () => Promise<unknown>): Promise<T> => {
    if (used >= atChange) throw new Crash()
    const isLast = ++used === atChange
    if (isLast && !isMade) {
      await partly?.()
      throw new Crash()
    }
    const done = work()
    underway.add(done)
    try {
      const result = await done
      if (isLast) throw new Crash()
      return result
    } finally {
      underway.delete(done)
    }
  }
  const wrap = (own: OwnedStore): OwnedStore => ({
    ...own,
    create: (path, chunks) => change(() => own.create(path, chunks)),
    extend: (path, size, chunks) =>
      change(
        () => own.extend!(path, size, chunks),
        () => own.extend!(path, size, [halfOf(chunks)]),
      ),
    build: (chunks, path) => change(() => own.build(chunks, path)),
    replace: (path, chunks) => change(() => own.replace(path, chunks)),
    publish: (from, to) => change(() => own.publish(from, to)),
    remove: (path) => change(() => own.remove(path)),
  })
  return {
    wrap,
    used: () => used,
    /** Waits for the changes that the end of the process did not stop. */
    async end() {
      while (underway.size > 0) await Promise.allSettled(underway)
    },
  }
}

function halfOf(chunks: Iterable<Uint8Array>): Uint8Array {
  const bytes = Buffer.concat([...chunks])
  return bytes.subarray(0, bytes.length / 2)
}
