import { ExportError } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import {
  DATA_SET_COLUMN,
  identifier,
  LEDGER,
  literal,
  PARTITION_COLUMN,
  qualified,
  shownName,
  type TableSpec,
} from './table.ts'

/** - `append`: rows are added
 *  - `upsert`: of each credential of a query there is one row from the data set, the one loaded last
 *  - `replace`: a partition's rows replace those that are there */
export type LoadMode = 'append' | 'upsert' | 'replace'

export const LOAD_MODES: readonly LoadMode[] = ['append', 'upsert', 'replace']

/** A data set as a warehouse knows it. */
export type DataSet = {
  /** `data_set_id` of its manifest. */
  readonly id: string
  /** Its name, for people: several data sets may share one. */
  readonly pipeline: string
}

/** A ledger entry: a shard that was loaded. */
export type Loaded = {
  readonly shard: string
  readonly sha256: string
  readonly partitions: readonly string[]
  readonly rows: number
  /** Epoch milliseconds: when the command that loaded it began. */
  readonly loadedAtMs: number
}

/** One transaction: what is deleted first, and the shards that are loaded then. */
export type LoadUnit = {
  readonly shards: readonly ManifestShard[]
  /** Partitions whose rows are deleted first. */
  readonly stale: readonly string[]
  /** Shards whose ledger entries are deleted first. */
  readonly forgotten: readonly string[]
}

/** The partition of a row in a shard of several partitions: the rule whose values it has. A null matches all. */
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
   * Locks the table against other loads until `close`. Waits while another load has it.
   * @returns the table by its full name, which all other methods need
   */
  hold(table: TableSpec): Promise<TableSpec>
  /**
   * Makes table, ledger and views, or checks that they fit. Deletes ledger entries of a table that did not exist.
   * @throws ExportError `config` with the difference
   */
  prepare(table: TableSpec, options: { readonly evolve: boolean }): Promise<void>
  /**
   * The ledger entries of a data set in a table.
   * @param about null: all; otherwise those of these shards, and of others that share a partition with them
   */
  loaded(
    dataSet: string,
    table: TableSpec,
    about: readonly ManifestShard[] | null,
  ): Promise<readonly Loaded[]>
  /** How the rows of a data set differ from its ledger entries. */
  account(dataSet: DataSet, table: TableSpec): Promise<Account>
  /** Carries out one unit in one transaction. @returns the rows that were added, and texts changed to fit */
  load(unit: LoadUnit, into: LoadTarget): Promise<{ readonly rows: number; readonly replacedTexts: number }>
  /** Makes what is faster to make after the rows are loaded: indexes, if they are missing. */
  finish(table: TableSpec): Promise<void>
  close(): Promise<void>
}

/** Shows what others changed in a table or its ledger. */
type Account = {
  /** Partitions with rows in the table, and no ledger entry. */
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
  /** Statements to run first: they make the tables that `select` joins. */
  readonly setup: readonly string[]
  readonly select: string
}

type RunQuery = (sql: string) => Promise<readonly Record<string, unknown>[]>

/** {@link Account} in SQL that DuckDB and PostgreSQL both understand. */
export async function accountOf(
  runQuery: RunQuery,
  { id, pipeline }: DataSet,
  table: TableSpec,
): Promise<Account> {
  const [rows, ledger] = [qualified(table, table.name), qualified(table, LEDGER)]
  const listed = `FROM ${ledger} WHERE table_name = ${literal(table.name)} AND data_set = ${literal(id)}`
  const there = `FROM ${rows} WHERE ${identifier(DATA_SET_COLUMN.name)} = ${literal(id)}`
  const unaccounted = await runQuery(
    `SELECT ${identifier(PARTITION_COLUMN.name)} AS name ${there} EXCEPT SELECT unnest(partitions) AS name ${listed}`,
  )
  const [emptied] = await runQuery(
    `SELECT EXISTS (SELECT 1 ${listed} AND rows > 0) AND NOT EXISTS (SELECT 1 ${there}) AS is_so`,
  )
  const others = await runQuery(
    `SELECT DISTINCT data_set AS name FROM ${ledger} WHERE table_name = ${literal(table.name)} AND pipeline = ${literal(pipeline)} AND data_set <> ${literal(id)} AND rows > 0 ORDER BY name`,
  )
  const names = (found: typeof unaccounted): readonly string[] => found.map(({ name }) => String(name))
  return { unaccounted: names(unaccounted), isEmptied: emptied?.is_so === true, others: names(others) }
}

/**
 * Rejects rows without a ledger entry: a load would double them.
 * @param replaced partitions whose rows are about to be deleted anyway
 * @throws ExportError `config` when there are others
 */
export function requireAccounted(
  { unaccounted }: Account,
  table: TableSpec,
  replaced: ReadonlySet<string> = new Set(),
): void {
  const partitions = unaccounted.filter((partition) => !replaced.has(partition))
  if (partitions.length === 0) return
  throw new ExportError(
    'config',
    `The table has rows of ${partitions.length} partitions of this data set that ${LEDGER} does not list, such as ${partitions[0]}: somebody changed one of the two by hand`,
    shownName(table, table.name),
    'Load with --reload, which replaces all rows that it has of the data set, or with --mode replace, which does so for the partitions that are not listed; nothing was changed.',
  )
}

/** @param found the number of rows that were read @throws ExportError `damaged` when the manifest has another */
export function requireWhole({ path, rows }: ManifestShard, found: number): void {
  if (found === rows) return
  throw new ExportError(
    'damaged',
    `The shard holds ${found} rows instead of ${rows}`,
    path,
    'Run `verify`, and `verify --fix` to export it anew; nothing of it was loaded.',
  )
}
