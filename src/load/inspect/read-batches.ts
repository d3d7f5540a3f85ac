import { type CsvFormat, type Format, int64, parseTimestamp } from '../../core/index.ts'
import { batchColumn, type ColumnSpec, type RowBatch, type RowValue, TYPE_NAMES } from '../../rows/index.ts'
import { type CsvLine, CsvReader, csvBytes, fieldText, indexesIn, PATTERNS, unescaped } from './csv-reader.ts'
import { openParquet } from './parquet-reader.ts'
import { damaged, type ShardReader } from './shard-reader.ts'

/** Which rows are read, by their text in one of the columns. */
export type Wanted = { readonly column: string; has(text: string): boolean }

/**
 * Nullable columns that a Parquet shard lacks are null.
 * @param batchRows rows of a batch at most @param wanted null: all rows
 * @throws ExportError `damaged` when the bytes are not valid in the format
 */
export function readBatches(
  reader: ShardReader,
  format: Format,
  columns: readonly ColumnSpec[],
  batchRows: number,
  wanted: Wanted | null = null,
): AsyncGenerator<RowBatch> {
  switch (format.kind) {
    case 'parquet':
      return parquetBatches(reader, columns, batchRows, wanted)
    case 'csv':
      return csvBatches(reader, format, columns, batchRows, wanted)
  }
}

async function* parquetBatches(
  reader: ShardReader,
  columns: readonly ColumnSpec[],
  batchRows: number,
  wanted: Wanted | null,
): AsyncGenerator<RowBatch> {
  const { rowGroups, columns: own } = await openParquet(reader)
  const names = new Set(own.map(({ element }) => element.name))
  const deciding = columns.find(({ name }) => name === wanted?.column)
  for (const rowGroup of rowGroups) {
    const read = async (spec: ColumnSpec): Promise<ArrayLike<unknown>> => {
      // The data set may have gained it since.
      if (spec.nullable && !names.has(spec.name)) return []
      const pages = await rowGroup.column(spec.name)
      return pages.length === 1 ? pages[0]! : pages.flatMap((page) => Array.from<unknown>(page))
    }
    const decided = deciding === undefined ? null : await read(deciding)
    const rows = decided === null ? null : rowsWith(decided, deciding!, wanted!)
    const count = rows?.length ?? rowGroup.rows
    if (count === 0) continue
    const values: ArrayLike<unknown>[] = []
    for (const spec of columns) values.push(spec === deciding ? decided! : await read(spec))
    for (let at = 0; at < count; at += batchRows) {
      const length = Math.min(batchRows, count - at)
      yield batchOf(
        columns,
        values.map((all, column) =>
          Array.from({ length }, (_, i) => parquetValue(all[rows?.[at + i] ?? at + i], columns[column]!)),
        ),
        length,
      )
    }
  }
}

function rowsWith(texts: ArrayLike<unknown>, column: ColumnSpec, wanted: Wanted): number[] {
  const found: number[] = []
  for (let row = 0; row < texts.length; row++) {
    const text = parquetValue(texts[row], column)
    if (typeof text === 'string' && wanted.has(text)) found.push(row)
  }
  return found
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
  wanted: Wanted | null,
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
    const deciding = columns.findIndex(({ name }) => name === wanted?.column)
    const valueIn = (line: CsvLine, i: number): RowValue => {
      const text = fieldText(line, indexes[i]!)
      const isEscaped = text !== null && format.escapeFormulas
      return csvValue(isEscaped ? unescaped(text) : text, columns[i]!)
    }
    return (line) => {
      if (wanted !== null && deciding >= 0) {
        const text = valueIn(line, deciding)
        if (typeof text !== 'string' || !wanted.has(text)) return
      }
      for (const i of columns.keys()) values[i]!.push(valueIn(line, i))
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
