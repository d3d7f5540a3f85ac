import { columnsOf, ExportError, type Pipeline, type RowBatch, type Store } from '../core/index.ts'
import { manifestShards, readCheckpoint, readManifest } from '../state/index.ts'
import { shardReader } from './data-set/files.ts'
import { namingLocations, openDataSet, withLocation } from './data-set/open-data-set.ts'

export type ReadRowsOptions = {
  /** Columns to read; all that the pipeline exports when left out. */
  readonly columns?: readonly string[]
  /** Rows of a batch at most; 10,000 when left out. */
  readonly batchRows?: number
  /** Paths of the shards to read, as the manifest lists them; all finished ones when left out. */
  readonly shards?: readonly string[]
}

/**
 * Reads the rows of finished shards back, some at a time, in the order of the manifest; also while a run is at work. Rows in
 * shards that are not finished don't come.
 * @throws ExportError `config` for a column or shard that is not there, `damaged` when a shard is not what its format says
 */
export async function* readRows(pipeline: Pipeline, options: ReadRowsOptions = {}): AsyncGenerator<RowBatch> {
  const { batchRows = 10_000 } = options
  const store = openDataSet(pipeline)
  const columns = columnsToRead(pipeline, options.columns)
  const { readBatches } = await import('../load/inspect/index.ts')
  for (const shard of await shardsOf(pipeline, store, options.shards)) {
    try {
      yield* readBatches(shardReader(store, shard), pipeline.load.format, columns, batchRows)
    } catch (error) {
      if (error instanceof ExportError && error.where === '') {
        throw withLocation(
          pipeline,
          new ExportError(error.kind, error.what, shard.path, error.next, { cause: error }),
        )
      }
      throw error
    }
  }
}

function columnsToRead(pipeline: Pipeline, names: readonly string[] = pipeline.transform.columns) {
  const { transform } = pipeline
  const unknown = names.find((name) => !transform.columns.includes(name))
  if (unknown !== undefined) {
    throw new ExportError(
      'config',
      `There is no column ${JSON.stringify(unknown)}`,
      'columns',
      `There are ${transform.columns.join(', ')}.`,
    )
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
    throw new ExportError(
      'config',
      'There is no such finished shard',
      path,
      'The manifest lists those there are.',
    )
  })
}
