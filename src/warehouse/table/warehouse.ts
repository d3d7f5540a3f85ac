import { ExportError, numberOf } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import type { TableSpec } from './table.ts'

/** - `append`: rows are added
 *  - `upsert`: of each credential of a query there is one row from the data set, the one imported last
 *  - `replace`: as `append`; where the table has other rows than the ledger lists, all of the data set are replaced */
export type LoadMode = 'append' | 'upsert' | 'replace'

export const LOAD_MODES: readonly LoadMode[] = ['append', 'upsert', 'replace']

export type DataSet = {
  /** `data_set_id` of its manifest. */
  readonly id: string
  /** Its name, for people: several data sets may share one. */
  readonly pipeline: string
}

/** A database that shards are loaded into. Every method rejects with an ExportError `target` that quotes no row. */
export type Warehouse = {
  /** @returns the table by its full name, which all other methods need */
  find(table: TableSpec): Promise<TableSpec>
  /** Makes table, ledger and views, or checks that they fit. @throws ExportError `config` with the difference */
  prepare(table: TableSpec, options: { readonly evolve: boolean }): Promise<void>
  /** Finds differences as `prepare` does, and changes nothing. @returns whether table and ledger are there */
  inspect(table: TableSpec, options: { readonly evolve: boolean }): Promise<boolean>
  /** Reads, outside of a transaction. */
  readonly query: Database['query']
  /** All of it or nothing. It sees what was committed before, and waits for another load's in the same table. */
  transaction<T>(table: TableSpec, work: (database: Database) => Promise<T>): Promise<T>
  /** Makes what is faster to make after the rows are loaded: indexes, if they are missing. */
  finish(table: TableSpec): Promise<void>
  close(): Promise<void>
}

/** What a transaction can do; DuckDB and PostgreSQL both understand its SQL. */
export type Database = {
  readonly query: (sql: string) => Promise<readonly Record<string, unknown>[]>
  /** @returns the number of rows that the statement changed */
  readonly run: (sql: string) => Promise<number>
  /**
   * @param select SQL of the rows, as DuckDB reads them, with data set and shard as last columns @param into qualified
   * @returns how many rows have strings changed to fit @throws ExportError `damaged` when another number is listed
   */
  readonly insert: (
    shards: readonly ManifestShard[],
    select: string,
    table: TableSpec,
    into: string,
  ) => Promise<number>
}

/** @param found the number of rows that were read @throws ExportError `damaged` when the manifest has another */
export function requireWhole(shards: readonly ManifestShard[], found: number): void {
  const rows = shards.reduce((sum, shard) => sum + shard.rows, 0)
  if (found === rows) return
  throw new ExportError({
    kind: 'damaged',
    what: `${shards.length === 1 ? 'The shard holds' : `${shards.length} shards hold`} ${numberOf(found, 'row')} instead of ${rows}`,
    where: shownShards(shards.map(({ path }) => path)),
    next: 'Run `verify`, which prints the command that exports it again; nothing of it was loaded.',
  })
}

/** Triggers and rules may drop or redirect rows without an error. @param name of the table, as it is shown @param shards their paths */
export function requireAcknowledged(
  name: string,
  shards: readonly string[],
  expected: number,
  acknowledged: number,
): void {
  if (acknowledged === expected) return
  throw new ExportError({
    kind: 'target',
    what: `The database acknowledged ${numberOf(acknowledged, 'row')} of ${expected} for ${name}: a trigger or a rule of the table drops or redirects the others`,
    where: shownShards(shards),
    next: 'Take it away, or load into another --table; nothing was loaded partially.',
  })
}

export function shownShards([first, ...others]: readonly string[]): string {
  return `${first}${others.length === 0 ? '' : `, and ${others.length} more`}`
}
