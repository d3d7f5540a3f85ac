import { stringify } from 'yaml'
import { rulesOf } from '../../../core/index.ts'
import type { Dialect } from '../dialect.ts'

/** A source over the tables that `spillway load` makes. Source: https://docs.getdbt.com/reference/source-properties */
export const dbt: Dialect = ({ pipeline, table, resource, columns }) =>
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
  )}`
