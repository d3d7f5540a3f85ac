import fc from 'fast-check'
import { WindowRun } from '../../src/core/index.ts'
import { chainEntry, type JournalEntry, type PageEntry } from '../../src/state/index.ts'
import { type Random, random } from '../support/random.ts'
import { begun, DAY, days, ended, HEADER, type JournalLine, keysOf, seal } from './lines.ts'

/** Days that each query is asked for, in one chain or several. */
const DAYS = { 'domain.a.com': 6, 'domain.b.com': 6, 'domain.c.com': 1 } as const
type Query = keyof typeof DAYS
const QUERIES = Object.keys(DAYS) as Query[]

/**
 * Journals as a run could write them: chains of three queries, over several windows of two of them, in either order.
 * Windows of the first query have a folder each; the other two queries share one.
 */
export const someJournal: fc.Arbitrary<readonly JournalLine[]> = fc
  .record({ seed: fc.nat(), steps: fc.nat({ max: 60 }), order: fc.constantFrom('asc' as const, 'desc') })
  .map(({ seed, steps, order }) => {
    const run = new ImaginedRun(order, random(seed))
    for (let step = 0; step < steps; step++) run.step()
    return run.lines
  })

type ImaginedChain = {
  readonly chain: number
  readonly query: Query
  windows: WindowRun
  watermark: number
  inOrder: boolean
  hasPosition: boolean
  /** Windows that rows or refused items came for. */
  readonly hasRows: Set<number>
}

type ImaginedShard = { readonly shard: number; readonly part: number; rows: number; partitions: Set<string> }

type Rows = { readonly window: number; readonly rows: number }

/** Does what a run would, but for the rows themselves, and keeps what it would have in the journal. */
class ImaginedRun {
  readonly lines: JournalLine[] = [HEADER]
  readonly #order: 'asc' | 'desc'
  readonly #random: Random
  readonly #chains: ImaginedChain[] = []
  readonly #free = new Map(QUERIES.map((query) => [query, new Set(Array(DAYS[query]).keys())]))
  readonly #open = new Map<string, ImaginedShard>()
  readonly #parts = new Map<string, number>()
  #nextChain = 0
  #nextShard = 0
  #runs = 0
  #pages = 0
  /** Bytes that the entries of one commit refer to. */
  #blobs = 0

  constructor(order: 'asc' | 'desc', draw: Random) {
    this.#order = order
    this.#random = draw
  }

  step(): void {
    const chain = this.#chains[this.#below(this.#chains.length + 1)]
    switch (this.#below(20)) {
      case 0:
        this.#beginRun()
        break
      case 1:
        if (this.#runs > 0) this.#endRun()
        break
      case 2:
        this.#sealOne()
        break
      case 3:
        this.#name()
        break
      case 4:
        this.#fail(chain)
        break
      case 5:
        if (chain !== undefined) this.#shorten(chain, Math.max(chain.watermark, this.#below(6)))
        break
      case 6:
        if (chain !== undefined) this.#restart(chain)
        break
      default:
        this.#page(chain ?? this.#begin())
    }
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  #write(...entries: JournalEntry[]): void {
    this.lines.push(entries.length === 1 ? entries[0]! : { kind: 'transaction', entries })
  }

  #beginRun(): void {
    this.#write(begun(`run-${this.#runs++}`))
  }

