import { type Encodings, int64 } from '../../../core/index.ts'
import type { Int64Vector, IntegerVector, NumberVector, TextVector } from '../../../rows/index.ts'
import type { ByteBuffer } from '../byte-buffer.ts'
import type { ColumnChunk, MinMax } from '../encoder.ts'
import { type RecordBatchColumn, textAt, totalRows, type VectorOf } from '../record-batch-column.ts'
import { bitWidthOf, codeNumbers, codeTexts } from './dictionary.ts'
import {
  fitsDelta,
  writeDeltaBinaryPacked,
  writeHybrid,
  writePacked,
  writePlainBoolean,
  writePlainInt64,
  writePlainTexts,
} from './encodings.ts'
import { MAX_STATISTIC_BYTES } from './footer.ts'
import { presentTexts, presentValues, scratch } from './rows.ts'

/** The values that are not null, in order. Valid until `freeScratch`. */
export type LeafValues = {
  readonly count: number
  readonly encoding: ColumnChunk['encoding']
  /** The dictionary page, if values are encoded as codes. */
  readonly dictionary: { readonly count: number; write(out: ByteBuffer): void } | null
  /** null: there are no values, or they may not be shown. */
  readonly minMax: MinMax | null
  write(out: ByteBuffer): void
}

/** With plain encodings there is no dictionary: some readers support dictionaries of strings only. */
export function numberValues(
  columns: readonly RecordBatchColumn<IntegerVector>[],
  encodings: Encodings,
): LeafValues {
  const coded = encodings === 'plain' ? null : codeNumbers(columns)
  if (coded === null) {
    return areDoubles(columns)
      ? plainNumbers(presentValues(columns, scratch(Float64Array, totalRows(columns))), encodings)
      : largeNumbers(presentValues(columns.map(asInt64), new BigInt64Array(totalRows(columns))), encodings)
  }
  const { dictionary, codes } = coded
  const write = (out: ByteBuffer): void => writePlainInt64(out, dictionary)
  return {
    ...codedValues(codes, { count: dictionary.length, write }, encodings),
    minMax: dictionary instanceof BigInt64Array ? exact(int64MinMax(dictionary)) : numberMinMax(dictionary),
  }
}

function areDoubles(
  columns: readonly RecordBatchColumn<IntegerVector>[],
): columns is readonly RecordBatchColumn<NumberVector>[] {
  return columns.every(({ values }) => values.kind === 'number')
}

function asInt64({ values, ...column }: RecordBatchColumn<IntegerVector>): RecordBatchColumn<Int64Vector> {
  return {
    ...column,
    values: { ...values, kind: 'int64', values: BigInt64Array.from(values.values, BigInt) },
  }
}

function plainNumbers(present: Float64Array, encodings: Encodings): LeafValues {
  const minMax = numberMinMax(present)
  const delta = encodings === 'compact' && (minMax === null || fitsDelta(minMax.min, minMax.max))
  const write = delta ? writeDeltaBinaryPacked : writePlainInt64
  return {
    count: present.length,
    encoding: delta ? 'DELTA_BINARY_PACKED' : 'PLAIN',
    dictionary: null,
    minMax,
    write: (out) => write(out, present),
  }
}

/** Integers beyond 2^53: also as deltas, if their differences to the least one fit into a double. */
function largeNumbers(present: BigInt64Array, encodings: Encodings): LeafValues {
  const minMax = int64MinMax(present)
  const base = minMax?.min ?? 0n
  const delta = encodings === 'compact' && (minMax === null || fitsDelta(0, Number(minMax.max - base)))
  const above = delta ? Float64Array.from(present, (value) => Number(value - base)) : null
  return {
    count: present.length,
    encoding: delta ? 'DELTA_BINARY_PACKED' : 'PLAIN',
    dictionary: null,
    minMax: exact(minMax),
    write: (out) => {
      if (above === null) writePlainInt64(out, present)
      else writeDeltaBinaryPacked(out, above, base)
    },
  }
}

export function booleanValues(columns: readonly RecordBatchColumn<VectorOf<'boolean'>>[]): LeafValues {
  const present = presentValues(columns, scratch(Uint8Array, totalRows(columns)))
  return {
    count: present.length,
    encoding: 'PLAIN',
    dictionary: null,
    minMax: null,
    write: (out) => writePlainBoolean(out, present),
  }
}

