import { ExportError, kindOfRows, type Pipeline, type Resource } from '../../core/index.ts'
import { type ColumnSpec, type ColumnType, columnsOf } from '../../rows/index.ts'

export type TableSpec = {
  /** DuckDB: the name of the opened file, which may be that of a schema too. `find` adds it. */
  readonly catalog?: string
  /** null: the default of the connection, until `find` has resolved it. */
  readonly schema: string | null
  readonly name: string
  readonly resource: Resource
  /** The columns of the rows, in their order, then {@link OWN_COLUMNS}. */
  readonly columns: readonly ColumnSpec[]
}

export const DATA_SET_COLUMN: ColumnSpec = {
  name: 'spillway_data_set',
  type: 'text',
  nullable: false,
  meaning: 'identity of the data set that the row came in: data_set_id of its manifest',
}

export const SHARD_COLUMN: ColumnSpec = {
  name: 'spillway_shard',
  type: 'text',
  nullable: false,
  meaning: 'path of the shard that the row came in; spillway_loads lists the partitions of a shard',
}

/** Columns that every table has after those of the rows. */
export const OWN_COLUMNS: readonly ColumnSpec[] = [DATA_SET_COLUMN, SHARD_COLUMN]

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

/** What is looked up most: an index adds a third to a load. A B-tree takes at most 2,704 bytes. @param name quoted */
export function postgresIndexes(name: string, columns: readonly ColumnSpec[]): readonly string[] {
  return ['USING hash (identity_name)', '(domain)', '(imported_at)']
    .filter((index) => columns.some((column) => index.includes(`(${column.name})`)))
    .map((index) => `CREATE INDEX ON ${name} ${index}`)
}

/** Logical replication sends deletions only of tables that say how a row is found. */
export function replicaIdentity(name: string): string {
  return `ALTER TABLE ${name} REPLICA IDENTITY FULL`
}

/** The name of the ledger, in the schema of the tables. */
export const LEDGER = 'spillway_loads'

export const VIEW_ENDINGS = {
  latest: '_latest',
  bySource: '_by_source',
  byDomainMonth: '_by_domain_month',
} as const

// PostgreSQL cuts longer names without an error. Two names could become one.
const POSTGRES_MAX_BYTES = 63

/** @throws ExportError `config` when a name is empty, too long for the database, or the ledger's */
export function requireNames(
  kind: 'duckdb' | 'postgres',
  { schema, table }: { readonly schema: string | null; readonly table: string | null },
): void {
  if (schema === '') throw noName('--schema', 'The name of the schema is empty', LEFT_OUT)
  if (table === '') throw noName('--table', 'The name of the table is empty', LEFT_OUT)
  if (table?.toLowerCase() === LEDGER)
    throw noName('--table', `${LEDGER} is the table that says what is loaded`, OTHER)
  if (kind === 'duckdb') return
  const longest = Math.max(...Object.values(VIEW_ENDINGS).map((ending) => ending.length))
  requireShort('--schema', schema, POSTGRES_MAX_BYTES, '')
  const views = `, as the views beside it get names of up to ${longest} bytes more`
  requireShort('--table', table, POSTGRES_MAX_BYTES - longest, views)
}

const LEFT_OUT = 'Name one, or leave the flag out.'
const OTHER = 'Choose another name.'

function requireShort(flag: string, name: string | null, max: number, why: string): void {
  const bytes = Buffer.byteLength(name ?? '')
  if (bytes <= max) return
  throw noName(
    flag,
    `The name has ${bytes} bytes, and PostgreSQL takes ${POSTGRES_MAX_BYTES}: ${max} are left for it${why}`,
    OTHER,
  )
}

function noName(flag: string, what: string, next: string): ExportError {
  return new ExportError({ kind: 'config', what, where: flag, next })
}

/** The table that a pipeline's rows go to. @param name null: `credentials` or `reports` */
export function tableOf(pipeline: Pipeline, schema: string | null, name: string | null): TableSpec {
  const columns = [...columnsOf(pipeline), ...OWN_COLUMNS]
  const { resource } = pipeline.extract
  return { schema, name: name ?? kindOfRows(resource), resource, columns }
}

export function rowColumns({ columns }: TableSpec): readonly ColumnSpec[] {
  return columns.slice(0, -OWN_COLUMNS.length)
}

export function hasColumns({ columns }: TableSpec, ...names: string[]): boolean {
  return names.every((wanted) => columns.some(({ name }) => name === wanted))
}

/** `"catalog"."schema"."name"`, without those that are not set: standard SQL, as DuckDB and PostgreSQL take it. */
export function qualified({ catalog, schema }: Pick<TableSpec, 'catalog' | 'schema'>, name: string): string {
  return [catalog ?? null, schema, name]
    .filter((part) => part !== null)
    .map(identifier)
    .join('.')
}

/** A name as people write it, for messages. */
export function shownName({ schema }: Pick<TableSpec, 'schema'>, name: string): string {
  return schema === null ? name : `${schema}.${name}`
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Single quotes; for engines in which a backslash means nothing. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** A path as DuckDB's readers take it, which would read it as a pattern. */
export function duckdbPath(path: string): string {
  return path.replace(/[[*?]/g, '[$&]')
}

/** Statements that comment the columns of a table. @param table quoted */
export function columnComments(table: string, columns: readonly ColumnSpec[]): readonly string[] {
  return columns.map(
    ({ name, meaning }) => `COMMENT ON COLUMN ${table}.${identifier(name)} IS ${literal(meaning)};`,
  )
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
