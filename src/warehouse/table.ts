import { type ColumnSpec, type ColumnType, columnsNamed, type Pipeline } from '../core/index.ts'

/** A table of the warehouse as the rows of a data set need it. */
export type TableSpec = {
  /** null: where the connection's own default points. */
  readonly schema: string | null
  readonly name: string
  /** Those of the rows, in their order, and then {@link PARTITION_COLUMN}. */
  readonly columns: readonly ColumnSpec[]
}

/** What every table has besides the rows' own columns. */
export const PARTITION_COLUMN: ColumnSpec = {
  name: 'spillway_partition',
  type: 'text',
  nullable: false,
  meaning: 'partition of the data set that the row came in: query/window',
}

export const DUCKDB_TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'BIGINT',
  text: 'VARCHAR',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  list: 'VARCHAR[]',
}

export const POSTGRES_TYPES: Readonly<Record<ColumnType, string>> = {
  int64: 'bigint',
  text: 'text',
  boolean: 'boolean',
  timestamp: 'timestamp with time zone',
  list: 'text[]',
}

/** Looked up most often; an index costs a third of a load, and a table without them is of little use. */
export const POSTGRES_INDEXED: readonly string[] = ['identity_name', 'domain', 'imported_at']

/** The table that a pipeline's rows go to. @param name null: `credentials` or `reports` */
export function tableOf(
  { extract, transform }: Pipeline,
  schema: string | null,
  name: string | null,
): TableSpec {
  const columns = columnsNamed(extract.resource, extract.include, transform.columns)
  return { schema, name: name ?? extract.resource, columns: [...columns, PARTITION_COLUMN] }
}

export function hasColumns({ columns }: TableSpec, ...names: string[]): boolean {
  return names.every((wanted) => columns.some(({ name }) => name === wanted))
}

/** `"schema"."name"`, or `"name"`: standard SQL, as DuckDB and PostgreSQL take it. */
export function qualified({ schema }: Pick<TableSpec, 'schema'>, name: string): string {
  return schema === null ? identifier(name) : `${identifier(schema)}.${identifier(name)}`
}

/** Double quotes. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Single quotes; for engines in which a backslash means nothing. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** `"name" TYPE NOT NULL, …`, a column a line. */
export function columnLines(
  columns: readonly ColumnSpec[],
  types: Readonly<Record<ColumnType, string>>,
  quote: (name: string) => string = identifier,
): string {
  return columns
    .map(({ name, type, nullable }) => `  ${quote(name)} ${types[type]}${nullable ? '' : ' NOT NULL'}`)
    .join(',\n')
}
