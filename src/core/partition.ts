import type { Int64 } from './collections.ts'
import type { Order } from './pipeline.ts'
import type { NamedQuery } from './queries.ts'
import { formatInstant, type Micros, parseTimestamp } from './time.ts'

/** Half-open UTC range `[from, until)`. */
export type Window = { readonly from: Micros; readonly until: Micros }

/** One query over one window: the unit of what is written. The unit of requests is a chain: {@link WindowRun}. */
export type Partition = {
  /** Stable name: `domain.acme.com/2024-01-01..2024-02-01`; never holds a secret. */
  readonly key: string
  readonly query: NamedQuery
  readonly window: Window | null
}

export function partition(query: NamedQuery, window: Window | null): Partition {
  return { key: partitionKey(query.name, window), query, window }
}

export function partitionKey(query: string, window: Window | null): string {
  return `${query}/${windowRange(window)}`
}

/** `2024-01-01..2024-02-01`, or `all` without windows: the last part of a partition's key. */
export function windowRange(window: Window | null): string {
  return window === null ? 'all' : `${instantName(window.from)}..${instantName(window.until)}`
}

/** Reads {@link windowRange} back. */
export function parseWindow(name: string): Window | null {
  if (name === 'all') return null
  const [from, until] = name.split('..').map(parseInstantName)
  if (from === undefined || until === undefined || from === null || until === null) {
    throw new Error(`not the window of a partition's key`)
  }
  return { from, until }
}

function parseInstantName(name: string): Micros | null {
  const at = parseTimestamp(name.replace(/T(\d\d)(\d\d)/, 'T$1:$2:'))
  // Whole seconds are exact as a number in any year; the rows of a feed may have any.
  return at !== null && BigInt(Number(at)) === BigInt(at) ? Number(at) : null
}

function instantName(at: Micros): string {
  const text = formatInstant(at)
  return text.endsWith('T00:00:00Z') ? text.slice(0, 10) : text.replaceAll(':', '')
}

/** Adjacent windows of one query, in the order of its chain. */
export class WindowRun {
  constructor(
    readonly order: Order,
    /** Instants in ascending order; two neighbors are a window. null: the one partition of a query without windows. */
    readonly bounds: Float64Array | null,
  ) {}

  /** @param windows in ascending order, each ending where the next begins; null alone: no windows */
  static of(order: Order, windows: readonly (Window | null)[]): WindowRun {
    const [first] = windows
    if (first === null || first === undefined) return new WindowRun(order, null)
    return new WindowRun(order, Float64Array.from([first.from, ...windows.map((window) => window!.until)]))
  }

  get count(): number {
    return this.bounds === null ? 1 : this.bounds.length - 1
  }

  get range(): Window | null {
    if (this.bounds === null || this.count === 0) return null
    return { from: this.bounds[0]!, until: this.bounds.at(-1)! }
  }

  /** The window at this index in the order of the chain. */
  at(index: number): Window | null {
    if (this.bounds === null) return null
    const byTime = this.order === 'asc' ? index : this.count - 1 - index
    return { from: this.bounds[byTime]!, until: this.bounds[byTime + 1]! }
  }

  get names(): readonly string[] {
    return Array.from({ length: this.count }, (_, index) => windowRange(this.at(index)))
  }

  /** The index of the window that holds an instant, which must be within the range. */
  indexOfInstant(at: Int64): number {
    const { bounds } = this
    if (bounds === null) return 0
    let low = 0
    let high = bounds.length - 1
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (bounds[middle]! <= at) low = middle
      else high = middle
    }
    return this.order === 'asc' ? low : this.count - 1 - low
  }

  /** Watermark of rows in order: the number of windows that are finished when the last row has this time. */
  watermarkAt(last: Int64): number {
    const { bounds, count } = this
    if (bounds === null) return 0
    const [isBefore, isAfter] = [last < bounds[0]!, last >= bounds[count]!]
    // In descending order more rows may follow with the exact time at which a window begins.
    if (this.order === 'asc' ? isAfter : isBefore) return count
    return isBefore || isAfter ? 0 : this.indexOfInstant(last)
  }

  /** The windows with the indices `[from, to)`. */
  part(from: number, to: number): WindowRun {
    if (this.bounds === null) return this
    const [first, last] = this.order === 'asc' ? [from, to] : [this.count - to, this.count - from]
    return new WindowRun(this.order, this.bounds.subarray(first, last + 1))
  }
}

/** Parts of a folder, first and last of each range. */
type PartRanges = readonly (readonly [first: number, last: number])[]

/** A shard as far as compaction is concerned. */
export type Compacted = { readonly path: string; readonly stands_for?: PartRanges | undefined }

/** Whether the rows of a former shard are in a compacted one. Paths are never used twice. */
export function standsFor({ path, stands_for = [] }: Compacted, former: string): boolean {
  const { folder, part } = placeOf(former)
  return folder === placeOf(path).folder && stands_for.some(([first, last]) => first <= part && part <= last)
}

/** `credentials/part-00012.parquet`: part 12 of `credentials` */
export function placeOf(path: string): { readonly folder: string; readonly part: number } {
  const [, folder = '', part = 0] = /^(.*)\/part-(\d+)\.[^/]*$/.exec(path) ?? []
  return { folder, part: Number(part) }
}
