import { inGroups } from '../../../core/index.ts'
import type { ColumnSpec } from '../../../rows/index.ts'
import { MANIFEST_LINES, manifestLines } from '../../../state/index.ts'
import { columnComments, columnLines, identifier, literal } from '../../table/table.ts'
import {
  BY_HAND,
  bucketOf,
  type DdlInput,
  type Dialect,
  namesOf,
  type SyncInput,
  type Syntax,
  tableColumns,
} from '../dialect.ts'
import { ledgerTable, listOf, syncScript } from '../sync.ts'

const TYPES: Syntax['types'] = {
  int64: 'BIGINT',
  text: 'VARCHAR(65535)',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMPTZ',
  list: 'SUPER',
}
const SYNTAX: Syntax = { types: TYPES, quoted: identifier, text: literal }

/** Source: https://docs.aws.amazon.com/redshift/latest/dg/r_COPY.html and …/copy-usage_notes-copy-from-columnar.html */
export const redshift: Dialect = { statements, sync }

function statements(input: DdlInput): string {
  const { columns, format, resource } = input
  const table = identifier(input.table)
  const comments = columnComments(table, tableColumns(columns))
  const note =
    format.kind === 'csv'
      ? '-- Redshift cannot tell "" from null in CSV: empty texts become null or stay empty for the whole column (EMPTYASNULL).\n-- Parquet has no such trouble.\n'
      : '-- COPY takes the columns of Parquet by their position, so the table has to have them in this order.\n'
  const copy =
    input.added.length > 0
      ? '-- The shards do not all have the same columns: `ddl --sync` copies each with its own.'
      : `COPY ${table}
FROM ${literal(`${bucketOf(input)}/${resource}/`)}
IAM_ROLE default
${optionsOf(input)};`
  return `-- Amazon Redshift
${tableWith(columns, input)};

${BY_HAND}
${note}${copy}

${tableColumns([])
  .map(({ name, type }) => `ALTER TABLE ${table} ADD COLUMN ${identifier(name)} ${TYPES[type]};`)
  .join('\n')}
${comments.join('\n')}

${ledgerTable(SYNTAX)};
`
}

/** A shard after the other, each through a table that has the columns of its file alone, in their order. */
function sync(input: SyncInput): string {
  const { columns, schemas } = input
  const [table, list, lines, procedure] = [
    input.table,
    listOf(input.table),
    ...['lines', 'copy'].map((each) => `${input.table}_spillway_${each}`),
  ].map(identifier) as [string, string, string, string]
  const match = (text: string, pattern: string): string =>
    `REGEXP_SUBSTR(${text}, ${literal(pattern)}, 1, 1, 'e')`
  const { path, schema } = MANIFEST_LINES
  const stages = schemas.map((own, number) => {
    const stage = identifier(`${input.table}_spillway_stage${number === 0 ? '' : number}`)
    const names = namesOf({ columns: own }, identifier)
    const ofSchema = `SELECT ${match('line', path)} FROM ${lines} WHERE COALESCE(NULLIF(${match('line', schema)}, ''), '0') = '${number}'`
    const which = schemas.length === 1 ? '' : ` AND shard IN (${ofSchema})`
    return {
      create: [
        `DROP TABLE IF EXISTS ${stage}`,
        `CREATE TEMP TABLE ${stage} (\n${columnLines(own, TYPES)}\n)`,
      ],
      loop: `  FOR missing IN SELECT data_set, shard FROM ${list} WHERE state = 'missing'${which} LOOP
    DELETE FROM ${stage};
    EXECUTE ${literal(`COPY ${stage} FROM `)} || quote_literal(${literal(`${bucketOf(input)}/`)} || missing.shard) || ${literal(` IAM_ROLE default ${optionsOf({ ...input, columns: own })}`)};
    INSERT INTO ${table} (${names}, spillway_data_set, spillway_shard)
    SELECT ${names}, missing.data_set, missing.shard FROM ${stage};
  END LOOP;`,
    }
  })
  // It has no ADD COLUMN IF NOT EXISTS.
  const added = input.added.map(
    ({ name, type }) =>
      `  IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = ${literal(table)}::regclass AND attname = ${literal(name)}) THEN
    EXECUTE ${literal(`ALTER TABLE ${table} ADD COLUMN ${identifier(name)} ${TYPES[type]}`)};
  END IF;`,
  )
  return syncScript(input, {
    ...SYNTAX,
    tables: [
      tableWith(tableColumns(columns), input, ' IF NOT EXISTS'),
      ledgerTable(SYNTAX),
      `DROP TABLE IF EXISTS ${lines}`,
      ...stages.flatMap(({ create }) => create),
      `CREATE TEMP TABLE ${lines} (line VARCHAR(65535))`,
      ...Array.from(inGroups(manifestLines(input.manifest), LINES_AT_ONCE)).map(
        (some) => `INSERT INTO ${lines} VALUES\n${some.map((line) => `  (${literal(line)})`).join(',\n')}`,
      ),
      `CREATE OR REPLACE PROCEDURE ${procedure}() AS $$
DECLARE
  missing RECORD;
BEGIN
${[...added, ...stages.map(({ loop }) => loop)].join('\n')}
END;
$$ LANGUAGE plpgsql`,
    ],
    listFrom: (json) => `JSON_PARSE(${json})`,
    match,
    lines: `SELECT line FROM ${lines}`,
    makeList: (select) => [`DROP TABLE IF EXISTS ${list}`, `CREATE TEMP TABLE ${list} AS\n${select}`],
    transaction: ['BEGIN', 'COMMIT'],
    copy: [`CALL ${procedure}()`],
    now: 'SYSDATE',
  })
}

const LINES_AT_ONCE = 1000

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
