import { type Int64Json, int64, int64ToJson, type TextVector } from '../../../core/index.ts'
import { textAt } from '../record-batch-column.ts'

/** Longer strings get no min/max statistics: they would make the footer large. */
export const MAX_STATISTIC_BYTES = 256

/** Least and greatest number; null: there are no numbers. */
export function numberMinMax(values: Float64Array): { min: number; max: number } | null {
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

/** The same for 64-bit integers; {@link minMaxAsJson} turns them into JSON. */
export function int64MinMax(values: BigInt64Array): { min: bigint; max: bigint } | null {
  if (values.length === 0) return null
  let min = values[0]!
  let max = min
  for (const value of values) {
    if (value < min) min = value
    else if (value > max) max = value
  }
  return { min, max }
}

export function minMaxAsJson(
  minMax: { min: bigint; max: bigint } | null,
): { min: Int64Json; max: Int64Json } | null {
  return minMax === null ? null : { min: int64ToJson(int64(minMax.min)), max: int64ToJson(int64(minMax.max)) }
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
