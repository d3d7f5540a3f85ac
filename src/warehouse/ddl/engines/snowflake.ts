import type { ColumnType } from '../../../rows/index.ts'
import { identifier } from '../../table/table.ts'
import {
  BY_HAND,
  backslashed,
  bucketOf,
  type DdlInput,
  type Dialect,
  namesOf,
  type SyncDialect,
} from '../dialect.ts'
import { addColumns, commentedTables, listOf, shardPattern, syncScript } from '../sync.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'NUMBER(19, 0)',
  text: 'VARCHAR',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP_TZ(6)',
  list: 'ARRAY',
}

/** Names without quotes are taken in upper case. So that both say the same, small letters are quoted in capitals. */
function quoted(name: string): string {
  return identifier(/^[a-z_][a-z0-9_$]*$/.test(name) ? name.toUpperCase() : name)
}

/** Source: https://docs.snowflake.com/en/sql-reference/sql/copy-into-table and …/sql/create-file-format */
export const snowflake: Dialect = (input) => {
  const { table, resource, extension } = input
  const pattern = `.*/${resource}/.*part-[0-9]+${extension.replaceAll('.', '[.]')}`
  return `-- Snowflake
${[...commentedTables(input, TYPES, quoted, backslashed), ...stageOf(input, 'CREATE OR REPLACE STAGE')].join(';\n\n')};

${BY_HAND}
-- COPY remembers which files it has loaded (for 64 days).
COPY INTO ${quoted(table)} (${namesOf(input, quoted)})
FROM (SELECT ${termsOf(input).join(', ')} FROM @${quoted(`${table}_stage`)})
PATTERN = ${backslashed(pattern)};
`
}

/** Reads the missing files alone, a thousand at a time, by a pattern: only queries of a stage may use all functions. */
export const snowflakeSync: SyncDialect = (input) => {
  const { table } = input
  const [list, stage, lines] = [listOf(table), `${table}_stage`, `${table}_lines`].map(quoted)
  const match = (text: string, pattern: string): string =>
    `REGEXP_SUBSTR(${text}, ${backslashed(pattern)}, 1, 1, 'e', 1)`
  const shard = match('METADATA$FILENAME', shardPattern(input))
  const insert = `INSERT INTO ${quoted(table)} (${namesOf(input, quoted)}, SPILLWAY_DATA_SET, SPILLWAY_SHARD)
SELECT ${termsOf(input).join(', ')}, (SELECT MAX(DATA_SET) FROM ${list}), ${shard}
FROM @${stage} (FILE_FORMAT => ${backslashed(quoted(`${table}_format`))}, PATTERN => '.*(`
  const where = `)')
WHERE ${shard} IN (SELECT SHARD FROM ${list} WHERE STATE = 'missing')`
  return syncScript(input, {
    tables: [
      ...commentedTables(input, TYPES, quoted, backslashed),
      ...addColumns(input, quoted(table), quoted, ({ type }) => TYPES[type]),
      // Its integration is set by hand.
      ...stageOf(input, 'CREATE STAGE IF NOT EXISTS'),
      `CREATE OR REPLACE FILE FORMAT ${lines} TYPE = CSV FIELD_DELIMITER = NONE ESCAPE_UNENCLOSED_FIELD = NONE ENCODING = 'UTF8'`,
    ],
    types: TYPES,
    quoted,
    text: backslashed,
    listFrom: (json) => `PARSE_JSON(${json})`,
    into: quoted,
    match,
    lines: `SELECT $1 AS line FROM @${stage}/_manifest.json (FILE_FORMAT => ${backslashed(lines!)})`,
    list: list!,
    makeList: (select) => [`CREATE OR REPLACE TEMPORARY TABLE ${list} AS\n${select}`],
    begin: 'BEGIN TRANSACTION',
    commit: 'COMMIT',
    copy: [
      `EXECUTE IMMEDIATE $$
DECLARE
  batches CURSOR FOR
    SELECT LISTAGG(SHARD, '|') AS PATHS
    FROM (SELECT SHARD, FLOOR(ROW_NUMBER() OVER (ORDER BY SHARD) / 1000) AS BATCH FROM ${list} WHERE STATE = 'missing')
    GROUP BY BATCH;
  copying VARCHAR;
BEGIN
  FOR batch IN batches DO
    copying := ${backslashed(insert)} || batch.PATHS || ${backslashed(where)};
    EXECUTE IMMEDIATE :copying;
  END FOR;
END;
$$`,
    ],
  })
}

/** Where the files are, and how they are read. */
function stageOf(input: DdlInput, create: string): readonly string[] {
  const { table, format } = input
  const [stageName, formatName] = [quoted(`${table}_stage`), quoted(`${table}_format`)]
  const stage = `${create} ${stageName}
  URL = ${backslashed(`${bucketOf(input)}/`)}
  -- STORAGE_INTEGRATION = …
  FILE_FORMAT = (FORMAT_NAME = ${backslashed(formatName)})`
  const fileFormat =
    format.kind === 'parquet'
      ? `-- Without USE_LOGICAL_TYPE timestamps would be read as plain numbers.
CREATE OR REPLACE FILE FORMAT ${formatName} TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE`
      : `-- NULL_IF = () and EMPTY_FIELD_AS_NULL tell null from ""; without ESCAPE_UNENCLOSED_FIELD = NONE a backslash would change values.
CREATE OR REPLACE FILE FORMAT ${formatName} TYPE = CSV SKIP_HEADER = 1
  FIELD_OPTIONALLY_ENCLOSED_BY = '"' NULL_IF = () EMPTY_FIELD_AS_NULL = TRUE
  ESCAPE = NONE ESCAPE_UNENCLOSED_FIELD = NONE
  COMPRESSION = ${format.compression === 'gzip' ? 'GZIP' : 'NONE'} ENCODING = 'UTF8'`
  return [fileFormat, stage]
}

function termsOf({ columns, format }: DdlInput): readonly string[] {
  return columns.map(({ name, type }, index) => {
    if (format.kind === 'parquet') return `$1:${identifier(name)}::${type === 'list' ? 'ARRAY' : TYPES[type]}`
    return type === 'list' ? `PARSE_JSON($${index + 1})` : `$${index + 1}`
  })
}
