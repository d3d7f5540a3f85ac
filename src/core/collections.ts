/** The value of a key. If there is none, it is made and kept. `Map.prototype.getOrInsertComputed` is not in Node.js 20. */
export function getOrInsert<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}

/** Items together, in their order; with the last one of a group it is as large as `limit`. */
export function* inGroups<T>(
  items: Iterable<T>,
  limit: number,
  sizeOf: (item: T) => number = () => 1,
): Generator<readonly T[]> {
  let group: T[] = []
  let size = 0
  for (const item of items) {
    group.push(item)
    size += sizeOf(item)
    if (size < limit) continue
    yield group
    group = []
    size = 0
  }
  if (group.length > 0) yield group
}

/** A plain number if a double is exact (below 2^53), else a bigint. Equal ones are `===`; `<` and `>` order any two. */
export type Int64 = number | bigint

/** The same for JSON: bigints are strings of digits, because most JSON readers would round them. */
export type Int64Json = number | string

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
