import type { CompressionCodec, Encoding, FileMetaData, RowGroup, SchemaElement } from 'hyparquet'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import * as z from 'zod'
import {
  type ColumnSpec,
  type ColumnType,
  ExportError,
  elementFieldId,
  fieldId,
  type JsonValue,
} from '../../../core/index.ts'
import type { EncodePlan, WrittenRowGroup } from '../encoder.ts'
import { MAX_STATISTIC_BYTES } from './leaf-values.ts'

export const MAGIC = 'PAR1'

const extreme = z.union([z.number(), z.string()])
const count = z.number().int().nonnegative()

const columnChunkMeta = z.strictObject({
  /** Number of values, nulls and empty lists. */
  entries: count,
  nulls: count,
  encoding: z.enum([
    'PLAIN',
    'DELTA_BINARY_PACKED',
    'DELTA_LENGTH_BYTE_ARRAY',
    'RLE_DICTIONARY',
    'PLAIN_DICTIONARY',
  ]),
  /** Offset of the dictionary page; null: there is none. */
  dictionary: count.nullable(),
  /** Offset of the first data page. */
  data: count,
  /** Bytes of all pages with their headers, before and after compression. */
  raw: count,
  stored: count,
  min_max: z.strictObject({ min: extreme, max: extreme }).nullable(),
  /** Whether the rows are known to be in order of this column. */
  ascending: z.boolean(),
  /** Location of the bloom filter; null: there is none. */
  bloom: z.strictObject({ offset: count, length: count }).nullable(),
})

const rowGroupMeta = z.array(columnChunkMeta)

/** The footer's data about one column of a row group. Offsets count from the start of the row group. */
export type ColumnChunkMeta = z.infer<typeof columnChunkMeta>
export type RowGroupMeta = readonly ColumnChunkMeta[]

/** The settings of the file, some of which differ between the engines. */
type FooterPlan = Pick<EncodePlan, 'columns' | 'createdBy' | 'fileMetadata'> & {
  readonly codec: CompressionCodec
  readonly timestampUnit: 'MICROS' | 'MILLIS'
}

/**
 * The end of a Parquet file. Its version is 1: the number has no meaning, but some readers reject any other.
 * @throws ExportError `damaged` when a row group's `meta` is invalid
 */
export function parquetFooter(
  plan: FooterPlan,
  rowGroups: readonly WrittenRowGroup[],
): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter()
  const filled = rowGroups
    .filter(({ rows }) => rows > 0)
    .map((rowGroup) => ({ ...rowGroup, metas: parseRowGroupMeta(rowGroup.meta, plan.columns.length) }))
  const sortedBy = plan.columns.findIndex((_, i) => areAscending(filled.map(({ metas }) => metas[i]!)))
  const metadata: FileMetaData = {
    version: 1,
    created_by: plan.createdBy,
    schema: schemaOf(plan),
    num_rows: BigInt(filled.reduce((sum, { rows }) => sum + rows, 0)),
    row_groups: filled.map((rowGroup) => footerRowGroup(plan, rowGroup, sortedBy)),
    key_value_metadata: Object.entries(plan.fileMetadata).map(([key, value]) => ({ key, value })),
    metadata_length: 0,
  }
  // Not truncated: long values that begin alike differ only at their ends.
  writeMetadata(writer, metadata, MAX_STATISTIC_BYTES)
  writer.appendBytes(Buffer.from(MAGIC))
  return new Uint8Array(writer.getBytes())
}

function schemaOf({ columns, timestampUnit }: FooterPlan): SchemaElement[] {
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
  const field_id = fieldId(name)
  switch (type) {
    case 'int64':
      return [{ name, field_id, repetition_type, type: 'INT64' }]
    case 'boolean':
      return [{ name, field_id, repetition_type, type: 'BOOLEAN' }]
    case 'text':
      return [{ name, field_id, repetition_type, ...STRING }]
    case 'timestamp':
      return [
        {
          name,
          field_id,
          repetition_type,
          type: 'INT64',
          converted_type: `TIMESTAMP_${timestampUnit}`,
          logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: timestampUnit },
        },
      ]
    case 'list':
      return [
        {
          name,
          field_id,
          repetition_type,
          num_children: 1,
          converted_type: 'LIST',
          logical_type: { type: 'LIST' },
        },
        { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
        { name: 'element', field_id: elementFieldId(name), repetition_type: 'OPTIONAL', ...STRING },
      ]
  }
}

