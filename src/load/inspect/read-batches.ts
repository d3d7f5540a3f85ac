import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { parquetMetadataAsync } from 'hyparquet'
import {
  batchColumn,
  type ColumnSpec,
  type Format,
  int64,
  parseTimestamp,
  type RowBatch,
  type RowValue,
} from '../../core/index.ts'
import { type CsvLine, fieldText, readCsv } from './csv-records.ts'
import { damaged, guarded } from './damaged.ts'
import { bytesOf, MAX_FIELDS } from './inspect-csv.ts'
import { fileOf, readColumn } from './inspect-parquet.ts'
import type { ShardReader } from './inspector.ts'

/**
 * The rows of a shard, some at a time; columns that it does not have are left out.
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
  const metadata = await guarded('It is no whole Parquet file', () =>
    parquetMetadataAsync(fileOf(reader), { geoparquet: false }),
  )
  let start = 0
  for (const group of metadata.row_groups) {
    const count = Number(group.num_rows)
    // hyparquet reads whole pages, so each row group is read once and cut into batches.
    const read: { readonly spec: ColumnSpec; readonly values: readonly RowValue[] }[] = []
    for (const spec of columns) {
      const chunks = await guarded(`Column ${spec.name} cannot be read`, () =>
        readColumn(reader, metadata, spec.name, start, start + count),
      )
      const values = chunks.flatMap((chunk) => Array.from(chunk as ArrayLike<unknown>, parquetValue))
      if (values.length !== count)
        throw damaged(`Column ${spec.name} has ${values.length} rows instead of ${count}`)
      read.push({ spec, values })
    }
    for (let at = 0; at < count; at += batchRows) {
      const rows = Math.min(batchRows, count - at)
      yield {
        rows,
        columns: read.map(({ spec: { name, type }, values }) =>
          batchColumn(name, type, values.slice(at, at + rows)),
        ),
      }
    }
    start += count
  }
}

function parquetValue(value: unknown): RowValue {
  if (value === null || value === undefined) return null
  return typeof value === 'number' || typeof value === 'bigint' ? int64(value) : (value as RowValue)
}

/** Backpressure comes from the reader of the batches. */
async function* csvBatches(
  reader: ShardReader,
  format: Extract<Format, { kind: 'csv' }>,
  columns: readonly ColumnSpec[],
  batchRows: number,
): AsyncGenerator<RowBatch> {
  const lines = new CsvBatches(columns, format.escapeFormulas, batchRows)
  const out = new PassThrough({ objectMode: true, highWaterMark: 1 })
  const pass = async (): Promise<void> => {
    for (const batch of lines.ready.splice(0)) {
      if (!out.write(batch)) await Promise.race([once(out, 'drain'), once(out, 'close')])
    }
  }
  async function* held(): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytesOf(reader, format)) {
      yield chunk
      await pass()
      if (out.destroyed) return
    }
  }
  const reading = readCsv(held(), MAX_FIELDS, (line) => lines.take(line)).then(async () => {
    lines.finish()
    await pass()
    out.end()
  })
  reading.catch((error: Error) => out.destroy(error))
  yield* out
}

/** Gathers the values of lines, column by column. */
class CsvBatches {
  readonly ready: RowBatch[] = []
  readonly #columns: readonly ColumnSpec[]
  readonly #isEscaped: boolean
  readonly #batchRows: number
  #indexes: readonly number[] | null = null
  #values: RowValue[][] = []
  #rows = 0

  constructor(columns: readonly ColumnSpec[], isEscaped: boolean, batchRows: number) {
    this.#columns = columns
    this.#isEscaped = isEscaped
    this.#batchRows = batchRows
  }

  take(line: CsvLine): void {
    if (this.#indexes === null) {
      this.#indexes = indexesOf(line, this.#columns)
      this.#values = this.#columns.map(() => [])
      return
    }
    for (const [i, { type }] of this.#columns.entries()) {
      this.#values[i]!.push(csvValue(fieldText(line, this.#indexes[i]!), type, this.#isEscaped))
    }
    if (++this.#rows === this.#batchRows) this.finish()
  }

  finish(): void {
    if (this.#rows === 0) return
    const columns = this.#columns.map(({ name, type }, i) => batchColumn(name, type, this.#values[i]!))
    this.ready.push({ rows: this.#rows, columns })
    this.#values = this.#columns.map(() => [])
    this.#rows = 0
  }
}

function indexesOf(line: CsvLine, columns: readonly ColumnSpec[]): readonly number[] {
  const names = Array.from({ length: line.count }, (_, i) => fieldText(line, i))
  const indexes = columns.map(({ name }) => names.indexOf(name))
  if (indexes.includes(-1)) throw damaged('A column is missing')
  return indexes
}

function csvValue(text: string | null, type: ColumnSpec['type'], isEscaped: boolean): RowValue {
  if (text === null) return null
  const plain = isEscaped ? text.replace(/^'(?=[=+\-@\t\r])/, '') : text
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
