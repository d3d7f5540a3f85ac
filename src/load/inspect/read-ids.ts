import type { Format } from '../../core/index.ts'
import type { ColumnSpec } from '../../rows/index.ts'
import { readBatches } from './read-batches.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

/** Gets the id of every row, and the kind and value of its query (empty unless requested). */
type OnId = (id: number | bigint, queryType: string, queryValue: string) => void

const ID = column('id', 'int64')
const QUERY = [column('query_type', 'text'), column('query_value', 'text')]

function column(name: string, type: ColumnSpec['type']): ColumnSpec {
  return { name, type, nullable: false, meaning: '' }
}

const BATCH_ROWS = 10_000

/**
 * Reads the ids of a shard, and no column that is not needed.
 * @param withQuery whether to read the columns `query_type` and `query_value` too; else both are empty
 * @throws ExportError `damaged` when the bytes are not valid in the format, or a column is missing
 */
export async function readIds(
  reader: ShardReader,
  format: Format,
  withQuery: boolean,
  onId: OnId,
): Promise<void> {
  const columns = withQuery ? [ID, ...QUERY] : [ID]
  for await (const batch of readBatches(reader, format, columns, BATCH_ROWS)) {
    const [ids, types, queries] = batch.columns
    if (ids?.type !== 'int64' || ids.valid !== null) throw damaged('Column id holds nulls')
    for (let row = 0; row < batch.rows; row++) {
      onId(ids.values[row]!, String(types?.values[row] ?? ''), String(queries?.values[row] ?? ''))
    }
  }
}
