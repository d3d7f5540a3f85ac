import { MAX_TIMES, type Measures, NOT_MEASURED, partitionKey } from '../../core/index.ts'
import type { Schema } from '../../rows/index.ts'
import type { Entry, Erasure, HeaderEntry, JournalEntry, Prune, Scope } from '../journal-entry.ts'
import { type BlobRef, blobRef, LOG_START, type LogEnd } from '../log/commit.ts'
import { schemaFromJson } from '../schemas.ts'
import { afterPage, chainFromEntry, type FoldedChain } from './folded-chain.ts'
import {
  type FoldedPartition,
  type FoldedPartitions,
  isOver,
  Partitions,
  presentOf,
} from './folded-partition.ts'
import { type FoldedRun, Runs } from './folded-run.ts'
import { type FoldedShard, FoldedShards } from './folded-shards.ts'
import type { ReadonlyPathMap, ShardList } from './packed-collections.ts'

/** The content of the journal as one state, which each commit changes. */
export type CheckpointState = {
  readonly [Key in Exclude<keyof JournalFold, 'apply' | 'move'>]: Seen<JournalFold[Key]>
}

type Seen<T> =
  T extends Map<infer Key, infer Value>
    ? ReadonlyMap<Key, Value>
    : T extends (infer Item)[]
      ? readonly Item[]
      : T

/** The state as entries change it, in their order. The cost of an entry does not depend on earlier ones. */
export class JournalFold {
  readonly #partitions = new Partitions()
  readonly #runs = new Runs()
  readonly #shards = new FoldedShards()
  readonly header: HeaderEntry
  /** By number, the newest last. */
  readonly schemas: Schema[]
  /** What the pipeline file requested when the last run began; null: none has. */
  scope: Scope | null = null
  readonly partitions: FoldedPartitions['partitions'] = this.#partitions.partitions
  readonly redo: FoldedPartitions['redo'] = this.#partitions.redo
  readonly rejected: FoldedPartitions['rejected'] = this.#partitions.rejected
  readonly chains = new Map<number, FoldedChain>()
  nextChain = 0
  /** Sealed shards with their final names, or about to get them. */
  readonly shards: ShardList = this.#shards.sealed
  readonly openShards: ReadonlyMap<number, FoldedShard> = this.#shards.open
  /** Number of shards begun so far in each folder. */
  readonly partsOf: ReadonlyPathMap<number> = this.#shards.partsOf
  /** Number of those that are neither sealed nor open any more, by folder. */
  readonly goneFrom: ReadonlyMap<string, number> = this.#shards.goneFrom
  /** Whether manifest, tables and files follow every prune, redo and erasure. */
  isSettled = true
  /** The file of the last commit that made bytes of earlier ones unwanted; 0: none since the checkpoint. */
  erasedIn = 0
  /** The people who are kept out; null: nobody was forgotten. */
  suppression: Entry<'suppression'> | null = null
  /** What may be the current metadata of each table. */
  readonly tables = new Map<Entry<'table'>['format'], Entry<'table'>['marks']>()
  /** Paths of invalidated shards whose files may still exist. */
  readonly invalidated: ReadonlySet<string> = this.#shards.invalidated
  readonly unknownFields = new Map<string, number>()
  readonly runs: readonly FoldedRun[] = this.#runs.all
  readonly prunes: Prune[] = []
  readonly erasures: Erasure[] = []
  /** Searches left, as the service last reported; null: never reported. */
  searchesRemaining: number | null = null
  service: Measures = NOT_MEASURED
  readonly queries = new Map<string, string>()
  logEnd = LOG_START

  constructor(header: HeaderEntry) {
    this.header = header
    this.schemas = [schemaFromJson(header.schema)]
  }

  get nextShard(): number {
    return this.#shards.next
  }

  /** @param end where their commit ends @param blobs what they refer to by index */
  apply(entries: Iterable<JournalEntry>, end: LogEnd, blobs: readonly BlobRef[]): void {
    this.logEnd = end
    for (const entry of entries) this.#take(entry, blobs)
  }

