import {
  DATA_SET_COLUMN,
  hasColumns,
  identifier,
  literal,
  PARTITION_COLUMN,
  qualified,
  type TableSpec,
  VIEW_ENDINGS,
} from './table.ts'

/** A view beside a table, in SQL that DuckDB and PostgreSQL both understand. */
export type View = { readonly name: string; readonly meaning: string; readonly select: string }

/** What people ask first; views whose columns the table lacks are left out. */
export function viewsOf(table: TableSpec, ledger: string): readonly View[] {
  const from = qualified(table, table.name)
  const views: View[] = []
  if (hasColumns(table, 'id', 'imported_at')) {
    views.push({
      name: `${table.name}${VIEW_ENDINGS.latest}`,
      meaning: 'one row per credential, whichever data sets have it',
      select: `SELECT DISTINCT ON (id) * FROM ${from} ORDER BY id, imported_at DESC, ${identifier(PARTITION_COLUMN.name)} DESC, ${identifier(DATA_SET_COLUMN.name)} DESC`,
    })
  }
  if (hasColumns(table, 'id', 'imported_at', 'source_id')) {
    const name = hasColumns(table, 'source_name') ? 'max(source_name) AS source_name, ' : ''
    views.push({
      name: `${table.name}${VIEW_ENDINGS.bySource}`,
      meaning: 'credentials of each leak, and when they came',
      select: `SELECT source_id, ${name}count(DISTINCT id) AS credentials, min(imported_at) AS first_imported_at, max(imported_at) AS last_imported_at FROM ${from} GROUP BY source_id`,
    })
  }
  if (hasColumns(table, 'id', 'imported_at', 'domain')) {
    views.push({
      name: `${table.name}${VIEW_ENDINGS.byDomainMonth}`,
      meaning: 'credentials of each domain by the month (UTC) in which they were imported',
      select: `SELECT domain, CAST(date_trunc('month', imported_at AT TIME ZONE 'UTC') AS DATE) AS month, count(DISTINCT id) AS credentials FROM ${from} GROUP BY 1, 2`,
    })
  }
  views.push({
    name: `${table.name}${VIEW_ENDINGS.added}`,
    meaning: 'rows of the partitions that the last load brought',
    select: `SELECT t.* FROM ${from} t WHERE (t.${DATA_SET_COLUMN.name}, t.${PARTITION_COLUMN.name}) IN (SELECT l.data_set, unnest(l.partitions) FROM ${ledger} l WHERE l.table_name = ${literal(table.name)} AND l.loaded_at = (SELECT max(m.loaded_at) FROM ${ledger} m WHERE m.table_name = l.table_name))`,
  })
  return views
}
