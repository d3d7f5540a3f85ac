import {
  BY_HAND,
  backslashed,
  bucketOf,
  type DdlInput,
  type Dialect,
  namesOf,
  backticked as quoted,
  type SyncDialect,
} from './dialect.ts'
import { SPARK_TYPES as TYPES } from './hive.ts'
import { commentedTables, listOf, manifestLines, shardPattern, syncScript } from './sync.ts'

/**
 * Source: https://docs.databricks.com/en/sql/language-manual/functions/read_files.html and
 * …/ingestion/file-metadata-column.html
 */
export const databricks: Dialect = (input) => {
  const { terms, reader } = filesOf(input)
  return `-- Databricks
${commentedTables(input, TYPES, quoted, backslashed).join(';\n\n')};

${BY_HAND}
INSERT INTO ${quoted(input.table)} (${namesOf(input, quoted)})
SELECT ${terms.join(', ')}
FROM ${reader};
`
}

/** Files whose names begin with `_` are not read there, so the script holds the list of shards. */
export const databricksSync: SyncDialect = (input) => {
  const { terms, reader } = filesOf(input)
  const list = quoted(listOf(input.table))
  const match = (text: string, pattern: string): string =>
    `regexp_extract(${text}, ${backslashed(pattern)}, 1)`
  // Some versions encode % in the paths of files. No two shards differ in that alone.
  const plain = (path: string): string => `replace(${path}, '%25', '%')`
  const lines = manifestLines(input).map((line) => `(${backslashed(line)})`)
  return syncScript(input, {
    tables: commentedTables(input, TYPES, quoted, backslashed),
    types: TYPES,
    quoted,
    into: quoted,
    match,
    lines: `SELECT line FROM VALUES\n    ${lines.join(',\n    ')} AS v(line)`,
    list,
    makeList: (select) => [`CREATE OR REPLACE TABLE ${list} AS\n${select}`],
    copy: [
      `INSERT INTO ${quoted(input.table)} (${namesOf(input, quoted)}, spillway_data_set, spillway_shard)
SELECT ${input.columns.map(({ name }) => `f.${quoted(name)}`).join(', ')}, c.data_set, c.shard
FROM (
  SELECT ${terms.join(', ')}, ${plain(match('_metadata.file_path', shardPattern(input)))} AS spillway_file
  FROM ${reader}
) f
JOIN ${list} c ON f.spillway_file = ${plain('c.shard')}
WHERE c.state = 'missing'`,
    ],
  })
}

function filesOf(input: DdlInput): { readonly terms: readonly string[]; readonly reader: string } {
  const { columns, format, resource, extension } = input
  const isCsv = format.kind === 'csv'
  const terms = columns.map(({ name, type }) =>
    isCsv && type === 'list'
      ? `from_json(${quoted(name)}, 'ARRAY<STRING>') AS ${quoted(name)}`
      : quoted(name),
  )
  const schema = columns.map(
    ({ name, type }) => `${quoted(name)} ${isCsv && type === 'list' ? 'STRING' : TYPES[type]}`,
  )
  const csv = [`header => true`, 'multiLine => true', `quote => '"'`, `escape => '"'`, `encoding => 'UTF-8'`]
  const options = [
    `format => '${format.kind}'`,
    `fileNamePattern => '*${extension}'`,
    `schema => ${backslashed(schema.join(', '))}`,
    ...(isCsv ? csv : []),
  ]
  const root = `${bucketOf(input)}/${resource}`
  return { terms, reader: `read_files(${[backslashed(root), ...options].join(', ')})` }
}