const STRING = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const

/**
 * Whether all rows of the file are in order of this column. In the format, the order is that of each row group. Some
 * readers understand it as the order of the whole file.
 */
function areAscending(metas: readonly ColumnChunkMeta[]): boolean {
  let last = Number.NEGATIVE_INFINITY
  for (const { ascending, min_max } of metas) {
    if (!ascending || typeof min_max?.min !== 'number' || typeof min_max.max !== 'number') return false
    if (min_max.min < last) return false
    last = min_max.max
  }
  return metas.length > 0
}

type FilledRowGroup = WrittenRowGroup & { readonly metas: RowGroupMeta }

/** @param sortedBy index of the column that all rows are in order of, or -1 */
function footerRowGroup(plan: FooterPlan, rowGroup: FilledRowGroup, sortedBy: number): RowGroup {
  const { metas } = rowGroup
  const sum = (key: 'raw' | 'stored'): bigint => BigInt(metas.reduce((total, meta) => total + meta[key], 0))
  return {
    num_rows: BigInt(rowGroup.rows),
    total_byte_size: sum('raw'),
    total_compressed_size: sum('stored'),
    file_offset: BigInt(rowGroup.offset),
    ...(sortedBy >= 0 && {
      sorting_columns: [{ column_idx: sortedBy, descending: false, nulls_first: false }],
    }),
    columns: plan.columns.map((column, i) => columnChunk(plan.codec, column, metas[i]!, rowGroup.offset)),
  }
}

function columnChunk(
  codec: CompressionCodec,
  { name, type }: ColumnSpec,
  meta: ColumnChunkMeta,
  offset: number,
): RowGroup['columns'][number] {
  const at = (relative: number): bigint => BigInt(offset + relative)
  const { bloom, dictionary, min_max } = meta
  const encodings: Encoding[] = [...new Set<Encoding>(['RLE', meta.encoding])]
  if (dictionary !== null) encodings.push('PLAIN')
  return {
    // Deprecated, and 0 where only the footer has the metadata.
    file_offset: 0n,
    meta_data: {
      type: type === 'text' || type === 'list' ? 'BYTE_ARRAY' : type === 'boolean' ? 'BOOLEAN' : 'INT64',
      encodings,
      path_in_schema: type === 'list' ? [name, 'list', 'element'] : [name],
      codec,
      num_values: BigInt(meta.entries),
      total_uncompressed_size: BigInt(meta.raw),
      total_compressed_size: BigInt(meta.stored),
      data_page_offset: at(meta.data),
      ...(dictionary !== null && { dictionary_page_offset: at(dictionary) }),
      statistics: {
        null_count: BigInt(meta.nulls),
        ...(min_max !== null && {
          min_value: statistic(type, min_max.min),
          max_value: statistic(type, min_max.max),
        }),
      },
      ...(bloom !== null && {
        bloom_filter_offset: at(bloom.offset),
        bloom_filter_length: bloom.length,
      }),
    },
  }
}

/** Large integers are strings in the journal, whose JSON would round them. */
function statistic(type: ColumnType, value: number | string): bigint | string {
  return type === 'int64' || type === 'timestamp' ? BigInt(value) : String(value)
}

/** @throws ExportError `damaged` when the journal holds something else */
function parseRowGroupMeta(meta: JsonValue, columns: number): RowGroupMeta {
  const parsed = rowGroupMeta.safeParse(meta)
  if (parsed.success && parsed.data.length === columns) return parsed.data
  throw new ExportError({
    kind: 'damaged',
    what: 'The metadata of a row group in the checkpoint is invalid',
    where: '',
    next: 'Start again with --fresh.',
  })
}
