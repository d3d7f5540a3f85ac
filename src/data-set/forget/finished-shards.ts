import type { NamedPipeline, Store } from '../../core/index.ts'
import { readShard } from '../files.ts'
import { BATCH_ROWS, changedShard, type Located } from '../rewriting.ts'
import type { People } from './people.ts'
import { countedColumns, countingRows, type RemovedRows } from './removed-rows.ts'

/**
 * Finds the rows of people in a shard. It reads their identities, and what tells their partitions.
 * @param removed counts them
 */
export async function findRows(
  store: Store,
  pipeline: NamedPipeline,
  { shard, path }: Located,
  people: People,
  removed: RemovedRows,
): Promise<void> {
  const columns = countedColumns(pipeline)
  await readShard(store, { path, bytes: shard.bytes }, async (reader) => {
    const { mayHold, readBatches } = await import('../../load/inspect/index.ts')
    const { exact } = people
    if (exact !== null && !(await mayHold(reader, pipeline.load.format, 'identity_name', exact))) return
    let rows = 0
    for await (const batch of readBatches(reader, pipeline.load.format, columns, BATCH_ROWS)) {
      rows += batch.rows
      const count = countingRows(batch, people, removed)
      for (let row = 0; row < batch.rows; row++) count(row)
    }
    if (rows !== shard.rows) throw changedShard(path)
  })
}
