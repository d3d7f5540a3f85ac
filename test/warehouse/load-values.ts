import { createHash } from 'node:crypto'
import type { ColumnSpec, ColumnType } from '../../src/rows/index.ts'
import type { Manifest } from '../../src/state/index.ts'
import {
  type LoadMode,
  type LoadResult,
  loadDataSet,
  PostgresWarehouse,
  type Warehouse,
} from '../../src/warehouse/index.ts'
import { literal, OWN_COLUMNS, type TableSpec } from '../../src/warehouse/table/table.ts'
import { PASSWORD, pgRows } from '../support/postgres/client.ts'

/** Shards that a test makes up, by path: a row of VALUES for each of their rows, without the two last columns. */
type MadeUp = Readonly<Record<string, readonly string[]>>

type LoadValues = {
  readonly dataSet?: string
  readonly mode?: LoadMode
  readonly loadedAt?: string
  /** Called before the manifest is read, within a transaction. */
  readonly onManifest?: () => Promise<void>
  /** Called before a shard is there. */
  readonly onDownload?: (path: string) => Promise<void>
}

export const columnOf = (name: string, type: ColumnType = 'text'): ColumnSpec => ({
  name,
  type,
  nullable: true,
  meaning: name,
})

/** A table of credentials with these columns, and those of Spillway. */
export const tableWith = (
  columns: readonly ColumnSpec[],
  { schema = null, name = 'credentials' }: Partial<TableSpec> = {},
): TableSpec => ({ schema, name, resource: 'credentials', columns: [...columns, ...OWN_COLUMNS] })

/** Connects to a database of a test. @param onWait called when a load waits for another one */
export function postgresAt(url: string, onWait: () => void = () => {}): Promise<PostgresWarehouse> {
  process.env.PGPASSWORD = PASSWORD
  return PostgresWarehouse.connect(url, url, { stop: new AbortController().signal, onWait })
}

/** Loads made-up shards as `load` does with those of a manifest. A path with other rows has other bytes. */
export function loadValues(
  warehouse: Warehouse,
  table: TableSpec,
  shards: MadeUp,
  {
    dataSet = 'd',
    mode = 'append',
    loadedAt = '2024-07-01T00:00:00.123Z',
    onManifest = async () => {},
    onDownload = async () => {},
  }: LoadValues = {},
): Promise<LoadResult> {
  const bytesOf = (path: string) => Buffer.from(JSON.stringify(shards[path]))
  const listed = Object.entries(shards).map(([path, rows]) => ({
    path,
    sha256: createHash('sha256').update(bytesOf(path)).digest('hex'),
    rows: rows.length,
    bytes: bytesOf(path).length,
    partitions: [path],
    imported_at: null,
  }))
  return loadDataSet(warehouse, {
    manifest: async () => {
      await onManifest()
      return { data_set_id: dataSet, pipeline: 'trial', shards: listed } as unknown as Manifest
    },
    shards: {
      store: {
        size: async (path) => bytesOf(path).length,
        async *stream(path) {
          yield bytesOf(path)
        },
      },
      download: onDownload,
      release: async () => {},
    },
    table,
    mode,
    evolve: false,
    supersede: null,
    loadedAt,
    rowsOf: (_, some) => {
      const rows = some.flatMap(({ path }) =>
        shards[path]!.map((row) => `(${row}, ${literal(dataSet)}, ${literal(path)})`),
      )
      return `SELECT * FROM (VALUES ${rows.join(', ')})`
    },
    stop: new AbortController().signal,
    onShard: () => {},
  })
}

/** The same into a database of a test, over a connection of its own. */
export async function loadInto(
  url: string,
  ...given: Tail<Parameters<typeof loadValues>>
): Promise<LoadResult> {
  const warehouse = await postgresAt(url)
  try {
    return await loadValues(warehouse, ...given)
  } finally {
    await warehouse.close()
  }
}
type Tail<T extends readonly unknown[]> = T extends readonly [unknown, ...infer Rest] ? Rest : never

/** Changes a setting of all later sessions of a database. */
export async function setInDatabase(url: string, setting: string): Promise<void> {
  await pgRows(
    url,
    `do $$ begin execute format('alter database %I set ${setting}', current_database()); end $$`,
  )
}
