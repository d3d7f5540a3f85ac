import type { ColumnType } from '../../core/index.ts'
import { identifier, literal } from '../table/table.ts'
import { bucketOf, type Dialect, hiveColumns } from './dialect.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'BIGINT',
  text: 'VARCHAR',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP(6)',
  list: 'ARRAY(VARCHAR)',
}

/** Source: https://trino.io/docs/current/connector/hive.html: tables over CSV know only VARCHAR. */
export const trino: Dialect = (input) => {
  const { table, columns, format, resource } = input
  const isCsv = format.kind === 'csv'
  const hive = hiveColumns(input)
  const lines = [
    ...columns.map(
      ({ name, type, meaning }) =>
        `  ${identifier(name)} ${isCsv ? 'VARCHAR' : TYPES[type]} COMMENT ${literal(meaning)}`,
    ),
    ...hive.map((key) => `  ${identifier(key)} VARCHAR`),
  ]
  const properties = [
    `external_location = ${literal(`${bucketOf(input)}/${resource}`)}`,
    `format = ${literal(format.kind.toUpperCase())}`,
    ...(isCsv
      ? ['skip_header_line_count = 1', `csv_separator = ','`, `csv_quote = '"'`, `csv_escape = '"'`]
      : []),
    ...(hive.length === 0 ? [] : [`partitioned_by = ARRAY[${hive.map(literal).join(', ')}]`]),
  ]
  // The connector reads and makes timestamps in milliseconds otherwise, and refuses a column of microseconds.
  const precision = isCsv ? '' : `SET SESSION hive.timestamp_precision = 'MICROSECONDS';\n\n`
  const sync =
    hive.length === 0
      ? ''
      : `\n-- Finds the folders; again after every export.\nCALL hive.system.sync_partition_metadata('default', ${literal(table)}, 'FULL');\n`
  return `-- Trino, Hive connector: replace the catalog hive and the schema default where they go by other names${isCsv ? '\n-- Over CSV every column is VARCHAR, "" and null look alike, and a value with a line break is torn: Parquet has none of this.' : ''}
${precision}CREATE TABLE hive.default.${identifier(table)} (
${lines.join(',\n')}
)
WITH (
${properties.map((property) => `  ${property}`).join(',\n')}
);
${sync}`
}
