import type { CompressionCodec, Encoding, FileMetaData, RowGroup, SchemaElement } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import { type ColumnSpec, elementFieldId, fieldId } from '../../../rows/index.ts'
import type { ColumnChunk, EncodeSettings, WrittenRowGroup } from '../encoder.ts'

export const MAGIC = 'PAR1'

/** Longer strings get no min/max statistics: they would make the footer large. */
export const MAX_STATISTIC_BYTES = 256

type FooterSettings = Pick<EncodeSettings, 'columns' | 'createdBy' | 'fileMetadata'> & {
  readonly codec: CompressionCodec
  readonly timestampUnit: 'MICROS' | 'MILLIS'
}

/** The end of a Parquet file. Its version is 1: the number has no meaning, but some readers reject any other. */
export function parquetFooter(
  settings: FooterSettings,
  rowGroups: readonly WrittenRowGroup[],
): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter()
  const filled = rowGroups.filter(({ rows }) => rows > 0)
  const metadata: FileMetaData = {
    version: 1,
    created_by: settings.createdBy,
    schema: schemaOf(settings),
    num_rows: BigInt(filled.reduce((sum, { rows }) => sum + rows, 0)),
    row_groups: filled.map((rowGroup) => footerRowGroup(settings, rowGroup)),
    key_value_metadata: Object.entries(settings.fileMetadata).map(([key, value]) => ({ key, value })),
    metadata_length: 0,
  }
  // Not truncated: long values that begin alike differ only at their ends.
  writeMetadata(writer, metadata, MAX_STATISTIC_BYTES)
  writer.appendBytes(Buffer.from(MAGIC))
  return new Uint8Array(writer.getBytes())
}

function schemaOf({ columns, timestampUnit }: FooterSettings): SchemaElement[] {
  return [
    { name: 'schema', num_children: columns.length },
    ...columns.flatMap((column) => elementsOf(column, timestampUnit)),
  ]
}

function elementsOf(
  { name, type, nullable }: ColumnSpec,
  timestampUnit: 'MICROS' | 'MILLIS',
): SchemaElement[] {
  const repetition_type = nullable ? 'OPTIONAL' : 'REQUIRED'
  const common = { name, field_id: fieldId(name), repetition_type } as const
  switch (type) {
    case 'int64':
      return [{ ...common, type: 'INT64' }]
    case 'boolean':
      return [{ ...common, type: 'BOOLEAN' }]
    case 'text':
      return [{ ...common, ...STRING }]
    case 'timestamp':
      return [
        {
          ...common,
          type: 'INT64',
          converted_type: `TIMESTAMP_${timestampUnit}`,
          logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: timestampUnit },
        },
      ]
    case 'list':
      return [
        { ...common, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', field_id: elementFieldId(name), repetition_type: 'OPTIONAL', ...STRING },
      ]
  }
}

const STRING = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const

function footerRowGroup(settings: FooterSettings, rowGroup: WrittenRowGroup): RowGroup {
  const { chunks } = rowGroup
  const sum = (key: 'raw' | 'stored'): bigint =>
    BigInt(chunks.reduce((total, chunk) => total + chunk[key], 0))
  return {
    num_rows: BigInt(rowGroup.rows),
    total_byte_size: sum('raw'),
    total_compressed_size: sum('stored'),
    file_offset: BigInt(rowGroup.offset),
    columns: settings.columns.map((column, i) =>
      columnChunk(settings.codec, column, chunks[i]!, rowGroup.offset),
    ),
  }
}

function columnChunk(
  codec: CompressionCodec,
  { name, type }: ColumnSpec,
  chunk: ColumnChunk,
  offset: number,
): RowGroup['columns'][number] {
  const at = (relative: number): bigint => BigInt(offset + relative)
  const { dictionary, minMax } = chunk
  const encodings: Encoding[] = [...new Set<Encoding>(['RLE', chunk.encoding])]
  if (dictionary !== null) encodings.push('PLAIN')
  return {
    // Deprecated, and 0 where only the footer has the metadata.
    file_offset: 0n,
    meta_data: {
      type: type === 'text' || type === 'list' ? 'BYTE_ARRAY' : type === 'boolean' ? 'BOOLEAN' : 'INT64',
      encodings,
      path_in_schema: type === 'list' ? [name, 'list', 'element'] : [name],
      codec,
      num_values: BigInt(chunk.entries),
      total_uncompressed_size: BigInt(chunk.raw),
      total_compressed_size: BigInt(chunk.stored),
      data_page_offset: at(chunk.data),
      ...(dictionary !== null && { dictionary_page_offset: at(dictionary) }),
      statistics: {
        null_count: BigInt(chunk.nulls),
        ...(minMax !== null && { min_value: statistic(minMax.min), max_value: statistic(minMax.max) }),
      },
    },
  }
}

function statistic(value: number | bigint | string): bigint | string {
  return typeof value === 'number' ? BigInt(value) : value
}
