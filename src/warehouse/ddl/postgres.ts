import {
  columnComments,
  columnLines,
  identifier,
  literal,
  POSTGRES_INDEXED,
  POSTGRES_TYPES,
} from '../table/table.ts'
import type { Dialect } from './dialect.ts'

/** Source: https://www.postgresql.org/docs/current/sql-copy.html */
export const postgres: Dialect = ({ table, columns, format, path, resource }) => {
  const name = identifier(table)
  const hasLists = columns.some(({ type }) => type === 'list')
  const comments = columnComments(name, columns)
  const indexes = POSTGRES_INDEXED.filter((wanted) => columns.some(({ name }) => name === wanted)).map(
    (column) => `CREATE INDEX ON ${name} (${identifier(column)});`,
  )
  const load =
    format.kind === 'parquet'
      ? `-- PostgreSQL does not read Parquet. \`spillway load --to postgres://…\` loads each shard once; or export CSV.`
      : [
          `-- One shard, in psql (lists come as JSON text${hasLists ? ', so such a column has to be text here' : ''}):`,
          `-- \\copy ${name} FROM ${literal(`${path}/${resource}/…/part-00000.csv`)} WITH (FORMAT csv, HEADER true)`,
          ...(format.compression === 'gzip'
            ? ["-- (FROM PROGRAM 'gzip -dc <file>' for compressed ones)"]
            : []),
          '-- `spillway load --to postgres://…` does this for every shard, each once.',
        ].join('\n')
  return `-- PostgreSQL 14 or newer
CREATE TABLE ${name} (
${columnLines(columns, POSTGRES_TYPES)}
);
${[...comments, ...indexes].join('\n')}

${load}
`
}
