import { columnComments, columnLines, DUCKDB_TYPES, identifier, literal } from '../table/table.ts'
import { type Dialect, hiveColumns, shardGlob } from './dialect.ts'

/** Source: https://duckdb.org/docs/stable/data/csv/overview and …/data/partitioning/hive_partitioning */
export const duckdb: Dialect = (input) => {
  const { table, columns, format } = input
  const name = identifier(table)
  const hive = hiveColumns(input)
  // A window that starts off midnight would turn the type of the folder's key from date to text.
  const types = hive.map((key) => `${literal(key)}: VARCHAR`).join(', ')
  const hiveOptions =
    hive.length === 0
      ? 'hive_partitioning = false'
      : `hive_partitioning = true, hive_types = {${types}}, hive_types_autocast = false`
  const csvTypes = columns.map(
    ({ name, type }) => `${literal(name)}: ${literal(type === 'list' ? 'VARCHAR' : DUCKDB_TYPES[type])}`,
  )
  const reader =
    format.kind === 'parquet'
      ? `read_parquet(${literal(shardGlob(input))}, ${hiveOptions})`
      : `read_csv(${literal(shardGlob(input))}, header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', new_line = '\\n',
    -- Without this the empty string "" would become null.
    nullstr = '', allow_quoted_nulls = false,
    -- Lines may be longer than the 2 MB that it expects.
    max_line_size = 268435456, parallel = false,
    ${hiveOptions},
    columns = {${csvTypes.join(', ')}})`
  const terms = columns.map(({ name, type }) =>
    type === 'list' && format.kind === 'csv'
      ? `from_json(${identifier(name)}, '["VARCHAR"]') AS ${identifier(name)}`
      : identifier(name),
  )
  const comments = columnComments(name, columns)
  return `-- DuckDB: a table of its own, filled from the files. \`spillway load --to duckdb:<file>\` does it shard by shard, each once.
CREATE TABLE ${name} (
${columnLines(columns, DUCKDB_TYPES)}
);
${comments.join('\n')}

INSERT INTO ${name} BY NAME
SELECT ${terms.join(', ')}
FROM ${reader};

-- Or the files as they stand, as a view:
CREATE OR REPLACE VIEW ${identifier(`${table}_files`)} AS
SELECT ${[...terms, ...hive.map(identifier)].join(', ')}
FROM ${reader};
`
}
