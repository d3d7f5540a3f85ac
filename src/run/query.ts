import { columnsNamed, ExportError, type Pipeline } from '../core/index.ts'
import { MANIFEST_PATH, readManifest } from '../state/index.ts'
import { type Answer, dataSetRows, parseTarget, queryDataSet } from '../warehouse/index.ts'
import { openDataSet } from './data-set/index.ts'
import { localShards } from './local-shards.ts'

export type { Answer } from '../warehouse/index.ts'

/**
 * Asks what is exported: the shards that the manifest lists as the view `credentials` (or `reports`), or a DuckDB file
 * that they were loaded into.
 * @param options.database `duckdb:<file>`; null: the files
 * @throws ExportError `config` when nothing is exported, or the SQL does more than read
 */
export async function queryPipeline(
  pipeline: Pipeline,
  sql: string,
  { database, cwd }: { readonly database: string | null; readonly cwd: string },
): Promise<Answer> {
  if (database !== null) {
    const target = parseTarget(database, cwd, '--in')
    if (target.kind !== 'duckdb') throw onlyDuckdb()
    return queryDataSet({ kind: 'database', file: target.file }, sql)
  }
  const { extract, transform, load } = pipeline
  const store = openDataSet(pipeline)
  const manifest = await readManifest(store)
  if (manifest === null) {
    throw new ExportError(
      'config',
      'There is no manifest, so there is nothing to ask yet',
      MANIFEST_PATH,
      'Run the pipeline first.',
    )
  }
  const columns = columnsNamed(
    extract.resource,
    extract.include,
    manifest.columns.map(({ name }) => name).filter((name) => transform.columns.includes(name)),
  )
  const paths = manifest.shards.map(({ path }) => path)
  const shards = await localShards(pipeline, store)
  try {
    const { root } = shards
    for (const path of paths) await shards.bring(path)
    const select = dataSetRows({ root, format: load.format }, columns, paths)
    return await queryDataSet({ kind: 'files', view: extract.resource, select, root }, sql)
  } finally {
    await shards.close()
  }
}

function onlyDuckdb(): ExportError {
  return new ExportError(
    'config',
    'Only a duckdb:<file> can be asked here',
    '--in',
    'Use psql for PostgreSQL.',
  )
}
