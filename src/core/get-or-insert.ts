/** The value of a key. If there is none, it is made and kept. `Map.prototype.getOrInsertComputed` is not in Node.js 20. */
export function getOrInsert<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