  #take<Kind extends JournalEntry['kind']>(entry: Entry<Kind>, blobs: readonly BlobRef[]): void {
    this.#changes[entry.kind](entry, blobs)
  }

  /** Bytes were copied. @param to where those are now that the state needs */
  move(to: (at: BlobRef) => BlobRef): void {
    this.#shards.move(to)
    this.#partitions.move(to)
    for (const [number, chain] of this.chains) this.chains.set(number, { ...chain, ids: chain.ids.map(to) })
  }

  /** What an entry changes, by its kind. @param blobs what it refers to by index */
  readonly #changes: {
    readonly [Kind in JournalEntry['kind']]: (entry: Entry<Kind>, blobs: readonly BlobRef[]) => void
  } = {
    header: () => {},
    claim: () => {},
    end_of_log: ({ kind: _, ...end }) => (this.logEnd = end),
    schema: (entry) => (this.schemas[entry.schema] = schemaFromJson(entry)),
    query: ({ name, value }) => this.queries.set(name, value),
    run: (entry) => this.#runs.begin(entry) && this.#beginRun(),
    end: (entry) => {
      this.searchesRemaining = entry.searches_remaining ?? this.searchesRemaining
      this.#runs.take(entry)
    },
    month: (entry) => this.#runs.beginMonth(entry),
    unfinished: (entry) => this.#runs.take(entry),
    chain: (entry) => {
      this.chains.set(entry.chain, chainFromEntry(entry))
      this.nextChain = Math.max(this.nextChain, entry.chain + 1)
    },
    shorten: (entry) => this.#shorten(entry),
    restart: (entry) => this.#restart(entry),
    page: (entry, blobs) => this.#takePage(entry, blobs),
    open: (entry) => this.#shards.begin(entry),
    quarantined: (entry) => this.#partitions.takeQuarantined(entry),
    rejected: ({ partition, blobs, redo }) =>
      this.#partitions.setRejected(partition, blobs.map(blobRef), redo),
    seal: ({ kind: _, ...shard }) => this.#shards.seal(shard),
    failed: (entry) => this.#fail(entry),
    partition: (entry) => this.#partitions.set(entry),
    redo: (entry) => this.#beginRedo(entry),
    invalidated: ({ shards }) => {
      for (const path of shards) this.#shards.invalidated.add(path)
      this.isSettled = false
    },
    settled: () => {
      this.#shards.invalidated.clear()
      this.isSettled = true
    },
    parts: (entry) => this.#shards.setParts(entry),
    scope: ({ kind: _, ...scope }) => (this.scope = scope),
    prune: (entry) => this.#prune(entry),
    forget: (entry, blobs) => this.#forget(entry, blobs),
    swap: (entry) => this.#swap(entry),
    suppression: (entry) => (this.suppression = entry),
    table: ({ format, marks }) => this.tables.set(format, marks),
    unknown: ({ fields }) => addCounts(this.unknownFields, fields),
    measured: (entry) => this.#measure(entry),
    limit: ({ size }) => (this.service = { ...this.service, limit: size, times: [] }),
  }

  /** Every run reads the feeds to their ends again. */
  #beginRun(): void {
    for (const chain of this.chains.values())
      if (chain.feed !== null) this.#partitions.markPartial(keyAt(chain, 0))
  }

  #takePage(page: Entry<'page'>, blobs: readonly BlobRef[]): void {
    const { requests, repeated = 0, slices = [], quarantine = [], forgotten = [], logged = [] } = page
    this.#runs.count((run) => {
      run.requests += requests
      run.repeated += repeated
      for (const { rows } of slices) run.rows += rows
      for (const { items } of quarantine) run.quarantined += items
      for (const { items } of forgotten) run.forgotten += items
    })
    addCounts(this.unknownFields, page.unknown_fields ?? {})
    const chain = this.chains.get(page.chain)
    if (chain === undefined) return
    const partitions = this.#partitions
    partitions.update(keyAt(chain, chain.watermark), (folded) => ({
      state: 'partial',
      pages: folded.pages + 1,
      requests: folded.requests + requests,
      repeated: folded.repeated + repeated,
      error: null,
    }))
    const keyOf = (window: string): string => `${chain.query}/${window}`
    for (const { window, items, blob } of quarantine)
      partitions.addRejected(keyOf(window), items, blobs[blob]!)
    for (const { window, items } of forgotten)
      partitions.update(keyOf(window), (folded) => ({ forgotten: folded.forgotten + items }))
    for (const { window, shard, rows, imported_at } of slices) {
      partitions.update(keyOf(window), (folded) => ({ state: 'partial', rows: folded.rows + rows }))
      this.#shards.addRows(shard, keyOf(window), imported_at)
    }
    for (const { shard, rows, blob } of logged) this.#shards.addBatch(shard, { rows, at: blobs[blob]! })
    this.#advance(chain, page, page.ids === undefined ? null : blobs[page.ids.blob]!)
  }

  /** Advances a chain past a page. Partitions below the watermark are done; after the last page all of them are. */
  #advance(chain: FoldedChain, page: Entry<'page'>, ids: BlobRef | null): void {
    const after = afterPage(chain, page, ids)
    this.service = { ...this.service, pageSize: after.size ?? this.service.pageSize }
    if (after.feed !== null) {
      const isOver = after.feed.pass === null
      // The next run reads feeds in the order of this map.
      if (isOver) this.chains.delete(page.chain)
      this.chains.set(page.chain, after)
      if (isOver && page.feed?.more !== true) this.#finishFeed(chain)
      return
    }
    const { count } = chain.windows
    if (page.next === null || after.watermark >= count) {
      // Late rows may have reopened any of them.
      this.#finish(chain, 0, count)
      this.chains.delete(page.chain)
      return
    }
    this.#finish(chain, chain.watermark, after.watermark)
    this.chains.set(page.chain, after)
    this.#partitions.markPartial(keyAt(chain, after.watermark))
  }

  #finish(chain: FoldedChain, from: number, to: number): void {
    for (let index = from; index < to; index++) this.#partitions.markDone(keyAt(chain, index))
  }

  #finishFeed({ query }: FoldedChain): void {
    for (const window of this.partitions.branches.get(query)?.keys() ?? [])
      this.#partitions.markDone(`${query}/${window}`)
  }

  #shorten({ chain: number, windows: count }: Entry<'shorten'>): void {
    const chain = this.chains.get(number)
    if (chain === undefined) return
    const windows = chain.windows.part(0, count)
    if (chain.watermark < count) this.chains.set(number, { ...chain, windows })
    else this.chains.delete(number)
  }

  #restart({ chain: number, since, pass, lost }: Entry<'restart'>): void {
    const chain = this.chains.get(number)
    if (chain === undefined) return
    if (lost === true) {
      this.chains.set(number, { ...chain, lost })
      return
    }
    const { range } = chain.windows
    const feed =
      pass === undefined || chain.feed === null ? chain.feed : { ...chain.feed, pass, truncated: false }
    this.chains.set(number, { ...chain, next: null, seen: null, requested: range, since, feed })
    if (pass !== undefined) this.#partitions.markPartial(keyAt(chain, 0))
  }

  #beginRedo({ partitions, chains }: Entry<'redo'>): void {
    const again = new Set(partitions)
    const cut = this.#shards.drop((open) => [...open.partitions].some((key) => again.has(key)))
    for (const chain of chains) this.chains.delete(chain)
    // Rejected items come again with their pages.
    for (const key of again) this.#partitions.begin(key, !cut.has(key))
  }

  /** An error after the last page of a partition does not fail it: its rows are complete. But too many items may be rejected. */
  #fail({ partition, requests, error }: Entry<'failed'>): void {
    this.#runs.count((run) => {
      run.requests += requests
      run.failures++
    })
    this.#partitions.update(partition, (folded) => ({
      state: isOver(folded) && error.ended !== true ? folded.state : 'failed',
      requests: folded.requests + requests,
      error,
    }))
  }

  #prune({ kind: _, ...prune }: Entry<'prune'>): void {
    this.prunes.push(prune)
    const known = prune.removed.filter(({ partition }) => this.partitions.get(partition) !== undefined)
    if (known.length === 0) return
    for (const { partition } of known) this.#partitions.prune(partition)
    const isPruned = (key: string): boolean => presentOf(this, key)?.state === 'pruned'
    this.#shards.drop((open) => [...open.partitions].every(isPruned))
    for (const { chain, query, windows, feed } of this.chains.values()) {
      if (feed === null && windows.names.every((name) => isPruned(`${query}/${name}`)))
        this.chains.delete(chain)
    }
    this.#erased()
  }

  #forget({ kind: _, changes, ...erasure }: Entry<'forget'>, blobs: readonly BlobRef[]): void {
    this.erasures.push(erasure)
    if (changes === undefined) return
    const partitions = this.#partitions
    for (const { partition, rows, quarantined, redo } of changes.partitions) {
      const without = (folded: FoldedPartition): Partial<FoldedPartition> => ({
        rows: folded.rows - rows,
        quarantined: folded.quarantined - quarantined,
        forgotten: folded.forgotten + rows + quarantined,
      })
      if (redo === true) partitions.update(partition, without)
      else partitions.updateExported(partition, without)
    }
    for (const { partition, blob, redo } of changes.rejected) {
      partitions.setRejected(partition, [blobs[blob]!], redo)
      if (redo !== true) partitions.setQuarantineEnd(partition, 0)
    }
    for (const each of changes.rewritten) this.#shards.rewrite(each, blobs)
    this.#erased()
  }

  #swap({ shards, partitions = [] }: Entry<'swap'>): void {
    this.#shards.swap(shards)
    for (const key of partitions) this.#partitions.replace(key)
    this.isSettled = false
  }

  #erased(): void {
    this.isSettled = false
    this.erasedIn = this.logEnd.file
  }

  #measure(entry: Entry<'measured'>): void {
    const { times = [], tells_searches, page_size, binds_sizes, left, spent, replaces } = entry
    const { service } = this
    this.service = {
      ...service,
      times: [...service.times, ...times].slice(-MAX_TIMES),
      reportsSearchesLeft: tells_searches ?? service.reportsSearchesLeft,
      pageSize: page_size ?? service.pageSize,
      bindsSizes: service.bindsSizes || binds_sizes === true,
    }
    this.searchesRemaining = left ?? this.searchesRemaining
    if (replaces === true) return
    this.#runs.count((run) => {
      run.searchesSpent = spent ?? run.searchesSpent
      run.searchesRemaining = left ?? run.searchesRemaining
    })
  }
}

function keyAt({ query, windows }: FoldedChain, index: number): string {
  return partitionKey(query, windows.at(index))
}

// A service that keeps sending new field names must not fill the checkpoint.
const MAX_FIELD_NAMES = 1000

function addCounts(counts: Map<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, times] of Object.entries(more)) {
    const under = counts.has(name) || counts.size < MAX_FIELD_NAMES ? name : '…'
    counts.set(under, (counts.get(under) ?? 0) + times)
  }
}
