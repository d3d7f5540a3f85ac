import { ExportError } from '../../core/index.ts'
import {
  DATA_SET_COLUMN,
  identifier,
  LEDGER,
  literal,
  PARTITION_COLUMN,
  qualified,
  type TableSpec,
} from './table.ts'
import type { Account, DataSet } from './warehouse.ts'

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
 * Rows that the ledger does not list would be doubled by a load.
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
    table.schema === null ? table.name : `${table.schema}.${table.name}`,
    'Load with --reload, which puts the data set as it is exported in the place of all its rows there, or with --mode replace, which does so for the partitions that are not listed; nothing was changed.',
  )
}
