import type { IdentityPolicy, NamedQuery, Order, Query } from './pipeline.ts'
import type { Int64 } from './rows/int64.ts'
import { formatInstant, type Micros, parseInstant } from './time.ts'

/** Half-open UTC range `[from, until)`. */
export type Window = { readonly from: Micros; readonly until: Micros }

/** One query over one window: the unit of what is written. The unit of requests is a chain: {@link WindowRun}. */
export type Partition = {
  /** Stable name: `domain.acme.com/2024-01-01..2024-02-01`; never holds a secret. */
  readonly key: string
  readonly query: NamedQuery
  readonly window: Window | null
}

/** How many partitions are in which state. `partial`: begun, and not at their end; `pending`: not begun. */
export type PartitionStates = {
  readonly done: number
  readonly partial: number
  readonly failed: number
  readonly pending: number
  readonly pruned: number
}

export type PartitionState = keyof PartitionStates

/** How many partitions of a plan are done and how many are left; those that were pruned are not counted. */
export type PartitionCounts = {
  readonly total: number
  readonly done: number
  readonly failed: number
  /** Neither done nor failed: not begun, or not at their end. */
  readonly pending: number
}

export function partitionCounts(
  total: number,
  { done, failed }: Pick<PartitionCounts, 'done' | 'failed'>,
): PartitionCounts {
  return { total, done, failed, pending: total - done - failed }
}

/**
 * The query with its name: `<type>.<label>`, everything outside `[A-Za-z0-9._@-]` percent-encoded.
 * @param label what may be shown: see {@link openLabel}
 */
export function nameQuery(query: Query, label: string): NamedQuery {
  return { ...query, name: `${query.type}.${encodeSegment(label)}` }
}

/**
 * The label of a query, if it can be known without the mask key: the name that the user gave it, else its value.
 * Null where that is an identity which the policy hides.
 */
export function openLabel(query: Query, identity: IdentityPolicy): string | null {
  return ('as' in query ? query.as : undefined) ?? (hidesIdentity(query, identity) ? null : queryLabel(query))
}

/** Whether the value of a query is an identity that the policy hides: any policy but `keep`. */
export function hidesIdentity(query: Query, identity: IdentityPolicy): boolean {
  return (query.type === 'email' || query.type === 'keyword') && identity !== 'keep'
}

/** The value of a query, or the variable that holds its secret. {@link hidesIdentity} says when to hide it. */
export function queryLabel(query: Query): string {
  switch (query.type) {
    case 'domain':
    case 'auth_domain':
      return query.fqdn
    case 'email':
      return query.email
    case 'keyword':
      return query.keyword
    case 'secret':
      return query.secretEnv
    case 'report':
      return String(query.id)
    case 'reports':
      return 'all'
  }
}

/** `2024-01-01`, or `2024-01-01T060000Z` when it does not start at midnight, or `all` where there are no windows. */
export function windowName(window: Window | null): string {
  return window === null ? 'all' : instantName(window.from)
}

export function partition(query: NamedQuery, window: Window | null): Partition {
  return { key: partitionKey(query.name, window), query, window }
}

/** @param query its name */
export function partitionKey(query: string, window: Window | null): string {
  return `${query}/${windowRange(window)}`
}

/** The window's part of a partition's key: {@link windowRange}. */
export function windowOfKey(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

/** `2024-01-01..2024-02-01`, or `all` where there are no windows: the last part of a partition's key. */
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
  return parseInstant(name.replace(/T(\d\d)(\d\d)/, 'T$1:$2:'))
}

function instantName(at: Micros): string {
  const text = formatInstant(at)
  return text.endsWith('T00:00:00Z') ? text.slice(0, 10) : text.replaceAll(':', '')
}

function encodeSegment(value: string): string {
  // encodeURIComponent throws on lone surrogates, leaves !'()*~ as they are and encodes @.
  return encodeURIComponent(value.toWellFormed())
    .replaceAll('%40', '@')
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * Adjacent windows of one query, in the order in which a chain goes through them. One without bounds means the one
 * partition of a query that has no windows.
 */
export class WindowRun {
  readonly order: Order
  /** Instants in ascending order: each window lies between two of them; null: no windows. */
  readonly bounds: Float64Array | null

  constructor(order: Order, bounds: Float64Array | null) {
    this.order = order
    this.bounds = bounds
  }

  /** @param windows in ascending order, each ending where the next begins; null alone: no windows */
  static of(order: Order, windows: readonly (Window | null)[]): WindowRun {
    const [first] = windows
    if (first === null || first === undefined) return new WindowRun(order, null)
    return new WindowRun(order, Float64Array.from([first.from, ...windows.map((window) => window!.until)]))
  }

  /** How many windows. */
  get count(): number {
    return this.bounds === null ? 1 : this.bounds.length - 1
  }

  /** From the beginning of the first to the end of the last. */
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

  /** Of its windows, in order: see {@link windowRange}. */
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

  /** How many windows nothing more can come for once rows that are in order have come to this instant. */
  watermarkAt(last: Int64): number {
    const { bounds, count } = this
    if (bounds === null) return 0
    if (this.order === 'asc') {
      if (last >= bounds[count]!) return count
      return last < bounds[0]! ? 0 : this.indexOfInstant(last)
    }
    // More rows may come with the very time at which a window begins.
    if (last < bounds[0]!) return count
    return last >= bounds[count]! ? 0 : this.indexOfInstant(last)
  }

  /** The windows of indices `[from, to)`. */
  part(from: number, to: number): WindowRun {
    if (this.bounds === null) return this
    const [first, last] = this.order === 'asc' ? [from, to] : [this.count - to, this.count - from]
    return new WindowRun(this.order, this.bounds.subarray(first, last + 1))
  }
}
