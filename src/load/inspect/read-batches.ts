import { type CsvFormat, type Format, int64, parseTimestamp } from '../../core/index.ts'
import { batchColumn, type ColumnSpec, type RowBatch, type RowValue, TYPE_NAMES } from '../../rows/index.ts'
import { CsvReader, csvBytes, fieldText, indexesIn, PATTERNS, unescaped } from './csv-reader.ts'
import { openParquet } from './parquet-reader.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

/** Nullable columns that a Parquet shard lacks are null. @param batchRows rows of a batch at most @throws ExportError `damaged` when the bytes are not valid in the format */
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
  const { rowGroups, columns: own } = await openParquet(reader)
  const names = new Set(own.map(({ element }) => element.name))
  for (const rowGroup of rowGroups) {
    const read: RowValue[][] = []
    for (const spec of columns) {
      // The data set may have gained it since.
      if (spec.nullable && !names.has(spec.name)) {
        read.push(new Array<RowValue>(rowGroup.rows).fill(null))
        continue
      }
      const arrays = await rowGroup.column(spec.name)
      const checked = (value: unknown): RowValue => parquetValue(value, spec)
      read.push(arrays.flatMap((values) => Array.from(values as ArrayLike<unknown>, checked)))
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

function parquetValue(value: unknown, { name, type }: ColumnSpec): RowValue {
  if (value === null || value === undefined) return null
  switch (type) {
    case 'text':
      if (typeof value === 'string') return value
      break
    case 'int64':
    case 'timestamp':
      if (typeof value === 'number' || typeof value === 'bigint') return int64(value)
      break
    case 'boolean':
      if (typeof value === 'boolean') return value
      break
    case 'list':
      if (Array.isArray(value)) return value
  }
  throw damaged(`Column ${name} holds no ${TYPE_NAMES[type]}`)
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
      for (const [i, spec] of columns.entries()) {
        const text = fieldText(line, indexes[i]!)
        const isEscaped = text !== null && format.escapeFormulas
        values[i]!.push(csvValue(isEscaped ? unescaped(text) : text, spec))
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

function csvValue(plain: string | null, { name, type }: ColumnSpec): RowValue {
  if (plain === null || type === 'text') return plain
  // Errors about other values would quote them.
  if (!PATTERNS[type].test(plain)) throw damaged(`Column ${name} holds no ${TYPE_NAMES[type]}`)
  switch (type) {
    case 'int64':
      return plain.length > MAX_EXACT_DIGITS ? int64(BigInt(plain)) : Number(plain)
    case 'boolean':
      return plain === 'true'
    case 'timestamp':
      return parseTimestamp(plain)
    case 'list':
      try {
        return JSON.parse(plain) as readonly (string | null)[]
      } catch {
        throw damaged(`Column ${name} holds no ${TYPE_NAMES[type]}`)
      }
  }
}

/** Integers with at most this number of digits are exact in a double. */
const MAX_EXACT_DIGITS = 15
