import fc from 'fast-check'
import { type JournalEntry, type PageEntry, partitionKey, WindowRun } from '../../src/core/index.ts'
import { chainEntry } from '../../src/state/index.ts'
import { DAY, days, HEADER, type JournalLine, keysOf, seal } from './lines.ts'

const WINDOWS = 6
const CHAIN_QUERIES = ['domain.a.com', 'domain.b.com', 'domain.c.com'] as const

/** One thing that happens in a run; numbers are taken modulo what there is to choose from. */
export type Step =
  | {
      readonly do: 'page'
      readonly pick: number
      /** Begins a chain where it can. */
      readonly begin: boolean
      readonly start: number
      readonly count: number
      /** Windows that the page goes beyond. */
      readonly jump: number
      /** Of the windows that it goes through. */
      readonly rows: readonly number[]
      /** Rows of a window that lies behind, and of one that lies ahead; both are out of order. */
      readonly late: number
      readonly early: number
      readonly last: boolean
      /** What becomes of the rows of a folder: a number for each. */
      readonly ways: readonly number[]
    }
  | {
      readonly do: 'fail' | 'shorten' | 'restart' | 'seal' | 'run' | 'end' | 'names' | 'prune'
      readonly pick: number
      readonly count: number
    }

const pageStep: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('page' as const),
  pick: fc.nat({ max: 5 }),
  begin: fc.boolean(),
  start: fc.nat({ max: WINDOWS - 1 }),
  count: fc.integer({ min: 1, max: WINDOWS }),
  jump: fc.nat({ max: 3 }),
  rows: fc.array(fc.nat({ max: 4 }), { minLength: 4, maxLength: 4 }),
  late: fc.nat({ max: 9 }).map((rows) => Math.max(0, rows - 7)),
  early: fc.nat({ max: 9 }).map((rows) => Math.max(0, rows - 8)),
  last: fc.nat({ max: 4 }).map((number) => number === 0),
  ways: fc.array(fc.nat({ max: 5 }), { minLength: 3, maxLength: 3 }),
})

const otherStep: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom(
    'fail' as const,
    'shorten' as const,
    'restart' as const,
    'seal' as const,
    'run' as const,
    'end' as const,
    'names' as const,
    'prune' as const,
  ),
  pick: fc.nat({ max: 5 }),
  count: fc.nat({ max: WINDOWS }),
})

export const someSteps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof({ weight: 5, arbitrary: pageStep }, { weight: 2, arbitrary: otherStep }),
  { maxLength: 60, size: 'max' },
)

/**
 * Journals as a run could write them: chains of three queries, over several windows of two of them, in either order.
 * Windows of the first query have a folder each; the other two queries share one.
 */
export const someJournal: fc.Arbitrary<readonly JournalLine[]> = fc
  .tuple(someSteps, fc.constantFrom('asc' as const, 'desc' as const))
  .map(([steps, order]) => {
    const run = new ImaginedRun(order)
    for (const step of steps) run.take(step)
    return run.lines
  })

type ImaginedChain = {
  readonly chain: number
  readonly query: string
  windows: WindowRun
  watermark: number
  pages: number
  inOrder: boolean
  hasPosition: boolean
  /** Places of those that rows or refused items came for. */
  readonly hasRows: Set<number>
}

type ImaginedShard = {
  readonly shard: number
  readonly part: number
  rows: number
  readonly partitions: Set<string>
}

/** Where rows of a page stand, and what has to be in the journal before it. */
type Stored = {
  readonly lines: JournalEntry[]
  readonly slices: NonNullable<PageEntry['slices']>
  readonly logged: NonNullable<PageEntry['logged']>
}

/** Rows of a page that go into one window. */
type Rows = { readonly place: number; readonly rows: number }

