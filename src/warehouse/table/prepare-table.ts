import { ExportError, kindOfRows, rulesOf } from '../../core/index.ts'
import type { ColumnSpec, ColumnType } from '../../rows/index.ts'
import {
  columnLines,
  hasColumns,
  identifier,
  LEDGER,
  literal,
  OWN_COLUMNS,
  qualified,
  shownName,
  type TableSpec,
  VIEW_ENDINGS,
} from './table.ts'
import type { FoundColumn, Warehouse } from './warehouse.ts'

/** What there is of a table and its ledger. @throws ExportError `config` with the difference, or with a taken name */
export async function inspectTable(
  warehouse: Warehouse,
  table: TableSpec,
  options: { readonly evolve: boolean },
) {
  const { types } = warehouse
  for (const name of [table.name, LEDGER]) await requireKind('table', warehouse, table, name)
  const found = await warehouse.findColumns(table)
  const ledger = { ...table, name: LEDGER, columns: LEDGER_COLUMNS }
  const foundInLedger = await warehouse.findColumns(ledger)
  if (foundInLedger.length > 0) missingColumns(ledger, foundInLedger, types, { evolve: false })
  return {
    isThere: found.length > 0,
    hasLedger: foundInLedger.length > 0,
    missing: found.length === 0 ? [] : missingColumns(table, found, types, options),
  }
}

/** Makes table, ledger and views. Ledger entries of a dropped table go. @throws ExportError as {@link inspectTable} does */
export function prepareTable(
  warehouse: Warehouse,
  table: TableSpec,
  options: { readonly evolve: boolean },
): Promise<void> {
  const { types, ledgerKey } = warehouse
  const name = qualified(table, table.name)
  const ledger = qualified(table, LEDGER)
  return warehouse.define(table, async (run) => {
    // A user who may create tables may lack the right to create schemas.
    if (table.schema !== null && !(await warehouse.hasSchema(table.schema)))
      await run(`CREATE SCHEMA ${qualified({ schema: table.catalog ?? null }, table.schema)}`)
    const { isThere, hasLedger, missing } = await inspectTable(warehouse, table, options)
    if (!isThere) {
      await run(`CREATE TABLE ${name} (\n${columnLines(table.columns, types)}\n)`)
      for (const sql of warehouse.afterCreation(name)) await run(sql)
    }
    for (const { name: column, type } of missing)
      await run(`ALTER TABLE ${name} ADD COLUMN ${identifier(column)} ${types[type]}`)
    if (!isThere || missing.length > 0) {
      for (const { name: column, meaning } of table.columns)
        await run(`COMMENT ON COLUMN ${name}.${identifier(column)} IS ${literal(meaning)}`)
    }
    if (!hasLedger)
      await run(`CREATE TABLE ${ledger} (\n${columnLines(LEDGER_COLUMNS, types)}${ledgerKey}\n)`)
    if (!isThere) await run(`DELETE FROM ${ledger} WHERE table_name = ${literal(table.name)}`)
    const all = await columnsOf(warehouse, table)
    for (const { name: view, meaning, columns = all, select } of viewsOf(table)) {
      await requireKind('view', warehouse, table, view)
      const is = await columnsOf(warehouse, { ...table, name: view })
      // Views of a table that was renamed are still views of that one.
      const isInPlace = isThere && is.join() === columns.join()
      if (!isInPlace) await warehouse.makeView(qualified(table, view), select, meaning)
    }
  })
}

async function columnsOf(warehouse: Warehouse, table: TableSpec): Promise<readonly string[]> {
  return (await warehouse.findColumns(table)).map(({ name }) => name)
}

export const LEDGER_COLUMNS: readonly ColumnSpec[] = [
  ledgerColumn('data_set', 'text', 'identity of the data set'),
  ledgerColumn('shard', 'text', 'path of the shard within it'),
  ledgerColumn('sha256', 'text', 'of its bytes'),
  ledgerColumn('rows', 'int64', 'how many it holds'),
  ledgerColumn('loaded_at', 'timestamp', 'when the command that loaded it began to load'),
  // BigQuery has no list that is never null.
  { ...ledgerColumn('partitions', 'list', 'keys of its partitions: query/window'), nullable: true },
  ledgerColumn('table_name', 'text', 'table that its rows are in'),
  ledgerColumn('pipeline', 'text', 'name of the data set'),
]

function ledgerColumn(name: string, type: ColumnType, meaning: string): ColumnSpec {
  return { name, type, nullable: false, meaning }
}

/** @throws ExportError `config` when something else has the name */
async function requireKind(
  wanted: 'table' | 'view',
  warehouse: Warehouse,
  table: TableSpec,
  name: string,
): Promise<void> {
  const found = await warehouse.kindOf(table, name)
  if (found === null || found === wanted) return
  throw new ExportError({
    kind: 'config',
    what: `The load needs the name for a ${wanted}, and it is that of a ${found}`,
    where: shownName(table, name),
    next: 'Rename or drop what has the name, or choose another --table; nothing was changed.',
  })
}

