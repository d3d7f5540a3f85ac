import { createHash } from 'node:crypto'
import {
  type CatalogSettings,
  type Compacted,
  ExportError,
  type OwnedStore,
  type TableSettings as Settings,
  type Store,
  standsFor,
  type TableFormat,
} from '../core/index.ts'
import type { ColumnSpec, ColumnStatistics } from '../rows/index.ts'

export const ICEBERG_FOLDER = '_iceberg'
export const METADATA_FOLDER = `${ICEBERG_FOLDER}/metadata`
export const DELTA_FOLDER = '_delta_log'

/** A data set may read, change and remove its own tables alone. */
export type TableOwner = {
  /** null: of a data set whose state cannot be read; any table of Spillway may be its own. */
  readonly dataSetId: string | null
}

export type TableSettings = Settings & TableOwner

/** Current metadata as the data set wrote it, or was about to: a version, and the digest of all files that it names. */
export type TableMark = { readonly version: number; readonly sha256: string }

/** The state of a data set keeps what was current before its last commit, and what that made current. */
export type TableMarks = ReadonlyMap<TableFormat, readonly TableMark[]>

/** A shard as the manifest lists it. No path is used twice. */
export type TableShard = Compacted & {
  readonly rows: number
  readonly bytes: number
  /** In hex. */
  readonly sha256: string
}

export function catalogTable({ namespace, table }: CatalogSettings): string {
  return [...namespace, table].join('.')
}

export type TableContent = {
  readonly columns: readonly ColumnSpec[]
  readonly shards: readonly TableShard[]
  /** In hex. */
  readonly manifestSha256: string
  /** When people were last forgotten, epoch ms; null: never. */
  readonly forgottenMs: number | null
  /** Of the run that changed shards; null: another command did, or it is not known. */
  readonly runId: string | null
}

/** Reads the footer of a shard: all columns but lists. */
export type ReadStatistics = (shard: TableShard) => Promise<readonly ColumnStatistics[]>

export type TableState = {
  readonly format: TableFormat
  /** Address of the table's root. */
  readonly location: string
  /** Number of the current snapshot. In Delta it is the version. */
  readonly snapshot: number
  readonly shards: ReadonlyMap<string, TableShard>
  /** Address of the current metadata, for catalogs; null: the format has no such file. */
  readonly metadataLocation: string | null
}

/** Of a data set that has begun. */
export type OwnTableSettings = TableSettings & { readonly dataSetId: string }

export type TableUpdate = {
  readonly statisticsOf: ReadStatistics
  readonly nowMs: number
  readonly warn: (message: string) => void
  /** null: begins the table anew, whatever it holds. */
  readonly marks: readonly TableMark[] | null
  /** Called with what may be current from now on, before a commit. */
  readonly keepMarks: (marks: readonly TableMark[]) => Promise<void>
}

export type UpdatedTable = {
  readonly state: TableState
  /** Removes the metadata that no snapshot needs any more, and what a crash left. */
  removeExpired(): Promise<void>
}

export type OpenTable = {
  /**
   * @param marks null: it is taken as it is
   * @throws ExportError `config`: other addresses; `storage`: others committed; `damaged`: not as it was written
   */
  read(store: Store, settings: TableSettings, marks: readonly TableMark[] | null): Promise<TableState | null>
  /**
   * Commits what the table lacks and what it has to lose, if there is anything; one that is damaged begins anew.
   * @returns null: another commit has the version
   */
  update(
    store: OwnedStore,
    settings: OwnTableSettings,
    content: TableContent,
    update: TableUpdate,
  ): Promise<UpdatedTable | null>
  /** Whether what stands in its place is the data set's own, whole or not; null: nothing is there. */
  isOwn(store: Store, owner: TableOwner): Promise<boolean | null>
  /** Removes the data set's own table, oldest metadata first. */
  remove(store: OwnedStore): Promise<void>
}

/** Digests of files by their paths. */
export type Digests = ReadonlyMap<string, string>

export function sha256Of(chunks: Iterable<Uint8Array | string>): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

export function markOf(version: number, files: Digests): TableMark {
  return { version, sha256: sha256Of([...files].map((file) => `${file.join(' ')}\n`).sort()) }
}

/**
 * A table is what its data set would write today: this tells damage, and what others did.
 * @throws ExportError `storage`: a later version is there than was ever written; `damaged`: the metadata differs
 */
export function requireMarked(path: string, found: TableMark, marks: readonly TableMark[]): void {
  const isWritten = ({ version, sha256 }: TableMark) => version === found.version && sha256 === found.sha256
  if (!marks.some(isWritten)) throw damagedTable(path, null)
}

/** @throws ExportError `storage` */
export function requireNotLater(path: string, version: number, marks: readonly TableMark[] | null): void {
  if (marks?.every((mark) => mark.version < version)) throw committedByOthers(path)
}

/** Bounds that metadata repeats. The value of a query may be an identity, a field that nobody documents anything. */
const WITH_BOUNDS: ReadonlySet<string> = new Set([
  'id',
  'domain',
  'imported_at',
  'source_id',
  'source_breached_at',
  'source_leaked_at',
  'query_type',
  'created_at',
  'published_at',
  'updated_at',
])

export function withBounds(statistics: readonly ColumnStatistics[]) {
  return statistics.flatMap(({ bounds, ...column }) =>
    bounds !== null && WITH_BOUNDS.has(column.name) ? [{ ...column, bounds }] : [],
  )
}

const REBUILD = '`spillway tables <pipeline.yaml> --rebuild`'

export function foreignTable(where: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'Another program or another data set has made what stands where the table would',
    where,
    next: 'Move it away, leave the format out of load.table_formats, or choose another load.path; nothing was changed.',
  })
}

export function committedByOthers(where: string): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'Another program has committed to the table, so it is not changed',
    where,
    next: `Undo that commit, or make the table anew without it: ${REBUILD}; then repeat the command. Rows are not concerned; files that the table names stay until then.`,
  })
}

export function damagedTable(where: string, cause: unknown): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'The metadata of the table is not as it was written',
    where,
    next: 'Any command that changes the data set writes it anew, such as `spillway tables <pipeline.yaml>`. Rows are not concerned.',
    cause,
  })
}

export function movedTable(where: string, was: string, is: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The Iceberg table names shards below ${was}, and the data set is at ${is}`,
    where,
    next: `Set load.table_location to where readers see the data set; if that has changed, ${REBUILD} names the shards there, in one snapshot, and ends older ones.`,
  })
}

/** Whether shards hold the same rows as those that they replace, since these were compacted. */
export function isCompaction(
  added: readonly (Compacted & { readonly rows: number })[],
  removed: readonly { readonly path: string; readonly rows: number }[],
): boolean {
  return (
    added.length > 0 &&
    added.every(({ stands_for }) => stands_for !== undefined) &&
    removed.every(({ path }) => added.some((shard) => standsFor(shard, path))) &&
    sum(added, 'rows') === sum(removed, 'rows')
  )
}

export function sum<K extends string>(items: readonly Readonly<Record<K, number>>[], key: K): number {
  return items.reduce((total, item) => total + item[key], 0)
}
