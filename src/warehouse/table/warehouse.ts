import { ExportError } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { PartitionGroups } from './partition-groups.ts'
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
  /** Carries out one unit in one transaction. */
  load(unit: LoadUnit, into: LoadTarget): Promise<LoadedRows>
  /** Makes what is faster to make after the rows are loaded: indexes, if they are missing. */
  finish(table: TableSpec): Promise<void>
  close(): Promise<void>
}

/** Shows what others changed in a table or its ledger. */
export type Account = {
  /** Partitions with another number of rows in the table than the ledger lists. */
  readonly differences: readonly Difference[]
  /** Whether the ledger lists rows of the data set while the table has none at all. */
  readonly isEmptied: boolean
  /** Identities of other data sets of the same pipeline with rows in the table. */
  readonly others: readonly string[]
}

type Difference = {
  /** One, or those that share shards. */
  readonly partitions: readonly string[]
  readonly rows: number
  readonly listed: number
  /** Whether the ledger has an entry. */
  readonly isListed: boolean
}

/** `replacedTexts`: texts that were changed to fit. */
export type LoadedRows = { readonly rows: number; readonly replacedTexts: number }

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

export type RunQuery = (sql: string) => Promise<readonly Record<string, unknown>[]>

/** {@link Account} in SQL that DuckDB and PostgreSQL both understand. */
export async function accountOf(
  runQuery: RunQuery,
  { id, pipeline }: DataSet,
  table: TableSpec,
): Promise<Account> {
  const [rows, ledger] = [qualified(table, table.name), qualified(table, LEDGER)]
  const listed = `FROM ${ledger} WHERE table_name = ${literal(table.name)} AND data_set = ${literal(id)}`
  const there = `FROM ${rows} WHERE ${identifier(DATA_SET_COLUMN.name)} = ${literal(id)}`
  const differences = await differencesOf(runQuery, there, listed)
  const [emptied] = await runQuery(
    `SELECT EXISTS (SELECT 1 ${listed} AND rows > 0) AND NOT EXISTS (SELECT 1 ${there}) AS is_so`,
  )
  const others = await runQuery(
    `SELECT DISTINCT data_set AS name FROM ${ledger} WHERE table_name = ${literal(table.name)} AND pipeline = ${literal(pipeline)} AND data_set <> ${literal(id)} AND rows > 0 ORDER BY name`,
  )
  return { differences, isEmptied: emptied?.is_so === true, others: others.map(({ name }) => String(name)) }
}

/** Rows of a ledger entry that are in the table. */
const KEPT_ROWS = 'rows - coalesce(replaced, 0)'

/**
 * Counts the rows of each partition; PostgreSQL does so by the index. Rows in shards of several partitions are counted
 * together with all partitions that share a shard with theirs.
 * @param there FROM and WHERE of the data set's rows @param listed of its ledger entries
 */
async function differencesOf(
  runQuery: RunQuery,
  there: string,
  listed: string,
): Promise<readonly Difference[]> {
  type Counted = { name: string; rows: number; listed: number; is_listed: boolean; is_shared: boolean }
  const counted = (await runQuery(
    `SELECT coalesce(t.name, l.name) AS name, coalesce(t.n, 0)::float8 AS rows, coalesce(l.n, 0)::float8 AS listed, l.name IS NOT NULL AS is_listed, coalesce(l.is_shared, false) AS is_shared
     FROM (SELECT ${identifier(PARTITION_COLUMN.name)} AS name, count(*) AS n ${there} GROUP BY 1) t
     FULL JOIN (SELECT name, sum(n) AS n, bool_or(partitions > 1) AS is_shared FROM (SELECT unnest(partitions) AS name, ${KEPT_ROWS} AS n, array_length(partitions, 1) AS partitions ${listed}) e GROUP BY 1) l ON t.name = l.name
     WHERE coalesce(l.is_shared, false) OR coalesce(t.n, 0) <> coalesce(l.n, 0) ORDER BY 1`,
  )) as unknown as readonly Counted[]
  const alone = counted.filter((each) => !each.is_shared)
  const differences = alone.map(({ name, rows, listed, is_listed }) => ({
    partitions: [name],
    rows,
    listed,
    isListed: is_listed,
  }))
  if (alone.length === counted.length) return differences
  const entries = (await runQuery(
    `SELECT partitions, (${KEPT_ROWS})::float8 AS rows ${listed}`,
  )) as unknown as readonly Pick<Loaded, 'partitions' | 'rows'>[]
  const groups = new PartitionGroups()
  for (const { partitions } of entries) if (partitions.length > 1) groups.join(partitions)
  const sums = new Map<string, { partitions: string[]; rows: number; listed: number; isListed: true }>()
  const sumOf = (partitions: readonly string[]) => {
    const root = groups.rootOf(partitions)
    if (root === null) return null
    const sum = sums.get(root) ?? { partitions: [], rows: 0, listed: 0, isListed: true }
    sums.set(root, sum)
    return sum
  }
  for (const { name, rows, is_shared } of counted) {
    const sum = is_shared ? sumOf([name]) : null
    if (sum === null) continue
    sum.partitions.push(name)
    sum.rows += rows
  }
  for (const { partitions, rows } of entries) {
    const sum = sumOf(partitions)
    if (sum !== null) sum.listed += rows
  }
  return [...differences, ...[...sums.values()].filter(({ rows, listed }) => rows !== listed)]
}

