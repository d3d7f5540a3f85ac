import type { ColumnType } from '../../core/index.ts'
import { literal } from '../table/table.ts'
import { backticked, bucketOf, type Dialect, hiveColumns, repairFolders } from './dialect.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'bigint',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'timestamp',
  list: 'array<string>',
}

/** Source: https://docs.aws.amazon.com/athena/latest/ug/create-table.html and …/csv-serde.html: OpenCSVSerDe knows only strings. */
export const athena: Dialect = (input) => {
  const { table, columns, format, resource } = input
  const isCsv = format.kind === 'csv'
  const hive = hiveColumns(input)
  const lines = columns.map(
    ({ name, type, meaning }) =>
      `  ${backticked(name)} ${isCsv ? 'string' : TYPES[type]} COMMENT ${literal(meaning)}`,
  )
  const partitioned =
    hive.length === 0 ? '' : `\nPARTITIONED BY (${hive.map((key) => `${backticked(key)} string`).join(', ')})`
  const storage = isCsv
    ? `ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'
WITH SERDEPROPERTIES ('separatorChar' = ',', 'quoteChar' = '"', 'escapeChar' = '"')
STORED AS TEXTFILE`
    : 'STORED AS PARQUET'
  const properties = isCsv ? `\nTBLPROPERTIES ('skip.header.line.count' = '1')` : ''
  return `-- Amazon Athena${isCsv ? '\n-- Over CSV every column is a string, "" and null look alike, and a value with a line break is torn: Parquet has none of this.' : ''}
CREATE EXTERNAL TABLE ${backticked(table)} (
${lines.join(',\n')}
)${partitioned}
${storage}
LOCATION ${literal(`${bucketOf(input)}/${resource}/`)}${properties};
${repairFolders(backticked(table), hive)}`
}
