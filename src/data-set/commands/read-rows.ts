import { ExportError, isExportError, type Pipeline } from '../../core/index.ts'
import { columnsOf, type RowBatch } from '../../rows/index.ts'
import { MANIFEST_PATH, type ManifestShard, parseManifest } from '../../state/index.ts'
import { DataSet, isSame } from '../data-set.ts'
import { namingLocations, withLocation } from '../open-store.ts'
import { shardBatches } from '../read-shard.ts'

export type ReadRowsOptions = {
  /** Columns to read. Default: all that the pipeline exports. */
  readonly columns?: readonly string[]
  /** The maximum number of rows in a batch. Default: 10,000. */
  readonly batchRows?: number
  /** Paths of the shards to read, as in the manifest. Default: all. */
  readonly shards?: readonly string[]
}

/**
 * Reads the rows of the shards that the manifest lists in batches, in its order, also beside other commands.
 * @throws ExportError `config` for an unknown column or shard, `damaged` when a shard violates its format, `locked` when
 *   another command replaces shards after the first batch
 */
export async function* readRows(given: Pipeline, options: ReadRowsOptions = {}): AsyncGenerator<RowBatch> {
  const { pipeline, store } = await DataSet.of(given)
  const columns = columnsToRead(pipeline, options.columns)
  let hasBegun = false
  for (;;) {
    const bytes = await namingLocations(pipeline, () => store.read(MANIFEST_PATH))
    try {
      for (const shard of shardsOf(bytes, options.shards)) {
        for await (const batch of shardBatches(store, shard, pipeline.load.format, columns, options)) {
          hasBegun = true
          yield batch
        }
      }
      return
    } catch (error) {
      // Another command may have replaced the shard.
      const isSteady = isSame(bytes, await store.read(MANIFEST_PATH))
      if (!isSteady && !hasBegun) continue
      const told = isSteady ? error : changedMeanwhile(error)
      throw isExportError(told) ? withLocation(pipeline, told) : told
    }
  }
}

function changedMeanwhile(cause: unknown): ExportError {
  return new ExportError({
    kind: 'locked',
    what: 'Another command replaced shards while they were read',
    where: MANIFEST_PATH,
    next: 'Read the rows again.',
    cause,
  })
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

function shardsOf(manifest: Uint8Array | null, paths?: readonly string[]): readonly ManifestShard[] {
  const shards = manifest === null ? [] : parseManifest(manifest).shards
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