/**
 * Takes rows that an upsert replaced off the ledger entries of their partitions.
 * @param replaced how many, by partition
 */
export async function takeReplaced(
  runQuery: RunQuery,
  dataSet: string,
  table: TableSpec,
  replaced: ReadonlyMap<string, number>,
): Promise<void> {
  const ledger = qualified(table, LEDGER)
  const mine = `table_name = ${literal(table.name)} AND data_set = ${literal(dataSet)}`
  for (const [partition, rows] of replaced) {
    await runQuery(
      `UPDATE ${ledger} AS l SET replaced = coalesce(l.replaced, 0) + least(e.kept, greatest(${rows} - e.before, 0))
       FROM (SELECT shard, ${KEPT_ROWS} AS kept, coalesce(sum(${KEPT_ROWS}) OVER (ORDER BY shard ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS before
             FROM ${ledger} WHERE ${mine} AND ${literal(partition)} = ANY (partitions)) e
       WHERE ${mine} AND l.shard = e.shard`,
    )
  }
}

/**
 * Rejects a table whose rows are not those that the ledger lists: a load would double rows, or leave some out. A table
 * without any row of the data set is not rejected.
 * @param replaced partitions whose rows are about to be deleted anyway
 * @throws ExportError `config` when there are others
 */
export function requireAccounted(
  { differences, isEmptied }: Account,
  table: TableSpec,
  replaced: ReadonlySet<string> = new Set(),
): void {
  const left = differences.filter(({ partitions }) => !partitions.every((key) => replaced.has(key)))
  if (left.length === 0 || isEmptied) return
  const unlisted = left.filter(({ isListed }) => !isListed)
  throw new ExportError({
    kind: 'config',
    what: `${unlisted.length > 0 ? unlistedText(unlisted) : differenceText(left)}: somebody changed one of the two by hand, or restored it`,
    where: shownName(table, table.name),
    next: 'Load with --reload, which replaces all rows that it has of the data set, or with --mode replace, which does so for these partitions; nothing was changed.',
  })
}

function unlistedText(unlisted: readonly Difference[]): string {
  return `The table has rows of ${unlisted.length} partitions of this data set that ${LEDGER} does not list, such as ${unlisted[0]?.partitions[0]}`
}

function differenceText(left: readonly Difference[]): string {
  const sum = (key: 'rows' | 'listed'): number => left.reduce((total, each) => total + each[key], 0)
  const partitions = left.flatMap(({ partitions }) => partitions)
  return `The table has ${sum('rows')} rows of ${partitions.length} partitions of this data set for which ${LEDGER} lists ${sum('listed')}, such as ${partitions[0]}`
}

/** @param found the number of rows that were read @throws ExportError `damaged` when the manifest has another */
export function requireWhole({ path, rows }: ManifestShard, found: number): void {
  if (found === rows) return
  throw new ExportError({
    kind: 'damaged',
    what: `The shard holds ${found} rows instead of ${rows}`,
    where: path,
    next: 'Run `verify`, and `verify --fix` to export it anew; nothing of it was loaded.',
  })
}
