import { columnComments, columnLines, DUCKDB_TYPES, duckdbPath, identifier, literal } from '../table/table.ts'
import { type Dialect, hiveColumns, loadableColumns, shardGlob } from './dialect.ts'

/** The column with the path of a row's file. */
const FILE = 'spillway_file'

/** Source: https://duckdb.org/docs/stable/data/csv/overview and …/data/partitioning/hive_partitioning */
export const duckdb: Dialect = (input) => {
  const { table, columns, format } = input
  const name = identifier(table)
  // By itself DuckDB also takes keys of folders above the data set, in place of columns of their names.
  const hive = hiveColumns(input)
  const keys = hive.map((key) => {
    const folders = hive.map((each) => `${each}=${each === key ? '([^/]*)' : '[^/]*'}`).join('/')
    return `url_decode(regexp_extract(${FILE}, ${literal(`/${folders}/[^/]*$`)}, 1)) AS ${identifier(key)}`
  })
  const hiveOptions = `hive_partitioning = false, filename = ${literal(FILE)}`
  const glob = literal(shardGlob({ ...input, path: duckdbPath(input.path) }))
  const csvTypes = columns.map(
    ({ name, type }) => `${literal(name)}: ${literal(type === 'list' ? 'VARCHAR' : DUCKDB_TYPES[type])}`,
  )
  const reader =
    format.kind === 'parquet'
      ? `read_parquet(${glob}, ${hiveOptions})`
      : `read_csv(${glob}, header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', new_line = '\\n',
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
  const all = loadableColumns(columns)
  const comments = columnComments(name, all)
  return `-- DuckDB: a table of its own, filled from the files. \`spillway load --to duckdb:<file>\` does it shard by shard, each once.
CREATE TABLE ${name} (
${columnLines(all, DUCKDB_TYPES)}
);
${comments.join('\n')}

INSERT INTO ${name} BY NAME
SELECT ${terms.join(', ')}
FROM ${reader};

-- Or the files as they stand, as a view:
CREATE OR REPLACE VIEW ${identifier(`${table}_files`)} AS
SELECT ${[...terms, ...keys].join(', ')}
FROM ${reader};
`
}
