import { identifier } from '../../table/table.ts'
import {
  BY_HAND,
  backslashed,
  bucketOf,
  type DdlInput,
  type Dialect,
  namesOf,
  type SyncInput,
  type Syntax,
} from '../dialect.ts'
import { addColumns, commentedTables, listOf, shardPattern, syncScript } from '../sync.ts'

/** Names without quotes are taken in upper case. So that both say the same, small letters are quoted in capitals. */
function quoted(name: string): string {
  return identifier(/^[a-z_][a-z0-9_$]*$/.test(name) ? name.toUpperCase() : name)
}

const SYNTAX: Syntax = {
  types: {
    int64: 'NUMBER(19, 0)',
    text: 'VARCHAR',
    boolean: 'BOOLEAN',
    timestamp: 'TIMESTAMP_TZ(6)',
    list: 'ARRAY',
  },
  quoted,
  text: backslashed,
}

/**
 * Source: https://docs.snowflake.com/en/sql-reference/sql/copy-into-table, …/sql/create-file-format,
 * …/sql/create-iceberg-table-iceberg-files and …-delta
 */
export const snowflake: Dialect = {
  statements,
  sync,
  mounts: {
    iceberg: ({ root, version, which }, name) => {
      const table = identifier(name.toUpperCase())
      return `-- The Iceberg table. An external volume that may read ${root}/, and a catalog integration for files:
-- CREATE EXTERNAL VOLUME SPILLWAY_VOLUME STORAGE_LOCATIONS = ((NAME = 'lake' STORAGE_PROVIDER = 'S3' STORAGE_BASE_URL = ${backslashed(`${root}/`)} STORAGE_AWS_ROLE_ARN = 'arn:…')) ALLOW_WRITES = FALSE;
-- CREATE CATALOG INTEGRATION SPILLWAY_ICEBERG CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = ICEBERG ENABLED = TRUE;
-- ${which}
CREATE ICEBERG TABLE ${table}
  EXTERNAL_VOLUME = 'SPILLWAY_VOLUME'
  CATALOG = 'SPILLWAY_ICEBERG'
  METADATA_FILE_PATH = '_iceberg/${version}';
-- After every run:
ALTER ICEBERG TABLE ${table} REFRESH '_iceberg/${version}';`
    },
    delta: ({ root }, name) =>
      `-- The Delta table, with an external volume whose STORAGE_BASE_URL is ${root}/:
-- CREATE CATALOG INTEGRATION SPILLWAY_DELTA CATALOG_SOURCE = OBJECT_STORE TABLE_FORMAT = DELTA ENABLED = TRUE;
CREATE ICEBERG TABLE ${identifier(name.toUpperCase())}
  EXTERNAL_VOLUME = 'SPILLWAY_VOLUME'
  CATALOG = 'SPILLWAY_DELTA'
  BASE_LOCATION = '/'
  AUTO_REFRESH = TRUE;`,
  },
}

function statements(input: DdlInput): string {
  const { table, resource, extension } = input
  const pattern = `.*/${resource}/.*part-[0-9]+${extension.replaceAll('.', '[.]')}`
  return `-- Snowflake
${[...commentedTables(input, SYNTAX), ...stageOf(input, 'CREATE OR REPLACE STAGE')].join(';\n\n')};

${BY_HAND}
-- COPY remembers which files it has loaded (for 64 days).
COPY INTO ${quoted(table)} (${namesOf(input, quoted)})
FROM (SELECT ${termsOf(input).join(', ')} FROM @${quoted(`${table}_stage`)})
PATTERN = ${backslashed(pattern)};
`
}

/** Reads the missing files alone, a thousand at a time, by a pattern: only queries of a stage may use all functions. */
function sync(input: SyncInput): string {
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
    ...SYNTAX,
    tables: [
      ...commentedTables(input, SYNTAX),
      ...addColumns(input, quoted(table), SYNTAX),
      // Its integration is set by hand.
      ...stageOf(input, 'CREATE STAGE IF NOT EXISTS'),
      `CREATE OR REPLACE FILE FORMAT ${lines} TYPE = CSV FIELD_DELIMITER = NONE ESCAPE_UNENCLOSED_FIELD = NONE ENCODING = 'UTF8'`,
    ],
    listFrom: (json) => `PARSE_JSON(${json})`,
    match,
    lines: `SELECT $1 AS line FROM @${stage}/_manifest.json (FILE_FORMAT => ${backslashed(lines!)})`,
    makeList: (select) => [`CREATE OR REPLACE TEMPORARY TABLE ${list} AS\n${select}`],
    transaction: ['BEGIN TRANSACTION', 'COMMIT'],
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
    if (format.kind === 'parquet') return `$1:${identifier(name)}::${SYNTAX.types[type]}`
    return type === 'list' ? `PARSE_JSON($${index + 1})` : `$${index + 1}`
  })
}
