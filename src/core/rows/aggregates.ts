/**
 * Aggregates of rows: their number by day, source and kind of hash, and the number of nulls of each column. The
 * checkpoint keeps them for the summary page. Rows of keys beyond the limit are counted under `others`.
 */
export type Aggregates = {
  readonly rows: number
  /** By the day of `imported_at`, UTC, counted from 1970-01-01; empty if rows have no such column. */
  readonly days: Counts<number>
  /** By `source_name`; null: rows without one. */
  readonly sources: Counts<string | null>
  /** By `hash_type`, likewise. */
  readonly hash_types: Counts<string | null>
  /** By column, also columns without nulls. */
  readonly nulls: Readonly<Record<string, number>>
}

export type Counts<Key> = {
  readonly counts: readonly (readonly [Key, number])[]
  /** Rows under keys beyond the limit. */
  readonly others: number
}

/**
 * Number of keys that are counted separately. Up to twice as many exist temporarily, so that the selection costs
 * little.
 */
export type AggregateLimits = { readonly days: number; readonly sources: number; readonly hashTypes: number }

/** For row groups: usually a few kB. */
export const ROW_GROUP_LIMITS: AggregateLimits = { days: 366, sources: 250, hashTypes: 50 }
/** For data sets: a hundred years, and more sources than a summary page shows. */
export const DATA_SET_LIMITS: AggregateLimits = { days: 36_525, sources: 2_000, hashTypes: 200 }

/** The service does not limit the length of a name. */
const MAX_NAME = 100

/** The name of a source in aggregates: long names are truncated. */
export function nameInAggregates(name: string): string {
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME).toWellFormed()}…` : name
}

/** Aggregates without those of some of their rows; null: these were not counted by the same keys. */
export function withoutAggregates(all: Aggregates, gone: Aggregates): Aggregates | null {
  const days = withoutCounts(all.days, gone.days)
  const sources = withoutCounts(all.sources, gone.sources)
  const hashTypes = withoutCounts(all.hash_types, gone.hash_types)
  if (days === null || sources === null || hashTypes === null) return null
  const nulls = Object.entries(all.nulls).map(
    ([name, rows]) => [name, rows - (gone.nulls[name] ?? 0)] as const,
  )
  if (nulls.some(([, rows]) => rows < 0)) return null
  const rows = all.rows - gone.rows
  return { rows, days, sources, hash_types: hashTypes, nulls: Object.fromEntries(nulls) }
}

function withoutCounts<Key>(all: Counts<Key>, gone: Counts<Key>): Counts<Key> | null {
  const counts = new Map(all.counts)
  let others = all.others - gone.others
  for (const [key, rows] of gone.counts) {
    const left = (counts.get(key) ?? 0) - rows
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
    // Some of them may be among the others.
    if (left < 0) others += left
  }
  return others < 0 ? null : { counts: [...counts], others }
}

/** Sums up aggregates. The result depends only on the inputs and their order. */
export class AggregateTally {
  rows = 0
  readonly days: Tally<number>
  readonly sources: Tally<string | null>
  readonly hashTypes: Tally<string | null>
  readonly nulls = new Map<string, number>()

  constructor({ days, sources, hashTypes }: AggregateLimits) {
    this.days = new Tally(days)
    this.sources = new Tally(sources)
    this.hashTypes = new Tally(hashTypes)
  }

  addNulls(column: string, rows: number): void {
    this.nulls.set(column, (this.nulls.get(column) ?? 0) + rows)
  }

  add(aggregates: Aggregates): void {
    this.rows += aggregates.rows
    this.days.addAll(aggregates.days)
    this.sources.addAll(aggregates.sources)
    this.hashTypes.addAll(aggregates.hash_types)
    for (const [column, rows] of Object.entries(aggregates.nulls)) this.addNulls(column, rows)
  }

  aggregates(): Aggregates {
    return {
      rows: this.rows,
      days: this.days.all(),
      sources: this.sources.all(),
      hash_types: this.hashTypes.all(),
      nulls: Object.fromEntries(this.nulls),
    }
  }
}

/** Counts rows by key. If there are too many keys, only the largest are counted separately. */
class Tally<Key> {
  readonly #limit: number
  readonly #counts = new Map<Key, number>()
  #others = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(key: Key, rows: number): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + rows)
    if (this.#counts.size > 2 * this.#limit) this.#keepLargest()
  }

  addAll({ counts, others }: Counts<Key>): void {
    for (const [key, rows] of counts) this.add(key, rows)
    this.#others += others
  }

  all(): Counts<Key> {
    return { counts: [...this.#counts], others: this.#others }
  }

  #keepLargest(): void {
    const bySize = [...this.#counts].sort(([, a], [, b]) => b - a)
    for (const [key, rows] of bySize.slice(this.#limit)) {
      this.#counts.delete(key)
      this.#others += rows
    }
  }
}
