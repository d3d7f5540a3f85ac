import { join } from 'node:path'
import { ExportError, kindOfRows } from '../../../core/index.ts'
import { columnsOf } from '../../../rows/index.ts'
import { type Manifest, temporaryFolder } from '../../../state/index.ts'
import {
  dataSetRows,
  parseTarget,
  type QueryOptions,
  type QueryRow,
  type QuerySource,
  type QueryStream,
  queryDataSet as query,
} from '../../../warehouse/index.ts'
import type { DataSet } from '../../data-set.ts'
import { localShards } from './local-shards.ts'

export type { QueryStream } from '../../../warehouse/index.ts'

export type QuerySettings = {
  /** `duckdb:<file>`; null: the files */
  readonly database: string | null
  readonly cwd: string
  readonly stop?: AbortSignal
}

export type QueryResult = {
  readonly columns: readonly string[]
  readonly rows: readonly QueryRow[]
}

/** {@link streamQuery} for results that fit into memory. */
export function queryDataSet(dataSet: DataSet, sql: string, settings: QuerySettings): Promise<QueryResult> {
  return streamQuery(dataSet, sql, settings, collected)
}

/** The same for the shards of a manifest, which stay meanwhile. */
export function queryListed(
  dataSet: DataSet,
  manifest: Manifest,
  sql: string,
  stop: AbortSignal,
): Promise<QueryResult> {
  return withTemporary(stop, (options) => queryShards(dataSet, manifest, sql, options, collected))
}

async function collected({ columns, batches }: QueryStream): Promise<QueryResult> {
  const rows: QueryRow[] = []
  for await (const batch of batches) for (const row of batch) rows.push(row)
  return { columns, rows }
}

/**
 * Queries the view `credentials` (or `reports`), or a DuckDB file into which the shards were loaded.
 * @throws ExportError `config` when nothing is exported, or the SQL does more than read; `damaged`; the reason of `stop`
 */
export function streamQuery<T>(
  dataSet: DataSet,
  sql: string,
  { database, cwd, stop = new AbortController().signal }: QuerySettings,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  let isTaken = false
  const once = (result: QueryStream): Promise<T> => {
    isTaken = true
    return take(result)
  }
  return withTemporary(stop, (options) =>
    database === null
      ? dataSet.reading(
          (manifest) => queryShards(dataSet, manifest, sql, options, once),
          () => !isTaken,
        )
      : query(databaseOf(database, cwd), sql, options, take),
  )
}

async function withTemporary<T>(stop: AbortSignal, work: (options: QueryOptions) => Promise<T>): Promise<T> {
  const temporary = await temporaryFolder()
  try {
    return await work({ temporary: temporary.path, stop })
  } finally {
    await temporary.remove()
  }
}

function databaseOf(database: string, cwd: string): QuerySource {
  const target = parseTarget(database, cwd, '--in')
  if (target.kind !== 'duckdb')
    throw new ExportError({
      kind: 'config',
      what: 'Only a duckdb:<file> can be queried here',
      where: '--in',
      next: 'Use psql for PostgreSQL.',
    })
  return { kind: 'database', file: target.file }
}

async function queryShards<T>(
  dataSet: DataSet,
  manifest: Manifest,
  sql: string,
  options: QueryOptions,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  const { pipeline, store } = dataSet
  const { extract, transform, load } = pipeline
  await dataSet.requireListed(manifest)
  const paths = manifest.shards.map(({ path }) => path)
  const shards = await localShards(pipeline, store, options.stop)
  try {
    const { root } = shards
    const source: QuerySource = {
      kind: 'files',
      view: kindOfRows(extract.resource),
      select: dataSetRows(
        { root, format: load.format, isMixed: transform.lacking.length > 0 },
        columnsOf(pipeline),
        paths,
      ),
      files: paths.map((path) => join(root, path)),
      async download() {
        for (const path of paths) await shards.download(path)
      },
    }
    return await query(source, sql, options, take)
  } finally {
    await shards.close()
  }
}