/** Does what a run would, but for the rows themselves, and keeps what it would have in the journal. */
class ImaginedRun {
  readonly lines: JournalLine[] = [HEADER]
  readonly #order: 'asc' | 'desc'
  readonly #chains: ImaginedChain[] = []
  /** Windows that no chain has had yet, by query; the third has none. */
  readonly #free = new Map<string, Set<number>>(
    CHAIN_QUERIES.map((query, index) => [
      query,
      new Set(Array.from({ length: index < 2 ? WINDOWS : 1 }).keys()),
    ]),
  )
  readonly #open = new Map<string, ImaginedShard>()
  readonly #parts = new Map<string, number>()
  #nextChain = 0
  #nextShard = 0
  #runs = 0
  #pages = 0
  /** Bytes that the entries of one commit refer to. */
  #blobs = 0

  constructor(order: 'asc' | 'desc') {
    this.#order = order
  }

  take(step: Step): void {
    if (step.do === 'page') this.#page(step)
    else this.#takeOther(step)
  }

  #takeOther(step: Exclude<Step, { do: 'page' }>): void {
    const chain = this.#chains[step.pick % (this.#chains.length + (step.do === 'fail' ? 1 : 0) || 1)]
    switch (step.do) {
      case 'fail':
        if (chain !== undefined) this.#fail(chain, step.count)
        else this.#failAtOnce(step.count)
        break
      case 'shorten': {
        const count = chain === undefined ? 0 : Math.max(chain.watermark, step.count)
        if (chain !== undefined && count > 0 && count < chain.windows.count) this.#shorten(chain, count)
        break
      }
      case 'restart':
        if (chain?.hasPosition && chain.inOrder) {
          this.#write([
            { kind: 'restart', chain: chain.chain, since: { at: this.#pages, ids: [1, '9007199254740993'] } },
          ])
        } else if (chain !== undefined && chain.hasRows.size === 0) {
          this.#write([{ kind: 'restart', chain: chain.chain, since: null }])
        }
        break
      case 'seal': {
        const folder = [...this.#open.keys()][step.pick % Math.max(1, this.#open.size)]
        if (folder !== undefined) this.#write(this.#seal(folder, this.#open.get(folder)!))
        break
      }
      case 'run':
        this.#write([
          {
            kind: 'run',
            run: `run-${this.#runs++}`,
            started_at: '2024-07-01T00:00:00.000Z',
            version: '1.0.0',
          },
        ])
        break
      case 'end':
        if (this.#runs > 0) this.#end(step.count)
        break
      case 'names':
        this.#write([{ kind: 'secret', query: `secret.s${step.pick}`, check: `check-${step.count}` }])
        this.#write([{ kind: 'query', name: `keyword.k${step.pick}`, value: `value-${step.count}` }])
        break
      case 'prune':
        this.#prune(CHAIN_QUERIES[step.pick % 2]!, step.count)
        break
    }
  }

  #write(facts: readonly JournalEntry[]): void {
    this.lines.push(facts.length === 1 ? facts[0]! : { kind: 'transaction', entries: [...facts] })
  }

  #end(count: number): void {
    this.#write([
      {
        kind: 'measured',
        reading: count % 2 === 0 ? 'request' : '100 rows',
        times: [[100, count]],
        ...(count % 2 === 0 ? {} : { tells_searches: true, spent: count, left: 2000 - count }),
      },
      { kind: 'limit', size: count % 2 === 0 ? null : 50 + count },
      {
        kind: 'end',
        run: `run-${this.#runs - 1}`,
        finished_at: '2024-07-01T01:00:00.000Z',
        status: count % 2 === 0 ? 'complete' : 'budget',
        requests: 5 + count,
        retries: count,
        ...(count % 3 === 0 ? {} : { searches_remaining: 1000 - count }),
        ...(count % 2 === 0 ? { reasons: { 'id: missing': count } } : {}),
      },
    ])
  }

  /** The partition that the chain stands in; what lies behind that may be left to others. */
  #fail(chain: ImaginedChain, count: number): void {
    const partition = keysOf(chain)[chain.watermark]!
    const error = { kind: 'transient', message: `no answer ${count}`, cause: 'no', next: '' }
    this.#write([{ kind: 'failed', partition, requests: count, error }])
    if (count % 2 === 0 && chain.watermark + 1 < chain.windows.count)
      this.#shorten(chain, chain.watermark + 1)
  }

  /** The first request of a chain, so that none has begun. */
  #failAtOnce(count: number): void {
    if (!this.#free.get('domain.b.com')!.has(count)) return
    const partition = partitionKey('domain.b.com', days(1, count)[0]!)
    const error = { kind: 'refused', message: 'no', cause: 'no', next: '' }
    this.#write([{ kind: 'failed', partition, requests: 3, error }])
  }

  /** As a rewrite says it of a window that was done once and has no shard any more. */
  #prune(query: string, day: number): void {
    if (!this.#free.get(query)!.delete(day)) return
    const partition = partitionKey(query, days(1, day)[0]!)
    const figures = { rows: 0, pages: 1 + day, requests: 2 + day, quarantined: 0 }
    this.#write([
      {
        kind: 'prune',
        pruned_at: `2026-07-0${1 + day}T00:00:00.000Z`,
        before: '2024-07-01T00:00:00Z',
        partitions: 1,
        rows: day,
        quarantined: 0,
        removed: [{ partition, rows: day, quarantined: 0 }],
        shards: [],
      },
      { kind: 'partition', partition, state: 'pruned', ...figures },
    ])
  }

  /** What has rows already is never left to others: they would come again. */
  #shorten(chain: ImaginedChain, count: number): void {
    const left = Math.max(count, ...[...chain.hasRows].map((place) => place + 1))
    if (left >= chain.windows.count) return
    const free = this.#free.get(chain.query)!
    for (let place = left; place < chain.windows.count; place++) free.add(dayOf(chain.windows, place))
    this.#write([{ kind: 'shorten', chain: chain.chain, windows: left }])
    chain.windows = chain.windows.part(0, left)
    if (chain.watermark >= left) this.#chains.splice(this.#chains.indexOf(chain), 1)
  }

  #begin(step: Extract<Step, { do: 'page' }>): ImaginedChain | null {
    const query = CHAIN_QUERIES[step.pick % CHAIN_QUERIES.length]!
    const free = this.#free.get(query)!
    if (!free.has(query === 'domain.c.com' ? 0 : step.start)) return null
    let count = 1
    while (count < step.count && free.has(step.start + count)) count++
    const windows =
      query === 'domain.c.com'
        ? new WindowRun(this.#order, null)
        : WindowRun.of(this.#order, days(count, step.start))
    for (let day = 0; day < windows.count; day++) free.delete(windows.bounds === null ? 0 : step.start + day)
    const chain = {
      chain: this.#nextChain++,
      query,
      windows,
      watermark: 0,
      pages: 0,
      inOrder: true,
      hasPosition: false,
    }
    const begun = { ...chain, hasRows: new Set<number>() }
    this.#chains.push(begun)
    return begun
  }

  #page(step: Extract<Step, { do: 'page' }>): void {
    const begun = step.begin || this.#chains.length === 0 ? this.#begin(step) : null
    const chain = begun ?? this.#chains[step.pick % Math.max(1, this.#chains.length)]
    if (chain === undefined) return
    const number = this.#pages++
    this.#blobs = 0
    const { windows, watermark } = chain
    const most = windows.count - 1
    const rows = new Map<number, number>()
    const reached = chain.inOrder ? Math.min(most, watermark + step.jump) : watermark
    for (let place = watermark; place <= reached; place++) {
      if (step.rows[place - watermark]! > 0) rows.set(place, step.rows[place - watermark]!)
    }
    const isLate = step.late > 0 && watermark > 0
    if (isLate) rows.set(number % watermark, step.late)
    const isEarly = step.early > 0 && reached < most
    if (isEarly) rows.set(most, step.early)
    const isDisordered = isLate || isEarly
    const after = step.last ? windows.count : isDisordered ? watermark : reached
    const { lines, slices, logged } = this.#store(
      chain,
      [...rows].map(([place, rows]) => ({ place, rows })),
      step.ways,
    )
    const refused =
      number % 5 === 0 ? [reached] : number % 7 === 0 && watermark > 0 ? [watermark - 1, watermark] : []
    const hasPosition = chain.inOrder && !isDisordered && rows.size > 0 && !step.last
    if (!step.last && isDisordered) chain.inOrder = false
    if (hasPosition) chain.hasPosition = true
    const facts: PageEntry = {
      kind: 'page',
      chain: chain.chain,
      next: step.last ? null : `cursor-${number}`,
      requests: 1 + (number % 3),
      ...(after === watermark ? {} : { watermark: after }),
      ...(slices.length === 0 ? {} : { slices }),
      ...(logged.length === 0 ? {} : { logged }),
      ...(hasPosition ? { position: { at: number, ids: number % 4 === 1 ? null : [number] } } : {}),
      ...(isDisordered && !step.last ? { position: null } : {}),
      ...(refused.length === 0
        ? {}
        : {
            quarantine: refused.map((place) => ({
              window: windowOf(chain, place),
              items: 1 + place,
              blob: this.#blobs++,
            })),
          }),
      ...(number % 3 === 0 ? { repeated: number } : {}),
      ...(number % 5 === 1 ? { forgotten: [{ window: windowOf(chain, watermark), items: 2 }] } : {}),
      ...(number % 3 === 1 && !step.last ? { ids: { blob: this.#blobs++, keep: number % 3 } } : {}),
      ...(number % 4 === 0 ? { unknown_fields: { [`field-${number % 3}`]: number + 1 } } : {}),
    }
    const begin: JournalEntry[] = begun === null ? [] : [chainEntry(chain.chain, chain.query, windows)]
    this.#write([...lines, ...begin, facts])
    chain.watermark = after
    chain.pages++
    for (const place of [...rows.keys(), ...refused]) chain.hasRows.add(place)
    if (step.last) this.#chains.splice(this.#chains.indexOf(chain), 1)
  }

  /** Puts the rows of a page where they belong, folder by folder. */
  #store(chain: ImaginedChain, all: readonly Rows[], ways: readonly number[]): Stored {
    const folders = new Map<string, Rows[]>()
    for (const rows of all) {
      const folder = folderOf(chain, rows.place)
      folders.set(folder, [...(folders.get(folder) ?? []), rows])
    }
    const placed = [...folders].map(([folder, own], index) => {
      const way = ways[index % ways.length]!
      return this.#storeIn(folder, chain, own, way)
    })
    return {
      lines: placed.flatMap(({ lines }) => lines),
      slices: placed.flatMap(({ slices }) => slices),
      logged: placed.flatMap(({ logged }) => logged),
    }
  }

  #storeIn(folder: string, chain: ImaginedChain, all: readonly Rows[], way: number): Stored {
    const { open, lines } = this.#openIn(folder)
    const rows = all.reduce((sum, { rows }) => sum + rows, 0)
    const put = (into: ImaginedShard, some: readonly Rows[]): NonNullable<PageEntry['slices']> =>
      some.map(({ place, rows }) => {
        into.rows += rows
        into.partitions.add(keysOf(chain)[place]!)
        const imported_at = { min: 1000 * this.#pages + place, max: 2000 * this.#pages + place }
        return { window: windowOf(chain, place), shard: into.shard, rows, imported_at }
      })
    const log = (into: ImaginedShard, rows: number): NonNullable<PageEntry['logged']> => {
      return [{ shard: into.shard, rows, blob: this.#blobs++ }]
    }
    switch (way) {
      case 3: {
        // The shard is full in the middle of the page, and may have had its first row in the same.
        const [first, ...others] = all
        const before = put(open, [first!])
        const sealed = this.#seal(folder, open)
        if (others.length === 0) return { lines: sealed, slices: before, logged: [] }
        const next = this.#openIn(folder)
        const count = rows - first!.rows
        const slices = [...before, ...put(next.open, others)]
        return { lines: [...sealed, ...next.lines], slices, logged: log(next.open, count) }
      }
      default:
        return { lines, slices: put(open, all), logged: log(open, rows) }
    }
  }

  #openIn(folder: string): { open: ImaginedShard; lines: JournalEntry[] } {
    const known = this.#open.get(folder)
    if (known !== undefined) return { open: known, lines: [] }
    const part = this.#parts.get(folder) ?? 0
    const shard = this.#nextShard++
    const open = { shard, part, rows: 0, partitions: new Set<string>() }
    this.#parts.set(folder, part + 1)
    this.#open.set(folder, open)
    return { open, lines: [{ kind: 'open', shard, folder, part }] }
  }

  #seal(folder: string, { shard, part, rows, partitions }: ImaginedShard): JournalEntry[] {
    this.#open.delete(folder)
    const path = `${folder}/part-${String(part).padStart(5, '0')}.csv`
    return [seal(shard, path, { rows, partitions: [...partitions] })]
  }
}

function folderOf(chain: ImaginedChain, place: number): string {
  if (chain.query !== 'domain.a.com') return 'credentials'
  return `credentials/query=domain.a.com/import_window=${dayOf(chain.windows, place)}`
}

function dayOf(windows: WindowRun, place: number): number {
  const window = windows.at(place)
  return window === null ? 0 : Math.round((window.from - days(1)[0]!.from) / DAY)
}

function windowOf(chain: ImaginedChain, place: number): string {
  return keysOf(chain)[place]!.slice(chain.query.length + 1)
}
