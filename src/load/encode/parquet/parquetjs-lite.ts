import { createRequire } from 'node:module'
import { parquetMetadata } from 'hyparquet'
import type { Field } from 'parquetjs-lite'
import { ExportError, isExportError, type ParquetFormat } from '../../../core/index.ts'
import type { ColumnSpec, RecordBatch, RowValue } from '../../../rows/index.ts'
import type { ColumnChunk, EncodedRowGroup, EncodeSettings, ShardEncoder } from '../encoder.ts'
import { rowObjects, totalRows } from '../record-batch-column.ts'
import { MAGIC, parquetFooter } from './footer.ts'

/** The configuration refuses zstd with this engine. */
const CODECS = { none: 'UNCOMPRESSED', snappy: 'SNAPPY', gzip: 'GZIP' } as const

/** An independent second writer, about forty times slower. Milliseconds are the only unit that it supports. */
export function parquetjsLite(settings: EncodeSettings, format: ParquetFormat): ShardEncoder {
  const { columns } = settings
  const codec = CODECS[format.compression as keyof typeof CODECS]
  return {
    header: () => new Uint8Array(Buffer.from(MAGIC)),
    encode: async (recordBatches) => {
      const rows = totalRows(recordBatches)
      if (rows === 0) return { bytes: new Uint8Array(), rows, chunks: [] }
      try {
        return await encodeRows(columns, codec, recordBatches, rows)
      } catch (error) {
        if (isExportError(error)) throw error
        // Its errors quote the row, and are not always instances of Error, so they are not kept as the cause.
        throw new ExportError({
          kind: 'data',
          what: `parquetjs-lite could not encode ${rows} rows`,
          where: 'load.engine',
          next: 'Use the engine columnar, and start again with --fresh.',
        })
      }
    },
    footer: async (rowGroups) => parquetFooter({ ...settings, codec, timestampUnit: 'MILLIS' }, rowGroups),
  }
}

/** @param isLarge whether integers of the column are written as {@link ExactInteger}; the bytes are the same */
function fieldOf(
  { type, nullable }: ColumnSpec,
  compression: NonNullable<Field['compression']>,
  isLarge: boolean,
): Field {
  const common = { optional: nullable, compression, statistics: false } as const
  switch (type) {
    case 'int64':
      return { type: isLarge ? 'TIMESTAMP_MILLIS' : 'INT64', ...common }
    case 'timestamp':
      return { type: 'TIMESTAMP_MILLIS', ...common }
    case 'boolean':
      return { type: 'BOOLEAN', ...common }
    case 'text':
      return { type: 'UTF8', ...common }
    case 'list': {
      const element: Field = { ...common, type: 'UTF8', optional: true }
      return { type: 'LIST', optional: nullable, fields: { list: { repeated: true, fields: { element } } } }
    }
  }
}

async function encodeRows(
  columns: readonly ColumnSpec[],
  codec: NonNullable<Field['compression']>,
  recordBatches: readonly RecordBatch[],
  rows: number,
): Promise<EncodedRowGroup> {
  // Loaded on first use: it is optional.
  const parquetjs = createRequire(import.meta.url)(
    'parquetjs-lite',
  ) as typeof import('parquetjs-lite').default
  const large = new Set(
    recordBatches.flatMap((recordBatch) =>
      recordBatch.columns.filter(({ values }) => values.kind === 'int64').map(({ name }) => name),
    ),
  )
  const fields = columns.map(
    (column) => [column.name, fieldOf(column, codec, large.has(column.name))] as const,
  )
  const schema = new parquetjs.ParquetSchema(Object.fromEntries(fields))
  const parts: Buffer[] = []
  const options = { useDataPageV2: false, pageIndex: false }
  const envelope = new parquetjs.ParquetEnvelopeWriter(
    schema,
    (bytes) => parts.push(bytes),
    () => {},
    0,
    options,
  )
  const writer = new parquetjs.ParquetWriter(schema, envelope, { rowGroupSize: Number.POSITIVE_INFINITY })
  /** Values that are not null, by column. */
  const present = columns.map(() => 0)
  for (const recordBatch of recordBatches) {
    for (const row of rowObjects(recordBatch, columns)) {
      const record: Record<string, unknown> = {}
      columns.forEach((column, i) => {
        const value = row[column.name] ?? null
        record[column.name] = written(value, column, large.has(column.name))
        present[i]! += valuesIn(value)
      })
      await writer.appendRow(record)
    }
  }
  await writer.close()
  const file = new Uint8Array(Buffer.concat(parts))
  const { row_groups, metadata_length } = parquetMetadata(file.buffer)
  // The row group is followed by the metadata, its length and the magic.
  const bytes = file.slice(MAGIC.length, file.length - metadata_length - 4 - MAGIC.length)
  const chunks = row_groups[0]!.columns.map(({ meta_data }, i): ColumnChunk => {
    const entries = Number(meta_data!.num_values)
    return {
      entries,
      nulls: entries - present[i]!,
      encoding: 'PLAIN',
      dictionary: null,
      data: Number(meta_data!.data_page_offset) - MAGIC.length,
      raw: Number(meta_data!.total_uncompressed_size),
      stored: Number(meta_data!.total_compressed_size),
      minMax: null,
    }
  })
  return { bytes, rows, chunks }
}

function written(value: RowValue, { type }: ColumnSpec, isLarge: boolean): unknown {
  if (type === 'timestamp' && typeof value === 'number') return new Date(Math.floor(value / 1000))
  if (type === 'timestamp' && typeof value === 'bigint') return new Date(Number(floorThousandth(value)))
  if (isLarge && type === 'int64' && value !== null) return new ExactInteger(value)
  if (Array.isArray(value)) return { list: value.map((element) => ({ element })) }
  return value
}

/** parquetjs-lite rounds integers to doubles, but writes all bits of a Date's time: large integers pass as Dates. */
class ExactInteger extends Date {
  constructor(readonly value: RowValue) {
    super(0)
  }

  override getTime(): number {
    return this.value as number
  }
}

/** A thousandth, rounded down; the operator rounds towards zero. */
function floorThousandth(value: bigint): bigint {
  return (value - (((value % 1000n) + 1000n) % 1000n)) / 1000n
}

function valuesIn(value: RowValue): number {
  if (value === null) return 0
  return Array.isArray(value) ? value.filter((item) => item !== null).length : 1
}
