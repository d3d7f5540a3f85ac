import { manifestLines } from '../../../state/index.ts'
import {
  BY_HAND,
  backslashed,
  bucketOf,
  type DdlInput,
  type Dialect,
  namesOf,
  overParquet,
  backticked as quoted,
  type SyncInput,
} from '../dialect.ts'
import { commentedTables, listOf, shardPattern, syncScript } from '../sync.ts'
import { SPARK_SYNTAX as SYNTAX, spark } from './hive.ts'

/**
 * Source: https://docs.databricks.com/en/sql/language-manual/functions/read_files.html and
 * …/ingestion/file-metadata-column.html
 */
export const databricks: Dialect = {
  statements: overParquet('Databricks', statements),
  sync: overParquet('Databricks', sync),
  mounts: { delta: spark.mounts!.delta! },
}

function statements(input: DdlInput): string {
  const names = namesOf(input, quoted)
  return `-- Databricks
${commentedTables(input, SYNTAX).join(';\n\n')};

${BY_HAND}
INSERT INTO ${quoted(input.table)} (${names})
SELECT ${names}
FROM ${filesOf(input)};
`
}

/** Files whose names begin with `_` are not read there, so the script holds the list of shards. */
function sync(input: SyncInput): string {
  const names = namesOf(input, quoted)
  const list = quoted(listOf(input.table))
  const match = (text: string, pattern: string): string =>
    `regexp_extract(${text}, ${backslashed(pattern)}, 1)`
  // Some versions encode % in the paths of files. No two shards differ in that alone.
  const plain = (path: string): string => `replace(${path}, '%25', '%')`
  const added = input.added.map(({ name, type }) => `${quoted(name)} ${SYNTAX.types[type]}`).join(', ')
  const byHand =
    added === ''
      ? ''
      : `-- Once, by hand, where the table is older than these columns:
-- ALTER TABLE ${quoted(input.table)} ADD COLUMNS (${added});
`
  const lines = manifestLines(input.manifest).map((line) => `(${backslashed(line)})`)
  const script = syncScript(input, {
    ...SYNTAX,
    tables: commentedTables(input, SYNTAX),
    listFrom: (json) => `from_json(${json}, 'ARRAY<STRING>')`,
    match,
    lines: `SELECT line FROM VALUES\n    ${lines.join(',\n    ')} AS v(line)`,
    makeList: (select) => [`CREATE OR REPLACE TABLE ${list} AS\n${select}`],
    copy: [
      `INSERT INTO ${quoted(input.table)} (${names}, spillway_data_set, spillway_shard)
SELECT ${input.columns.map(({ name }) => `f.${quoted(name)}`).join(', ')}, c.data_set, c.shard
FROM (
  SELECT ${names}, ${plain(match('_metadata.file_path', shardPattern(input)))} AS spillway_file
  FROM ${filesOf(input)}
) f
JOIN ${list} c ON f.spillway_file = ${plain('c.shard')}
WHERE c.state = 'missing'`,
    ],
  })
  return `${byHand}${script}`
}

function filesOf(input: DdlInput): string {
  const { columns, resource, extension } = input
  const schema = columns.map(({ name, type }) => `${quoted(name)} ${SYNTAX.types[type]}`).join(', ')
  const options = [
    "format => 'parquet'",
    `fileNamePattern => ${backslashed(`*${extension}`)}`,
    `schema => ${backslashed(schema)}`,
  ]
  return `read_files(${[backslashed(`${bucketOf(input)}/${resource}`), ...options].join(', ')})`
}
