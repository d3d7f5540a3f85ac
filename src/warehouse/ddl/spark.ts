import type { ColumnType } from '../../core/index.ts'
import { backslashed, backticked, type Dialect, hiveColumns, repairFolders } from './dialect.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'BIGINT',
  text: 'STRING',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP',
  list: 'ARRAY<STRING>',
}

/** Source: https://spark.apache.org/docs/latest/sql-ref-syntax-ddl-create-table-datasource.html and …/sql-data-sources-csv.html */
export const spark: Dialect = (input) => {
  const { table, columns, format, path, resource } = input
  // CSV has no lists: there they stay JSON text, for from_json.
  const typeOf = (type: ColumnType): string =>
    type === 'list' && format.kind === 'csv' ? 'STRING' : TYPES[type]
  const hive = hiveColumns(input)
  const lines = [
    ...columns.map(
      ({ name, type, meaning }) => `  ${backticked(name)} ${typeOf(type)} COMMENT ${backslashed(meaning)}`,
    ),
    ...hive.map((key) => `  ${backticked(key)} STRING COMMENT ${backslashed('from the folder')}`),
  ]
  const options =
    format.kind === 'parquet'
      ? ''
      : `\nOPTIONS (
  header 'true', multiLine 'true',
  -- Doubled quotes, as RFC 4180 has it; Spark expects a backslash otherwise.
  quote '"', escape '"',
  -- An empty field is null and "" the empty string, as it is.
  encoding 'UTF-8'
)`
  const partitioned = hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map(backticked).join(', ')})`
  return `-- Spark SQL
CREATE TABLE ${backticked(table)} (
${lines.join(',\n')}
)
USING ${format.kind.toUpperCase()}${options}${partitioned}
LOCATION ${backslashed(`${path}/${resource}`)};
${repairFolders(backticked(table), hive)}`
}
