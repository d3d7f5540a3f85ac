import type { LoggedRows, Span } from '../core/index.ts'

/** Where rows of a page stand. */
export type PlacedRows = {
  /** The key of their partition. */
  readonly partition: string
  readonly shard: number
  readonly rows: number
  readonly importedAt: Span | null
}

/** Where the rows of a page stand: all of them by partition, and those that are in a row log. */
export type Places = { readonly placed: readonly PlacedRows[]; readonly logged: readonly LoggedRows[] }
