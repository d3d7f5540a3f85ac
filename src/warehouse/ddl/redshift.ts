import type { ColumnType } from '../../core/index.ts'
import { columnComments, identifier, literal } from '../table/table.ts'
import { bucketOf, type Dialect } from './dialect.ts'

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
  const lines = columns.map(
    ({ name, type, nullable }) => `  ${identifier(name)} ${TYPES[type]}${nullable ? '' : ' NOT NULL'}`,
  )
  const comments = columnComments(table, columns)
  const sort = columns.some(({ name }) => name === 'imported_at')
    ? `\nSORTKEY (${identifier('imported_at')})`
    : ''
  const hasLists = columns.some(({ type }) => type === 'list')
  const options =
    format.kind === 'parquet'
      ? `FORMAT AS PARQUET${hasLists ? ' SERIALIZETOJSON' : ''}`
      : ['CSV IGNOREHEADER 1', ...(format.compression === 'gzip' ? ['GZIP'] : []), `TIMEFORMAT 'auto'`].join(
          '\n',
        )
  const note =
    format.kind === 'csv'
      ? '-- Redshift cannot tell "" from null in CSV: empty texts become null or stay empty for the whole column (EMPTYASNULL).\n-- Parquet has no such trouble.\n'
      : '-- COPY takes the columns of Parquet by their position, so the table has to have them in this order.\n'
  return `-- Amazon Redshift
CREATE TABLE ${table} (
${lines.join(',\n')}
)${sort};
${comments.join('\n')}

${note}COPY ${table}
FROM ${literal(`${bucketOf(input)}/${resource}/`)}
IAM_ROLE default
${options};
`
}
