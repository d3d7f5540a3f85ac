import { ExportError, isExportError, type Pipeline, type Store } from '../core/index.ts'
import { type CredentialColumn, columnsOf, type RowBatch } from '../rows/index.ts'
import { manifestShards, readCheckpoint, readManifest } from '../state/index.ts'
import { describeDataSet } from './described.ts'
import { namingShard, shardReader } from './files.ts'
import { namingLocations, openDataSet, withLocation } from './open-data-set.ts'

export type ReadRowsOptions<Name extends string = string> = {
  /** Columns to read. Default: all that the pipeline exports. */
  readonly columns?: readonly Name[]
  /** The maximum number of rows in a batch. Default: 10,000. */
  readonly batchRows?: number
  /** Paths of the shards to read, as in the manifest. Default: all. */
  readonly shards?: readonly string[]
}

/**
 * Reads the rows of sealed shards in batches, in the order of the manifest, also during a run. Rows of open shards
 * are not included.
 * @throws ExportError `config` for an unknown column or shard, `damaged` when a shard violates its format
 */
export async function* readRows<const Name extends CredentialColumn | (string & {}) = string>(
  given: Pipeline,
  options: ReadRowsOptions<Name> = {},
): AsyncGenerator<RowBatch<Name>> {
  const { batchRows = 10_000 } = options
  const { pipeline } = await describeDataSet({ pipeline: given, unknown: null }, 'read')
  const store = openDataSet(pipeline)
  const columns = columnsToRead(pipeline, options.columns)
  const { readBatches } = await import('../load/inspect/index.ts')
  for (const shard of await shardsOf(pipeline, store, options.shards)) {
    try {
      const batches = readBatches(shardReader(store, shard), pipeline.load.format, columns, batchRows)
      yield* batches as AsyncGenerator<RowBatch<Name>>
    } catch (error) {
      const named = namingShard(shard, error)
      throw isExportError(named) ? withLocation(pipeline, named) : named
    }
  }
}

function columnsToRead(pipeline: Pipeline, names: readonly string[] = pipeline.transform.columns) {
  const { transform } = pipeline
  const unknown = names.find((name) => !transform.columns.includes(name))
  if (unknown !== undefined) {
    throw new ExportError({
      kind: 'config',
      what: `There is no column ${JSON.stringify(unknown)}`,
      where: 'columns',
      next: `There are ${transform.columns.join(', ')}.`,
    })
  }
  return columnsOf(pipeline, names)
}

async function shardsOf(pipeline: Pipeline, store: Store, paths?: readonly string[]) {
  const shards = await namingLocations(pipeline, async () => {
    const state = await readCheckpoint(store)
    // A data set may have been moved without its state.
    return state === null ? ((await readManifest(store))?.shards ?? []) : [...manifestShards(state)]
  })
  if (paths === undefined) return shards
  return paths.map((path) => {
    const shard = shards.find((candidate) => candidate.path === path)
    if (shard !== undefined) return shard
    throw new ExportError({
      kind: 'config',
      what: 'There is no such shard',
      where: path,
      next: 'The manifest lists all shards.',
    })
  })
}
