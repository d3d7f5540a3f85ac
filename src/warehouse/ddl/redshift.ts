import type { ColumnSpec, ColumnType } from '../../rows/index.ts'
import { manifestLines } from '../../state/index.ts'
import { columnComments, columnLines, identifier, literal } from '../table/table.ts'
import {
  BY_HAND,
  bucketOf,
  type DdlInput,
  type Dialect,
  namesOf,
  type SyncDialect,
  tableColumns,
} from './dialect.ts'
import { ledgerTable, listOf, syncScript } from './sync.ts'

const TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'BIGINT',
  text: 'VARCHAR(65535)',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMPTZ',
  list: 'SUPER',
}

/** Source: https://docs.aws.amazon.com/redshift/latest/dg/r_COPY.html and …/copy-usage_notes-copy-from-columnar.html */
export const redshift: Dialect = (input) => {
  const { columns, format, resource } = input
  const table = identifier(input.table)
  const comments = columnComments(table, tableColumns(columns))
  const note =
    format.kind === 'csv'
      ? '-- Redshift cannot tell "" from null in CSV: empty texts become null or stay empty for the whole column (EMPTYASNULL).\n-- Parquet has no such trouble.\n'
      : '-- COPY takes the columns of Parquet by their position, so the table has to have them in this order.\n'
  return `-- Amazon Redshift
${tableWith(columns, input)};

${BY_HAND}
${note}COPY ${table}
FROM ${literal(`${bucketOf(input)}/${resource}/`)}
IAM_ROLE default
${optionsOf(input)};

${tableColumns([])
  .map(({ name, type }) => `ALTER TABLE ${table} ADD COLUMN ${identifier(name)} ${TYPES[type]};`)
  .join('\n')}
${comments.join('\n')}

${ledgerTable(TYPES, identifier)};
`
}

/** A shard after the other, each through a table that has the columns of the files alone. */
export const redshiftSync: SyncDialect = (input) => {
  const { columns } = input
  const [list, stage, lines, procedure] = [
    listOf(input.table),
    ...['stage', 'lines', 'copy'].map((each) => `${input.table}_spillway_${each}`),
  ].map(identifier)
  const names = namesOf(input, identifier)
  const match = (text: string, pattern: string): string =>
    `REGEXP_SUBSTR(${text}, ${literal(pattern)}, 1, 1, 'e')`
  const copyEnd = ` IAM_ROLE default ${optionsOf(input)}`
  return syncScript(input, {
    tables: [
      tableWith(tableColumns(columns), input, ' IF NOT EXISTS'),
      ledgerTable(TYPES, identifier),
      ...[lines, stage].map((each) => `DROP TABLE IF EXISTS ${each}`),
      `CREATE TEMP TABLE ${stage} (\n${columnLines(columns, TYPES)}\n)`,
      `CREATE TEMP TABLE ${lines} (line VARCHAR(65535))`,
      ...batches(manifestLines(input.manifest)).map(
        (some) => `INSERT INTO ${lines} VALUES\n${some.map((line) => `  (${literal(line)})`).join(',\n')}`,
      ),
      `CREATE OR REPLACE PROCEDURE ${procedure}() AS $$
DECLARE
  missing RECORD;
BEGIN
  FOR missing IN SELECT data_set, shard FROM ${list} WHERE state = 'missing' LOOP
    DELETE FROM ${stage};
    EXECUTE ${literal(`COPY ${stage} FROM `)} || quote_literal(${literal(`${bucketOf(input)}/`)} || missing.shard) || ${literal(copyEnd)};
    INSERT INTO ${identifier(input.table)} (${names}, spillway_data_set, spillway_shard)
    SELECT ${names}, missing.data_set, missing.shard FROM ${stage};
  END LOOP;
END;
$$ LANGUAGE plpgsql`,
    ],
    types: TYPES,
    quoted: identifier,
    text: literal,
    listFrom: (json) => `JSON_PARSE(${json})`,
    into: identifier,
    match,
    lines: `SELECT line FROM ${lines}`,
    list: list!,
    makeList: (select) => [`DROP TABLE IF EXISTS ${list}`, `CREATE TEMP TABLE ${list} AS\n${select}`],
    begin: 'BEGIN',
    commit: 'COMMIT',
    copy: [`CALL ${procedure}()`],
    now: 'SYSDATE',
  })
}

const LINES_AT_ONCE = 1000

function batches(lines: readonly string[]): readonly (readonly string[])[] {
  const starts = Array.from({ length: Math.ceil(lines.length / LINES_AT_ONCE) }, (_, i) => i * LINES_AT_ONCE)
  return starts.map((start) => lines.slice(start, start + LINES_AT_ONCE))
}

function tableWith(columns: readonly ColumnSpec[], { table }: DdlInput, ifMissing = ''): string {
  const sort = columns.some(({ name }) => name === 'imported_at')
    ? `\nSORTKEY (${identifier('imported_at')})`
    : ''
  return `CREATE TABLE${ifMissing} ${identifier(table)} (\n${columnLines(columns, TYPES)}\n)${sort}`
}

function optionsOf({ columns, format }: DdlInput): string {
  const hasLists = columns.some(({ type }) => type === 'list')
  if (format.kind === 'parquet') return `FORMAT AS PARQUET${hasLists ? ' SERIALIZETOJSON' : ''}`
  const gzip = format.compression === 'gzip' ? ['GZIP'] : []
  return ['CSV IGNOREHEADER 1', ...gzip, `TIMEFORMAT 'auto'`].join('\n')
}
