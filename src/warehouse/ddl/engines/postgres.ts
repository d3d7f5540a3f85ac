import {
  columnComments,
  columnLines,
  identifier,
  literal,
  POSTGRES_TYPES,
  postgresIndexes,
  replicaIdentity,
} from '../../table/table.ts'
import { type Dialect, tableColumns } from '../dialect.ts'

/** Source: https://www.postgresql.org/docs/current/sql-copy.html */
export const postgres: Dialect = ({ table, columns, format, path, resource }) => {
  const name = identifier(table)
  const hasLists = columns.some(({ type }) => type === 'list')
  const all = tableColumns(columns)
  const comments = columnComments(name, all)
  const indexes = [replicaIdentity(name), ...postgresIndexes(name, columns)].map((sql) => `${sql};`)
  const load =
    format.kind === 'parquet'
      ? `-- PostgreSQL does not read Parquet. \`spillway load --to postgres://…\` loads each shard once; or export CSV.`
      : [
          `-- One shard, in psql (lists come as JSON text${hasLists ? ', so such a column has to be text here' : ''}):`,
          `-- \\copy ${name} (${columns.map((column) => identifier(column.name)).join(', ')}) FROM ${literal(`${path}/${resource}/…/part-00000.csv`)} WITH (FORMAT csv, HEADER true)`,
          ...(format.compression === 'gzip'
            ? ["-- (FROM PROGRAM 'gzip -dc <file>' for compressed ones)"]
            : []),
          '-- `spillway load --to postgres://…` does this for every shard, each once.',
        ].join('\n')
  return `-- PostgreSQL 14 or newer
CREATE TABLE ${name} (
${columnLines(all, POSTGRES_TYPES)}
);
${[...comments, ...indexes].join('\n')}

${load}
`
}
