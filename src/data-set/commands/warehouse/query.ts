import { join } from 'node:path'
import { ExportError, kindOfRows, type Pipeline, type Store } from '../../../core/index.ts'
import { columnsOf } from '../../../rows/index.ts'
import { type Manifest, parseManifest } from '../../../state/index.ts'
import {
  dataSetRows,
  parseTarget,
  type QueryOptions,
  type QueryRow,
  type QuerySource,
  type QueryStream,
  queryDataSet,
} from '../../../warehouse/index.ts'
import { nothingExported, openStore } from '../../open-store.ts'
import { readSteadily, requireListed } from '../../read-manifest.ts'
import { localShards, temporaryFolder } from './local-shards.ts'

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
export function queryPipeline(
  pipeline: Pipeline,
  sql: string,
  settings: QuerySettings,
): Promise<QueryResult> {
  return streamQuery(pipeline, sql, settings, async ({ columns, batches }) => {
    const rows: QueryRow[] = []
    for await (const batch of batches) for (const row of batch) rows.push(row)
    return { columns, rows }
  })
}

/**
 * Queries the view `credentials` (or `reports`), or a DuckDB file into which the shards were loaded.
 * @throws ExportError `config` when nothing is exported, or the SQL does more than read; `damaged`; the reason of `stop`
 */
export async function streamQuery<T>(
  pipeline: Pipeline,
  sql: string,
  settings: QuerySettings,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  const { stop = new AbortController().signal } = settings
  const temporary = await temporaryFolder()
  try {
    const options = { temporary: temporary.path, stop }
    return settings.database === null
      ? await queryFiles(pipeline, sql, options, take)
      : await queryDataSet(databaseOf(settings.database, settings.cwd), sql, options, take)
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

async function queryFiles<T>(
  pipeline: Pipeline,
  sql: string,
  options: QueryOptions,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  const store = openStore(pipeline)
  let isTaken = false
  const once = (result: QueryStream): Promise<T> => {
    isTaken = true
    return take(result)
  }
  return readSteadily(
    store,
    async (bytes) => {
      if (bytes === null) throw nothingExported(pipeline)
      return queryShards(pipeline, store, parseManifest(bytes), sql, options, once)
    },
    undefined,
    () => !isTaken,
  )
}

async function queryShards<T>(
  pipeline: Pipeline,
  store: Store,
  manifest: Manifest,
  sql: string,
  options: QueryOptions,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  const { extract, transform, load } = pipeline
  await requireListed(store, manifest)
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
    return await queryDataSet(source, sql, options, take)
  } finally {
    await shards.close()
  }
}
