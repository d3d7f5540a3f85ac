import {
  decodeRecordBatch,
  ExportError,
  encodeRecordBatch,
  type FoldedShard,
  int64,
  int64ToJson,
  type JournalEntry,
  type Pipeline,
  type RecordBatch,
  rowBatchOf,
  type Span,
  spanOf,
} from '../../core/index.ts'
import { takeRows } from '../../load/index.ts'
import type { OpenLog } from '../../state/index.ts'
import type { People } from './people.ts'
import { countedColumns, countingRows, type RemovedRows } from './removed-rows.ts'

/** Bytes that are committed together. */
const COMMIT_BYTES = 8 << 20

/** Finds the rows of people that wait in the log. @param removed counts them */
export async function findOpenRows(
  log: Pick<OpenLog, 'read'>,
  pipeline: Pipeline,
  { batches }: FoldedShard,
  people: People,
  removed: RemovedRows,
): Promise<void> {
  for (const { at } of batches) {
    const bytes = await log.read(at)
    if (bytes !== null) othersOf(decodeRecordBatch(bytes), pipeline, people, removed)
  }
}

/**
 * Commits the rows of an open shard anew, without those of people. What was committed before is needed no more: the
 * objects that held it can go.
 * @param counter makes a counter for a commit
 */
export async function forgetOpenRows(
  checkpoint: OpenLog,
  pipeline: Pipeline,
  shard: number,
  people: People,
  counter: () => RemovedRows,
): Promise<void> {
  const hasTimes = pipeline.transform.columns.includes('imported_at')
  let span: Span | null = null
  for (let from = 0; ; ) {
    const batches = checkpoint.state.openShards.get(shard)?.batches.slice(from) ?? []
    if (batches.length === 0) return
    const removed = counter()
    const blobs: Uint8Array[] = []
    const kept: [number, number][] = []
    let [count, bytes] = [0, 0]
    for (const { at } of batches) {
      const read = await checkpoint.read(at)
      if (read === null) throw lostRows()
      count++
      const batch = decodeRecordBatch(read)
      const others = othersOf(batch, pipeline, people, removed)
      if (others === null) kept.push([batch.rows, blobs.push(read) - 1])
      else if (others.length > 0)
        kept.push([others.length, blobs.push(encodeRecordBatch(takeRows(batch, others))) - 1])
      span = spanOf(span, importedAt(batch, others))
      bytes += read.byteLength
      if (bytes >= COMMIT_BYTES) break
    }
    const entry: JournalEntry = {
      kind: 'forgotten',
      partitions: [...removed.counts].map(([partition, rows]) => ({ partition, rows, quarantined: 0 })),
      open: {
        shard,
        from,
        count,
        batches: kept,
        ...(hasTimes && count === batches.length ? { imported_at: span } : {}),
      },
    }
    await checkpoint.commit([entry], blobs)
    from += kept.length
  }
}

/** @param rows null: all */
function importedAt(batch: RecordBatch, rows: Uint32Array | null): Span | null {
  const values = batch.columns.find(({ name }) => name === 'imported_at')?.values
  if (values?.kind !== 'number' && values?.kind !== 'int64') return null
  let span: Span | null = null
  for (const row of rows ?? values.values.keys()) {
    const at = int64ToJson(int64(values.values[row]!))
    span = spanOf(span, { min: at, max: at })
  }
  return span
}

/** The rows of others; null: all are. */
function othersOf(
  batch: RecordBatch,
  pipeline: Pipeline,
  people: People,
  removed: RemovedRows,
): Uint32Array | null {
  const isTheirs = countingRows(rowBatchOf(batch, countedColumns(pipeline)), people, removed)
  const others: number[] = []
  for (let row = 0; row < batch.rows; row++) if (!isTheirs(row)) others.push(row)
  return others.length === batch.rows ? null : Uint32Array.from(others)
}

function lostRows(): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'Rows that wait in the log are lost or changed',
    where: '_state/log',
    next: 'Run the pipeline first: it exports them anew, without the people that are forgotten. Then `forget` again.',
  })
}
