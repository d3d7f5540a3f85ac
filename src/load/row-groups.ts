import { getOrInsert } from '../core/index.ts'
import type { Group, RecordBatch, TextVector, Vector } from '../rows/index.ts'
import { takeRows } from './take-rows.ts'

// Limits memory when values are long. Usual rows take 450 bytes, most of them for descriptions of sources.
const MAX_BYTES = 64 << 20
/** A row group that is full by bytes ends at a multiple of this number of rows. */
const STEP_ROWS = 1000

/**
 * Divides record batches into those of each row group. Its rows alone decide, not how batches divide them or represent
 * what they have in common.
 */
export async function* rowGroups(
  batches: AsyncIterable<RecordBatch>,
  maxRows: number,
): AsyncGenerator<readonly RecordBatch[]> {
  let group: RecordBatch[] = []
  let rows = 0
  let bytes = 0
  // It is not kept here while it is encoded, and others after it.
  const ended = (): readonly RecordBatch[] => {
    const full = group
    group = []
    rows = 0
    bytes = 0
    return full
  }
  for await (const batch of batches) {
    const sizes = byteSizes(batch)
    for (let from = 0, to = 0; from < batch.rows; from = to) {
      let isFull = false
      for (; to < batch.rows && !isFull; to++) {
        bytes += sizes[to]!
        rows++
        isFull = rows === maxRows || (rows % STEP_ROWS === 0 && bytes >= MAX_BYTES)
      }
      group.push(to - from === batch.rows ? batch : takeRows(batch, { from, to }))
      if (isFull) yield ended()
    }
  }
  if (group.length > 0) yield ended()
}

/** Bytes of the strings of each row, as if it were alone. */
function byteSizes({ rows, groups, columns }: RecordBatch): Float64Array {
  const ofRow = new Float64Array(rows)
  const ofEntries = new Map<Group, Float64Array>()
  for (const { group, values } of columns) {
    if (values.kind !== 'text' && values.kind !== 'list') continue
    const table = group === null ? null : groups[group]!
    const sizes = table === null ? ofRow : getOrInsert(ofEntries, table, () => new Float64Array(table.size))
    for (let i = 0; i < sizes.length; i++) sizes[i]! += bytesOf(values, i)
  }
  for (const [{ indices }, sizes] of ofEntries) {
    for (let row = 0; row < rows; row++) ofRow[row]! += sizes[indices === null ? 0 : indices[row]!]!
  }
  return ofRow
}

function bytesOf(texts: TextVector | Extract<Vector, { kind: 'list' }>, at: number): number {
  if (texts.kind === 'text') return texts.offsets[at + 1]! - texts.offsets[at]!
  const { offsets, items } = texts
  return items.offsets[offsets[at + 1]!]! - items.offsets[offsets[at]!]!
}
