import {
  batchColumn,
  type ColumnSpec,
  type Format,
  int64,
  parseTimestamp,
  type RowBatch,
  type RowValue,
} from '../../core/index.ts'
import { type CsvFormat, CsvReader, csvBytes, fieldText, indexesIn, unescaped } from './csv-reader.ts'
import { openParquet } from './parquet-reader.ts'
import type { ShardReader } from './shard-reader.ts'

/**
 * The rows of a shard, some at a time.
 * @param batchRows rows of a batch at most
 * @throws ExportError `damaged` when the bytes are not what the format says
 */
export function readBatches(
  reader: ShardReader,
  format: Format,
  columns: readonly ColumnSpec[],
  batchRows: number,
): AsyncGenerator<RowBatch> {
  switch (format.kind) {
    case 'parquet':
      return parquetBatches(reader, columns, batchRows)
    case 'csv':
      return csvBatches(reader, format, columns, batchRows)
  }
}

async function* parquetBatches(
  reader: ShardReader,
  columns: readonly ColumnSpec[],
  batchRows: number,
): AsyncGenerator<RowBatch> {
  const { rowGroups } = await openParquet(reader)
  for (const rowGroup of rowGroups) {
    const read: RowValue[][] = []
    for (const { name } of columns) {
      const arrays = await rowGroup.column(name)
      read.push(arrays.flatMap((values) => Array.from(values as ArrayLike<unknown>, parquetValue)))
    }
    for (let at = 0; at < rowGroup.rows; at += batchRows) {
      yield batchOf(
        columns,
        read.map((values) => values.slice(at, at + batchRows)),
        Math.min(batchRows, rowGroup.rows - at),
      )
    }
  }
}

function parquetValue(value: unknown): RowValue {
  if (value === null || value === undefined) return null
  return typeof value === 'number' || typeof value === 'bigint' ? int64(value) : (value as RowValue)
}

async function* csvBatches(
  reader: ShardReader,
  format: CsvFormat,
  columns: readonly ColumnSpec[],
  batchRows: number,
): AsyncGenerator<RowBatch> {
  const ready: RowBatch[] = []
  let values: RowValue[][] = columns.map(() => [])
  let rows = 0
  const finish = (): void => {
    ready.push(batchOf(columns, values, rows))
    values = columns.map(() => [])
    rows = 0
  }
  const csv = new CsvReader((names) => {
    const indexes = indexesIn(
      names,
      columns.map(({ name }) => name),
    )
    return (line) => {
      for (const [i, { type }] of columns.entries()) {
        values[i]!.push(csvValue(fieldText(line, indexes[i]!), type, format.escapeFormulas))
      }
      if (++rows === batchRows) finish()
    }
  })
  for await (const bytes of csvBytes(reader, format)) {
    csv.push(bytes)
    yield* ready.splice(0)
  }
  csv.end()
  if (rows > 0) finish()
  yield* ready
}

function batchOf(columns: readonly ColumnSpec[], values: readonly RowValue[][], rows: number): RowBatch {
  return { rows, columns: columns.map(({ name, type }, i) => batchColumn(name, type, values[i]!)) }
}

function csvValue(text: string | null, type: ColumnSpec['type'], isEscaped: boolean): RowValue {
  if (text === null) return null
  const plain = isEscaped ? unescaped(text) : text
  switch (type) {
    case 'text':
      return plain
    case 'int64':
      return int64(BigInt(plain))
    case 'boolean':
      return plain === 'true'
    case 'timestamp':
      return parseTimestamp(plain)
    case 'list':
      return JSON.parse(plain) as readonly (string | null)[]
  }
}
