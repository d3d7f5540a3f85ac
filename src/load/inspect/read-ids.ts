import type { Format } from '../../core/index.ts'
import type { ColumnSpec } from '../../rows/index.ts'
import { readBatches } from './read-batches.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

const ID: ColumnSpec = { name: 'id', type: 'int64', nullable: false, meaning: '' }

const BATCH_ROWS = 10_000

/**
 * Reads the ids of a shard, and no other column.
 * @throws ExportError `damaged` when the bytes are not valid in the format, or the column is missing
 */
export async function readIds(
  reader: ShardReader,
  format: Format,
  onId: (id: number | bigint) => void,
): Promise<void> {
  for await (const batch of readBatches(reader, format, [ID], BATCH_ROWS)) {
    const [ids] = batch.columns
    if (ids?.type !== 'int64' || ids.valid !== null) throw damaged('Column id holds nulls')
    for (let row = 0; row < batch.rows; row++) onId(ids.values[row]!)
  }
}
