import type { ColumnSpec, ColumnType } from '../../core/index.ts'
import { columnList } from './shard-rows.ts'
import {
  ADDED,
  DATA_SET_COLUMN,
  hasColumns,
  literal,
  PARTITION_COLUMN,
  qualified,
  type TableSpec,
} from './table.ts'
import type { DataSet, ShardRows } from './warehouse.ts'

/**
 * The columns of the table of what the last export of each feed has added: the view `<table>_new` shows these rows. The
 * windows of a feed get more rows with every export, so they do not tell what is new.
 */
const ADDED_COLUMNS: readonly ColumnSpec[] = [
  column('data_set', 'text', 'identity of the data set'),
  column('table_name', 'text', 'table that the row is in'),
  column('partition', 'text', 'partition of the row'),
  column('id', 'int64', 'identifier of the credential'),
]

function column(name: string, type: ColumnType, meaning: string): ColumnSpec {
  return { name, type, nullable: false, meaning }
}

/** Whether what is new is known by row: of feeds that are exported with their ids. */
export function knowsAdded(table: TableSpec): boolean {
  return table.resource === 'feed' && hasColumns(table, 'id')
}

export function addedTable(table: TableSpec): TableSpec {
  return { ...table, name: ADDED, columns: ADDED_COLUMNS }
}

/** The rows of a shard as {@link ADDED} has them. */
export function addedRows(dataSet: DataSet, table: TableSpec, { setup, select }: ShardRows): ShardRows {
  const own = [literal(dataSet.id), literal(table.name), PARTITION_COLUMN.name, 'id'].join(', ')
  return { setup, select: `SELECT ${own} FROM (${select}) AS shard(${columnList(table)})` }
}

/** Takes the rows of the export before off the table. */
export function forgetAdded(dataSet: DataSet, table: TableSpec): string {
  return `DELETE FROM ${qualified(table, ADDED)} WHERE data_set = ${literal(dataSet.id)} AND table_name = ${literal(table.name)}`
}

/** The rows of {@link ADDED}. @param table as the view names it */
export function addedSelect(table: TableSpec): string {
  return `SELECT t.* FROM ${qualified(table, table.name)} t WHERE (t.${DATA_SET_COLUMN.name}, t.${PARTITION_COLUMN.name}, t.id) IN (SELECT n.data_set, n.partition, n.id FROM ${qualified(table, ADDED)} n WHERE n.table_name = ${literal(table.name)})`
}
