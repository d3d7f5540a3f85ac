import { ExportError, numberOf } from '../../core/index.ts'
import type { ColumnType } from '../../rows/index.ts'
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
  /** Reads, outside of a transaction. */
  readonly query: Database['query']
  /** All of it or nothing. It sees what was committed before, and waits for another load's in the same table. */
  transaction<T>(table: TableSpec, work: (database: Database) => Promise<T>): Promise<T>
  /** Changes definitions: all of it or nothing. It waits for another load's in any table. */
  define(table: TableSpec, work: (run: Database['run']) => Promise<void>): Promise<void>
  hasSchema(name: string): Promise<boolean>
  /** Columns of a table or view, in their order; none when it is not there. */
  findColumns(table: TableSpec): Promise<readonly FoundColumn[]>
  /** What has a name in the schema of the table. */
  kindOf(table: TableSpec, name: string): Promise<RelationKind>
  /** Makes a view, or replaces it, where definitions are changed. @param name qualified @param meaning comment of a new one */
  makeView(name: string, select: string, meaning: string): Promise<void>
  /** Names of the types as the database gives them back. */
  readonly types: Readonly<Record<ColumnType, string>>
  /** What else a new table gets. @param name qualified */
  afterCreation(name: string): readonly string[]
  /** Constraints of the ledger, after its columns. */
  readonly ledgerKey: string
  /** Makes what is faster to make after the rows are loaded: indexes, if they are missing. */
  finish(table: TableSpec): Promise<void>
  close(): Promise<void>
}

/** null: nothing */
export type RelationKind = 'table' | 'view' | 'object of another kind' | null

export type FoundColumn = {
  readonly name: string
  readonly type: string
  /** Whether rows may come without it: it takes null, or has a default. */
  readonly optional: boolean
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

/** Does work in one transaction: all of it, or nothing. @param begin the statement that begins it */
export async function transaction<T>(
  run: (sql: string) => Promise<unknown>,
  work: () => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  await run(begin)
  try {
    const result = await work()
    await run('COMMIT')
    return result
  } catch (error) {
    // A failed commit has rolled back by itself.
    await run('ROLLBACK').catch(() => {})
    throw error
  }
}