/** A view beside a table, in SQL that DuckDB and PostgreSQL both understand. */
type View = {
  readonly name: string
  readonly meaning: string
  /** Names; absent: all that the table has. */
  readonly columns?: readonly string[]
  readonly select: string
}

/** The usual questions as views, as far as the table has their columns. */
function viewsOf({ catalog, ...named }: TableSpec): readonly View[] {
  // DuckDB looks beside the view for names without a schema. The name of the catalog changes with that of the file.
  const table = catalog === undefined ? named : { ...named, schema: null }
  return kindOfRows(table.resource) === 'credentials' ? viewsOfCredentials(table) : viewsOfOthers(table)
}

function viewsOfOthers(table: TableSpec): readonly View[] {
  const time = ['updated_at', 'imported_at'].find((name) => hasColumns(table, 'id', name))
  if (time === undefined) return []
  const { each } = rulesOf(table.resource)
  return [latest(table, time, `one row per ${each}, whichever data sets have it: the last version`)]
}

function viewsOfCredentials(table: TableSpec): readonly View[] {
  // Each credential once: data sets may know another source or domain of the same one, or none.
  const from = (...names: string[]): string => `(${latestRows(table, 'imported_at', names)}) c`
  if (!hasColumns(table, 'id', 'imported_at')) return []
  const views = [latest(table, 'imported_at', 'one row per credential, whichever data sets have it')]
  if (hasColumns(table, 'source_id')) {
    const names = ['source_id', ...(hasColumns(table, 'source_name') ? ['source_name'] : [])]
    const name = names.length > 1 ? 'max(source_name) AS source_name, ' : ''
    views.push({
      name: `${table.name}${VIEW_ENDINGS.bySource}`,
      meaning: 'credentials of each leak, and when they came',
      columns: [...names, 'credentials', 'first_imported_at', 'last_imported_at'],
      select: `SELECT source_id, ${name}count(*) AS credentials, min(imported_at) AS first_imported_at, max(imported_at) AS last_imported_at FROM ${from(...names, 'imported_at')} GROUP BY source_id`,
    })
  }
  if (hasColumns(table, 'domain')) {
    views.push({
      name: `${table.name}${VIEW_ENDINGS.byDomainMonth}`,
      meaning: 'credentials of each domain by the month (UTC) in which they were imported',
      columns: ['domain', 'month', 'credentials'],
      select: `SELECT domain, CAST(date_trunc('month', imported_at AT TIME ZONE 'UTC') AS DATE) AS month, count(*) AS credentials FROM ${from('domain', 'imported_at')} GROUP BY 1, 2`,
    })
  }
  return views
}

function latest(table: TableSpec, time: string, meaning: string): View {
  return { name: `${table.name}${VIEW_ENDINGS.latest}`, meaning, select: latestRows(table, time, null) }
}

/**
 * One row for each id: the one with the latest time; between equal ones that of the data set that was loaded last.
 * @param names of columns; null: all
 */
function latestRows(table: TableSpec, time: string, names: readonly string[] | null): string {
  const [dataSet, shard] = OWN_COLUMNS.map(({ name }) => identifier(name))
  const terms = names === null ? 't.*' : names.map((name) => `t.${identifier(name)}`).join(', ')
  const loads = `SELECT data_set, max(loaded_at) AS loaded_at FROM ${qualified(table, LEDGER)} WHERE table_name = ${literal(table.name)} GROUP BY data_set`
  return `SELECT DISTINCT ON (t.id) ${terms} FROM ${qualified(table, table.name)} t LEFT JOIN (${loads}) l ON l.data_set = t.${dataSet} ORDER BY t.id, t.${time} DESC NULLS LAST, l.loaded_at DESC NULLS LAST, t.${dataSet} DESC, t.${shard} DESC`
}

/** @returns columns to be added @throws ExportError `config` with every difference */
function missingColumns(
  table: TableSpec,
  found: readonly FoundColumn[],
  types: Readonly<Record<ColumnType, string>>,
  { evolve }: { readonly evolve: boolean },
): readonly ColumnSpec[] {
  const there = new Map(found.map((column) => [column.name, column]))
  const differences: string[] = []
  const missing: ColumnSpec[] = []
  for (const column of table.columns) {
    const { name, type, nullable } = column
    const is = there.get(name)
    if (is !== undefined && is.type !== types[type]) {
      differences.push(`${name} is ${is.type} and should be ${types[type]}`)
    } else if (is === undefined && nullable && evolve) missing.push(column)
    else if (is === undefined) {
      differences.push(`${name} ${types[type]} is missing${nullable ? ' (--evolve adds it)' : ''}`)
    }
  }
  const wanted = new Set(table.columns.map(({ name }) => name))
  for (const { name, optional } of found) {
    if (!wanted.has(name) && !optional)
      differences.push(`${name} may not be null, and the rows have no such column`)
  }
  if (differences.length === 0) return missing
  throw new ExportError({
    kind: 'config',
    what: `The table does not fit the rows: ${differences.join('; ')}`,
    where: shownName(table, table.name),
    next: 'Choose another --table, add what is missing with --evolve, or change the table; nothing was changed.',
  })
}
