import {
  columnComments,
  columnLines,
  DUCKDB_TYPES,
  duckdbPath,
  identifier,
  literal,
} from '../../table/table.ts'
import {
  type DdlInput,
  type Dialect,
  hiveColumns,
  type SyncInput,
  type Syntax,
  shardGlob,
  tableColumns,
} from '../dialect.ts'
import { addColumns, ledgerTable, listOf, shardPattern, syncScript } from '../sync.ts'

/** The column with the path of a row's file. */
const FILE = 'spillway_file'

const SYNTAX: Syntax = { types: DUCKDB_TYPES, quoted: identifier, text: literal }

/**
 * Source: https://duckdb.org/docs/stable/data/csv/overview, …/data/partitioning/hive_partitioning,
 * …/core_extensions/iceberg/overview and …/core_extensions/delta
 */
export const duckdb: Dialect = {
  statements,
  sync,
  mounts: {
    iceberg: ({ iceberg }, name) =>
      `-- The Iceberg table, always as of its current snapshot. Needed once: INSTALL iceberg;
${viewOf('iceberg', iceberg, name)}`,
    delta: ({ root }, name) =>
      `-- The Delta table, always as of its current version. Needed once: INSTALL delta;
${viewOf('delta', root, name)}`,
  },
}

function viewOf(extension: string, root: string, name: string): string {
  return `LOAD ${extension};
CREATE OR REPLACE VIEW ${identifier(name)} AS
SELECT * FROM ${extension}_scan(${literal(root)});`
}

function statements(input: DdlInput): string {
  const { table } = input
  const name = identifier(table)
  // By itself DuckDB also takes keys of folders above the data set, in place of columns of their names.
  const hive = hiveColumns(input)
  const keys = hive.map((key) => {
    const folders = hive.map((each) => `${each}=${each === key ? '([^/]*)' : '[^/]*'}`).join('/')
    return `url_decode(regexp_extract(${FILE}, ${literal(`/${folders}/[^/]*$`)}, 1)) AS ${identifier(key)}`
  })
  const { terms, reader } = filesOf(input)
  const comments = columnComments(name, tableColumns(input.columns))
  return `-- DuckDB: a table of its own, filled from the files. \`spillway load --to duckdb:<file>\` does it shard by shard, each once.
${tablesOf(input).join(';\n')};
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

function sync(input: SyncInput): string {
  const { terms, reader } = filesOf(input)
  const [name, list] = [input.table, listOf(input.table)].map(identifier) as [string, string]
  const match = (text: string, pattern: string): string => `regexp_extract(${text}, ${literal(pattern)}, 1)`
  const shard = match(FILE, shardPattern(input))
  return syncScript(input, {
    ...SYNTAX,
    tables: [...tablesOf(input), ...addColumns(input, name, SYNTAX)],
    listFrom,
    match,
    lines: `SELECT unnest(string_split(content, chr(10))) AS line FROM read_text(${literal(`${duckdbPath(input.path)}/_manifest.json`)})`,
    makeList: (select) => [`CREATE OR REPLACE TEMP TABLE ${list} AS\n${select}`],
    transaction: ['BEGIN TRANSACTION', 'COMMIT'],
    copy: [
      `SET VARIABLE spillway_missing = (SELECT list(shard) FROM ${list} WHERE state = 'missing')`,
      `INSERT INTO ${name} BY NAME
SELECT ${terms.join(', ')}, (SELECT max(data_set) FROM ${list}) AS spillway_data_set, ${shard} AS spillway_shard
FROM ${reader}
WHERE list_contains(getvariable('spillway_missing'), ${shard})`,
    ],
  })
}

/** As `load` makes them, which may fill them as well. */
function tablesOf(input: DdlInput): readonly string[] {
  const lines = columnLines(tableColumns(input.columns), DUCKDB_TYPES)
  return [`CREATE TABLE IF NOT EXISTS ${identifier(input.table)} (\n${lines}\n)`, ledgerTable(SYNTAX)]
}

function listFrom(json: string): string {
  return `from_json(${json}, '["VARCHAR"]')`
}

/** The columns of the files, and the table function that reads them, with the path of each in `spillway_file`. */
function filesOf(input: DdlInput): { readonly terms: readonly string[]; readonly reader: string } {
  const { columns, added, format } = input
  const byName = added.length === 0 ? '' : 'union_by_name = true, '
  const hiveOptions = `${byName}hive_partitioning = false, filename = ${literal(FILE)}`
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
      ? `${listFrom(identifier(name))} AS ${identifier(name)}`
      : identifier(name),
  )
  return { terms, reader }
}