  #endRun(): void {
    const count = this.#below(6)
    const isOdd = count % 2 === 1
    this.#write(
      {
        kind: 'measured',
        times: [[100, count]],
        ...(isOdd ? { tells_searches: true, spent: count, left: 2000 - count } : {}),
      },
      { kind: 'limit', size: isOdd ? 50 + count : null },
      ended(`run-${this.#runs - 1}`, {
        status: isOdd ? 'budget' : 'complete',
        requests: 5 + count,
        retries: count,
        ...(isOdd ? { searches_remaining: 1000 - count } : { reasons: { 'id: missing': count } }),
      }),
    )
  }

  #sealOne(): void {
    const [folder] = [...this.#open.keys()].slice(this.#below(this.#open.size))
    if (folder !== undefined) this.#write(this.#seal(folder))
  }

  #name(): void {
    const number = this.#below(6)
    this.#write({ kind: 'query', name: `keyword.k${number}`, value: `value-${this.#pages}` })
  }

  /** The partition that a chain stands in, or one that no chain has begun. Windows after it may be left to others. */
  #fail(chain: ImaginedChain | undefined): void {
    const [day] = this.#free.get('domain.b.com')!
    if (chain === undefined && day === undefined) return
    const { query, windows, watermark } = chain ?? {
      query: 'domain.b.com',
      windows: WindowRun.of('asc', days(1, day)),
      watermark: 0,
    }
    const partition = keysOf({ query, windows })[watermark]!
    const error = { kind: 'transient', message: `no answer ${this.#pages}`, cause: 'no', next: '' }
    this.#write({ kind: 'failed', partition, requests: this.#below(6), error })
    if (chain !== undefined && this.#below(2) === 0) this.#shorten(chain, watermark + 1)
  }

  /** Windows that have rows already are never left to others: the rows would come again. */
  #shorten(chain: ImaginedChain, count: number): void {
    const left = Math.max(count, ...[...chain.hasRows].map((window) => window + 1))
    if (left === 0 || left >= chain.windows.count) return
    for (let window = left; window < chain.windows.count; window++)
      this.#free.get(chain.query)!.add(dayOf(chain, window))
    this.#write({ kind: 'shorten', chain: chain.chain, windows: left })
    chain.windows = chain.windows.part(0, left)
    if (chain.watermark >= left) this.#end(chain)
  }

  #end(chain: ImaginedChain): void {
    this.#chains.splice(this.#chains.indexOf(chain), 1)
  }

  #restart({ chain, hasPosition, inOrder, hasRows }: ImaginedChain): void {
    if (hasPosition && inOrder)
      this.#write({ kind: 'restart', chain, since: this.#pages % 2 === 0 ? this.#pages : '9007199254740993' })
    else if (hasRows.size === 0) this.#write({ kind: 'restart', chain, since: null })
  }

  /** A chain over days that no other has; the last query has no windows. @returns undefined: there are none */
  #begin(): ImaginedChain | undefined {
    const query = QUERIES[this.#below(3)]!
    const free = this.#free.get(query)!
    const [first] = [...free].slice(this.#below(free.size))
    if (first === undefined) return undefined
    let count = 1
    while (free.has(first + count) && this.#below(4) > 0) count++
    for (let day = first; day < first + count; day++) free.delete(day)
    const windows =
      DAYS[query] === 1 ? new WindowRun(this.#order, null) : WindowRun.of(this.#order, days(count, first))
    const standing = { watermark: 0, inOrder: true, hasPosition: false, hasRows: new Set<number>() }
    return { chain: this.#nextChain++, query, windows, ...standing }
  }

  #page(chain: ImaginedChain | undefined): void {
    if (chain === undefined) return
    const number = this.#pages++
    this.#blobs = 0
    const { windows, watermark } = chain
    const isFirst = !this.#chains.includes(chain)
    if (isFirst) this.#chains.push(chain)
    const begin = isFirst ? [chainEntry(chain.chain, chain.query, windows)] : []

    const most = windows.count - 1
    const reached = chain.inOrder ? Math.min(most, watermark + this.#below(4)) : watermark
    const drawn: Rows[] = []
    for (let window = watermark; window <= reached; window++) drawn.push({ window, rows: this.#below(5) })
    // Of a window that lies behind, or far ahead.
    const isLate = watermark > 0 && this.#below(5) === 0
    const isEarly = reached < most && this.#below(10) === 0
    if (isLate) drawn.push({ window: number % watermark, rows: 1 })
    if (isEarly) drawn.push({ window: most, rows: 2 })
    const all = drawn.filter(({ rows }) => rows > 0)
    const isLast = this.#below(5) === 0
    const after = isLast ? windows.count : isLate || isEarly ? watermark : reached
    const { entries, slices, logged } = this.#store(chain, all)
    const refused = number % 5 === 0 ? [reached] : isLate ? [watermark - 1, watermark] : []
    if (!isLast) chain.inOrder &&= !isLate && !isEarly
    const hasPosition = chain.inOrder && slices.length > 0 && !isLast
    chain.hasPosition ||= hasPosition
    for (const window of [...all.map(({ window }) => window), ...refused]) chain.hasRows.add(window)
    const name = (window: number): string => keysOf(chain)[window]!.slice(chain.query.length + 1)
    const page: PageEntry = {
      kind: 'page',
      chain: chain.chain,
      next: isLast ? null : `cursor-${number}`,
      requests: 1 + (number % 3),
      slices,
      logged,
      quarantine: refused.map((window) => ({ window: name(window), items: 1 + window, blob: this.#blobs++ })),
      ...(after === watermark ? {} : { watermark: after }),
      ...(hasPosition || (!chain.inOrder && !isLast)
        ? { position: { at: number, late: chain.inOrder ? 0 : number } }
        : {}),
      ...(number % 3 === 0
        ? { repeated: number, unknown_fields: { [`field-${number % 4}`]: 1 + number } }
        : {}),
      ...(number % 5 === 1 ? { forgotten: [{ window: name(watermark), items: 2 }] } : {}),
      ...(number % 3 === 1 && !isLast ? { ids: { blob: this.#blobs++, keep: number % 2 } } : {}),
    }
    this.#write(...entries, ...begin, page)
    chain.watermark = after
    if (isLast) this.#end(chain)
  }

  /** Puts rows where they belong, folder by folder. A shard may be full after the first of them. */
  #store(chain: ImaginedChain, all: readonly Rows[]) {
    const entries: JournalEntry[] = []
    const slices: NonNullable<PageEntry['slices']>[number][] = []
    const logged: NonNullable<PageEntry['logged']>[number][] = []
    const folders = new Set(all.map(({ window }) => this.#folderOf(chain, window)))
    for (const folder of folders) {
      const own = all.filter(({ window }) => this.#folderOf(chain, window) === folder)
      let left = 0
      for (const [index, { window, rows }] of own.entries()) {
        const key = keysOf(chain)[window]!
        const shard = this.#shardIn(folder, entries)
        shard.rows += rows
        shard.partitions.add(key)
        const imported_at = { min: 1000 * this.#pages + window, max: 2000 * this.#pages + window }
        slices.push({ window: key.slice(chain.query.length + 1), shard: shard.shard, rows, imported_at })
        left += rows
        if (index > 0 || this.#below(6) > 0) continue
        // Rows of a shard that is full with its page are not logged.
        entries.push(this.#seal(folder))
        left = 0
      }
      if (left > 0) logged.push({ shard: this.#open.get(folder)!.shard, rows: left, blob: this.#blobs++ })
    }
    return { entries, slices, logged }
  }

  #folderOf(chain: ImaginedChain, window: number): string {
    if (chain.query !== 'domain.a.com') return 'credentials'
    return `credentials/query=domain.a.com/import_window=${dayOf(chain, window)}`
  }

  /** @param entries gets the one that opens it, where none is open */
  #shardIn(folder: string, entries: JournalEntry[]): ImaginedShard {
    const known = this.#open.get(folder)
    if (known !== undefined) return known
    const part = this.#parts.get(folder) ?? 0
    this.#parts.set(folder, part + 1)
    const opened = { shard: this.#nextShard++, part, rows: 0, partitions: new Set<string>() }
    this.#open.set(folder, opened)
    entries.push({ kind: 'open', shard: opened.shard, folder, part })
    return opened
  }

  #seal(folder: string): JournalEntry {
    const { shard, part, rows, partitions } = this.#open.get(folder)!
    this.#open.delete(folder)
    const path = `${folder}/part-${String(part).padStart(5, '0')}.csv`
    return seal(shard, path, { rows, partitions: [...partitions] })
  }
}

function dayOf({ windows }: ImaginedChain, index: number): number {
  const window = windows.at(index)
  return window === null ? 0 : Math.round((window.from - days(1)[0]!.from) / DAY)
}
