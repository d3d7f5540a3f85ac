import type { ColumnType } from '../../core/index.ts'
import { identifier, literal } from '../table/table.ts'
import { bucketOf, type Dialect } from './dialect.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'NUMBER(19, 0)',
  text: 'VARCHAR',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP_TZ(6)',
  list: 'ARRAY',
}

/**
 * A quoted name is taken as it is written, one without quotes in upper case: so that both say the same, names of small
 * letters are quoted in capitals.
 */
function quoted(name: string): string {
  return identifier(/^[a-z_][a-z0-9_$]*$/.test(name) ? name.toUpperCase() : name)
}

/**
 * Source: https://docs.snowflake.com/en/sql-reference/sql/copy-into-table and …/sql/create-file-format: timestamps of
 * Parquet come right with USE_LOGICAL_TYPE only; backslashes in CSV are escapes unless ESCAPE_UNENCLOSED_FIELD is NONE,
 * and \N and the empty string null unless NULL_IF is empty.
 */
export const snowflake: Dialect = (input) => {
  const { table, columns, format, resource, extension } = input
  const lines = columns.map(
    ({ name, type, nullable, meaning }) =>
      `  ${quoted(name)} ${TYPES[type]}${nullable ? '' : ' NOT NULL'} COMMENT ${literal(meaning)}`,
  )
  const pattern = `.*/${resource}/.*part-[0-9]+${extension.replaceAll('.', '[.]')}`
  const names = columns.map(({ name }) => quoted(name)).join(', ')
  const [stageName, formatName] = [quoted(`${table}_stage`), quoted(`${table}_format`)]
  const stage = `CREATE OR REPLACE STAGE ${stageName}
  URL = ${literal(`${bucketOf(input)}/`)}
  -- STORAGE_INTEGRATION = …
  FILE_FORMAT = (FORMAT_NAME = ${literal(formatName)});`
  const isParquet = format.kind === 'parquet'
  const terms = columns.map(({ name, type }, index) => {
    if (isParquet) return `$1:${identifier(name)}::${type === 'list' ? 'ARRAY' : TYPES[type]}`
    return type === 'list' ? `PARSE_JSON($${index + 1})` : `$${index + 1}`
  })
  const fileFormat = isParquet
    ? `-- Without USE_LOGICAL_TYPE timestamps would be read as plain numbers.
CREATE OR REPLACE FILE FORMAT ${formatName} TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE;`
    : `-- NULL_IF = () and EMPTY_FIELD_AS_NULL tell null from ""; without ESCAPE_UNENCLOSED_FIELD = NONE a backslash would change values.
CREATE OR REPLACE FILE FORMAT ${formatName} TYPE = CSV SKIP_HEADER = 1
  FIELD_OPTIONALLY_ENCLOSED_BY = '"' NULL_IF = () EMPTY_FIELD_AS_NULL = TRUE
  ESCAPE = NONE ESCAPE_UNENCLOSED_FIELD = NONE
  COMPRESSION = ${format.compression === 'gzip' ? 'GZIP' : 'NONE'} ENCODING = 'UTF8';`
  return `-- Snowflake
CREATE TABLE ${quoted(table)} (
${lines.join(',\n')}
);

${fileFormat}
${stage}

-- COPY remembers which files it has loaded (for 64 days).
COPY INTO ${quoted(table)} (${names})
FROM (SELECT ${terms.join(', ')} FROM @${stageName})
PATTERN = ${literal(pattern)};
`
}
