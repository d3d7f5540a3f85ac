import {
  ExportError,
  type Format,
  type PartitionBy,
  type RowKind,
  type TableFormat,
} from '../../core/index.ts'
import type { ColumnSpec, ColumnType } from '../../rows/index.ts'
import type { Manifest } from '../../state/index.ts'
import { OWN_COLUMNS } from '../table/table.ts'

export type DdlInput = {
  readonly pipeline: string
  /** What the rows are: the folder of the shards. */
  readonly resource: RowKind
  readonly table: string
  /** Those of the files, in their order. */
  readonly columns: readonly ColumnSpec[]
  /** Those of them that some shards lack: tables may be older. */
  readonly added: readonly ColumnSpec[]
  readonly format: Format
  /** `load.path` as the reader of the statement knows it. */
  readonly path: string
  /** `.parquet`, `.csv` or `.csv.gz` */
  readonly extension: string
  readonly partitionBy: readonly PartitionBy[]
}

export type SyncInput = DdlInput & {
  readonly manifest: Pick<Manifest, 'data_set_id' | 'shards'>
  /** The columns of each schema of the data set, by its number. */
  readonly schemas: readonly (readonly ColumnSpec[])[]
}

/** All that anybody asks of a dialect. */
export type Dialect = {
  /** The table, with comments, and the statement that loads or mounts the data set. */
  readonly statements: (input: DdlInput) => string
  /** The script that brings a table in line with the manifest. PostgreSQL is loaded by `load`, others mount the files. */
  readonly sync?: (input: SyncInput) => string
  /** How the engine reads a table over the shards. @param name of the table or view that it makes */
  readonly mounts?: Partial<Readonly<Record<TableFormat, (at: TableAddresses, name: string) => string>>>
}

type TableAddresses = {
  /** Of the data set, and of its Delta table. */
  readonly root: string
  /** Of its Iceberg table. */
  readonly iceberg: string
  /** The metadata of one version, below that. Engines without a catalog of files have to be told which. */
  readonly version: string
  /** Says what {@link version} leaves open. */
  readonly which: string
}

/** How an engine writes types, names and texts. */
export type Syntax = {
  readonly types: Readonly<Record<ColumnType, string>>
  readonly quoted: (name: string) => string
  readonly text: (plain: string) => string
}

/** For engines whose CSV is another one than RFC 4180. @throws ExportError `config` when the data set is in CSV */
export function overParquet<T extends DdlInput>(engine: string, write: (input: T) => string) {
  return (input: T): string => {
    if (input.format.kind === 'parquet') return write(input)
    throw new ExportError({
      kind: 'config',
      what: `${engine} does not read CSV as RFC 4180 has it: backslashes, quotes and line breaks would change values`,
      where: 'load.format',
      next: 'Export Parquet, to another load.path: load.format: parquet.',
    })
  }
}

/** Columns of a table that `load` or `ddl --sync` fills: its own are empty in rows that came another way. */
export function tableColumns(columns: readonly ColumnSpec[]): readonly ColumnSpec[] {
  return [...columns, ...OWN_COLUMNS.map((column) => ({ ...column, nullable: true }))]
}

/** `"name" TYPE COMMENT '…', …`, a column a line. @param notNull for those that are never null */
export function commentLines(
  columns: readonly ColumnSpec[],
  { types, quoted, text }: Syntax,
  notNull = '',
): string {
  return columns
    .map(
      ({ name, type, nullable, meaning }) =>
        `  ${quoted(name)} ${types[type]}${nullable ? '' : notNull} COMMENT ${text(meaning)}`,
    )
    .join(',\n')
}

export function namesOf({ columns }: Pick<DdlInput, 'columns'>, quoted: (name: string) => string): string {
  return columns.map(({ name }) => quoted(name)).join(', ')
}

export const BY_HAND =
  '-- Once, by hand. `ddl --sync` prints what keeps a table, empty at first, in line with the data set.'

/** Keys of the folders, in the order of paths. */
export function hiveColumns({ partitionBy }: DdlInput): readonly string[] {
  return [
    ...(partitionBy.includes('query') ? ['query'] : []),
    ...(partitionBy.includes('window') ? ['import_window'] : []),
  ]
}

export function shardGlob({ path, resource, extension }: DdlInput): string {
  return `${path}/${resource}/**/*${extension}`
}

/** Stands for a store that only the reader knows. */
export const BUCKET = 's3://YOUR-BUCKET/PREFIX'

/** The address of the data set in object storage: its own, or one that it has to be copied to. */
export function bucketOf({ path }: DdlInput): string {
  return path.startsWith('s3://') ? path : BUCKET
}

/** Single quotes; for engines in which a backslash is an escape. */
export function backslashed(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

/** A name in backticks; within it a backtick is doubled. */
export function backticked(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

/** A name in backticks, for engines in which a backslash is an escape there too. */
export function backtickedEscaped(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}