/** Strings with each of them at least once, for their statistics. */
type TextValues = LeafValues & { readonly distinct: TextVector }

export function textValues(
  columns: readonly RecordBatchColumn<TextVector>[],
  encodings: Encodings,
): TextValues {
  const coded = codeTexts(columns, encodings)
  if (coded === null) return uncodedTexts(presentTexts(columns), encodings)
  const { dictionary, codes } = coded
  const count = dictionary.offsets.length - 1
  const write = (out: ByteBuffer): void => writePlainTexts(out, dictionary)
  return { ...codedValues(codes, { count, write }, encodings), minMax: null, distinct: dictionary }
}

function uncodedTexts(distinct: TextVector, encodings: Encodings): TextValues {
  const { offsets, bytes } = distinct
  const count = offsets.length - 1
  const common = { count, dictionary: null, minMax: null, distinct }
  if (encodings === 'plain')
    return { ...common, encoding: 'PLAIN', write: (out) => writePlainTexts(out, distinct) }
  return {
    ...common,
    encoding: 'DELTA_LENGTH_BYTE_ARRAY',
    write: (out) => {
      const lengths = scratch(Float64Array, count)
      for (let i = 0; i < count; i++) lengths[i] = offsets[i + 1]! - offsets[i]!
      writeDeltaBinaryPacked(out, lengths)
      out.append(bytes)
    },
  }
}

function codedValues(
  codes: Uint32Array,
  dictionary: NonNullable<LeafValues['dictionary']>,
  encodings: Encodings,
): Pick<LeafValues, 'count' | 'encoding' | 'dictionary' | 'write'> {
  const bitWidth = bitWidthOf(dictionary.count)
  // Some readers read only the first byte of a run's value, or add its bytes up: longer values are packed without runs.
  const write = encodings === 'plain' && bitWidth > 8 ? writePacked : writeHybrid
  return {
    count: codes.length,
    // PLAIN_DICTIONARY is the older name of the same encoding. Some readers do not know the newer one.
    encoding: encodings === 'plain' ? 'PLAIN_DICTIONARY' : 'RLE_DICTIONARY',
    dictionary,
    write: (out) => {
      out.reserve(1)
      out.bytes[out.length++] = bitWidth
      if (codes.length > 0) write(out, codes, bitWidth)
    },
  }
}

function numberMinMax(values: Float64Array): { min: number; max: number } | null {
  if (values.length === 0) return null
  let min = values[0]!
  let max = min
  for (let i = 1; i < values.length; i++) {
    const value = values[i]!
    if (value < min) min = value
    else if (value > max) max = value
  }
  return { min, max }
}

function int64MinMax(values: BigInt64Array): { min: bigint; max: bigint } | null {
  if (values.length === 0) return null
  let min = values[0]!
  let max = min
  for (const value of values) {
    if (value < min) min = value
    else if (value > max) max = value
  }
  return { min, max }
}

/** As numbers where a double is exact. */
function exact(minMax: { min: bigint; max: bigint } | null): MinMax | null {
  return minMax === null ? null : { min: int64(minMax.min), max: int64(minMax.max) }
}

/** Least and greatest string by bytes, as Parquet orders strings; null: there are none, or one of them is long. */
export function stringMinMax(values: TextVector): { min: string; max: string } | null {
  const { offsets, bytes } = values
  if (offsets.length < 2) return null
  let min = 0
  let max = 0
  for (let i = 1; i + 1 < offsets.length; i++) {
    if (compare(bytes, offsets, i, min) < 0) min = i
    else if (compare(bytes, offsets, i, max) > 0) max = i
  }
  const isLong = (i: number): boolean => offsets[i + 1]! - offsets[i]! > MAX_STATISTIC_BYTES
  return isLong(min) || isLong(max) ? null : { min: textAt(values, min), max: textAt(values, max) }
}

function compare(bytes: Uint8Array, offsets: Uint32Array, a: number, b: number): number {
  const startA = offsets[a]!
  const startB = offsets[b]!
  const lengthA = offsets[a + 1]! - startA
  const lengthB = offsets[b + 1]! - startB
  const length = Math.min(lengthA, lengthB)
  for (let i = 0; i < length; i++) {
    const difference = bytes[startA + i]! - bytes[startB + i]!
    if (difference !== 0) return difference
  }
  return lengthA - lengthB
}
