/**
 * An integer of 64 bits: a plain number where a double holds it for certain (below 2^53), else a bigint. There is
 * one form for each, so equal ones are `===`, and `<` and `>` order any two.
 */
export type Int64 = number | bigint

/** The same where it has to be JSON: large ones as their digits, which most readers of JSON would round. */
export type Int64Json = number | string

export const MIN_INT64 = -(2n ** 63n)
export const MAX_INT64 = 2n ** 63n - 1n

/** The one form of an integer; one that a double holds may be beyond 2^53. */
export function int64(value: number | bigint): Int64 {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) || !Number.isInteger(value) ? value : BigInt(value)
  }
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
}

export function int64ToJson(value: Int64): Int64Json {
  return typeof value === 'number' ? value : String(value)
}

export function int64FromJson(value: Int64Json): Int64 {
  return typeof value === 'number' ? value : int64(BigInt(value))
}
