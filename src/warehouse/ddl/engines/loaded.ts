import { stringify } from 'yaml'
import { rulesOf } from '../../../core/index.ts'
import {
  columnComments,
  columnLines,
  identifier,
  literal,
  POSTGRES_TYPES,
  postgresIndexes,
  replicaIdentity,
} from '../../table/table.ts'
import { type DdlInput, type Dialect, tableColumns } from '../dialect.ts'

/** Source: https://www.postgresql.org/docs/current/sql-copy.html */
export const postgres: Dialect = { statements }

function statements({ table, columns, format, path, resource }: DdlInput): string {
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

/** A source over the tables that `spillway load` makes. Source: https://docs.getdbt.com/reference/source-properties */
export const dbt: Dialect = {
  statements: ({ pipeline, table, resource, columns }) =>
    `# dbt: models/sources.yml, over the table that \`spillway load\` fills\n# schema: where that table is: public in PostgreSQL and main in DuckDB, if no --schema was given to load\n${stringify(
      {
        version: 2,
        sources: [
          {
            name: 'spillway',
            description: `Rows of the pipeline ${pipeline}`,
            schema: 'public',
            tables: [
              {
                name: table,
                description: `One row for each ${rulesOf(resource).each}`,
                ...(columns.some(({ name }) => name === 'imported_at')
                  ? { loaded_at_field: 'imported_at' }
                  : {}),
                columns: columns.map(({ name, meaning, nullable }) => ({
                  name,
                  description: meaning,
                  ...(nullable ? {} : { data_tests: ['not_null'] }),
                })),
              },
            ],
          },
        ],
      },
      { lineWidth: 0 },
    )}`,
}
