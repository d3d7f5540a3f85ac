import type { ManifestShard } from '../../state/index.ts'
import type { TableSpec } from './table.ts'

/** - `append`: rows are added
 *  - `upsert`: of each credential of a query there is one row from the data set, the one loaded last
 *  - `replace`: a partition's rows take the place of those that are there */
export type LoadMode = 'append' | 'upsert' | 'replace'

export const LOAD_MODES: readonly LoadMode[] = ['append', 'upsert', 'replace']

/** A data set as a warehouse knows it. */
export type DataSet = {
  /** `data_set_id` of its manifest. */
  readonly id: string
  /** Its name, for people: several data sets may share one. */
  readonly pipeline: string
}

/** What the ledger says of a shard that was loaded. */
export type Loaded = {
  readonly shard: string
  readonly sha256: string
  readonly partitions: readonly string[]
  readonly rows: number
  /** Epoch milliseconds: when the command that loaded it began to load. */
  readonly loadedAtMs: number
}

/** Shards that are loaded in one transaction, together with what has to go first. */
export type LoadUnit = {
  readonly shards: readonly ManifestShard[]
  /** Partitions whose rows are deleted first. */
  readonly stale: readonly string[]
  /** Shards that leave the ledger first. */
  readonly forgotten: readonly string[]
}

/** How rows of a shard that holds several partitions are told apart; a null is not looked at. */
export type PartitionRule = {
  readonly key: string
  readonly queryType: string | null
  readonly queryValue: string | null
  /** Microseconds, half-open. */
  readonly from: number | null
  readonly until: number | null
  /** Reports: the identifier. */
  readonly id: number | null
}

/** A database that shards are loaded into. Every method rejects with an ExportError `target` that quotes no row. */
export type Warehouse = {
  /**
   * Waits until no other load is at work in the table; from then on none is until `close`.
   * @returns the table by its full name, by which all that follows has to know it
   */
  hold(table: TableSpec): Promise<TableSpec>
  /**
   * Makes table, ledger and views, or sees that they fit. What the ledger says of a table that had to be made is void.
   * @throws ExportError `config` with the difference
   */
  prepare(table: TableSpec, options: { readonly evolve: boolean }): Promise<void>
  /**
   * What the ledger says of a data set and a table.
   * @param about null: everything; otherwise only what it says of these shards and of others with partitions of theirs
   */
  loaded(
    dataSet: string,
    table: TableSpec,
    about: readonly ManifestShard[] | null,
  ): Promise<readonly Loaded[]>
  /** How the rows of a data set in the table and its lines in the ledger differ. */
  account(dataSet: DataSet, table: TableSpec): Promise<Account>
  /** Carries out one unit in one transaction. @returns the rows that were added, and texts changed to fit */
  load(unit: LoadUnit, into: LoadTarget): Promise<{ readonly rows: number; readonly replacedTexts: number }>
  /** Makes what is better made when the rows are in, where it is not there yet. */
  finish(table: TableSpec): Promise<void>
  close(): Promise<void>
}

/** What somebody else has done to a table or its ledger shows in it. */
export type Account = {
  /** Partitions of the data set that the table has rows of, and the ledger no line. */
  readonly unaccounted: readonly string[]
  /** Whether the ledger lists rows of the data set while the table has none at all. */
  readonly isEmptied: boolean
  /** Identities of other data sets of the same pipeline with rows in the table. */
  readonly others: readonly string[]
}

export type LoadTarget = {
  readonly dataSet: DataSet
  readonly table: TableSpec
  readonly mode: LoadMode
  /** The same for all that one command loads: ISO 8601. */
  readonly loadedAt: string
  /** SQL of the shards' rows, as DuckDB reads them, with data set and partition as last columns. */
  readonly rowsOf: (shard: ManifestShard) => ShardRows
}

/** How DuckDB reads the rows of a shard. */
export type ShardRows = {
  /** To be carried out before: makes what `select` joins with. */
  readonly setup: readonly string[]
  readonly select: string
}
