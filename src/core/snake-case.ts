/** A record by the names that scripts read: `searchesPer1000Rows` becomes `searches_per_1000_rows`, `keySha256` `key_sha256`. */
export function inSnakeCase<V>(record: Readonly<Record<string, V>>): Readonly<Record<string, V>> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name.replace(/\d+(?=[A-Z])|[A-Z]/g, (part) => `_${part.toLowerCase()}`),
      value,
    ]),
  )
}
