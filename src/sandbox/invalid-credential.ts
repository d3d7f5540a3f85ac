type Loose = Record<string, unknown>

/**
 * Breaks one rule of the schema in a credential's JSON text; which one follows from `bits`. Sometimes the
 * item is no object at all. The secret, where it survives, still must not reach a log.
 */
export function breakCredential(text: string, bits: number): string {
  const item = JSON.parse(text) as Loose
  const broken = WAYS[bits % WAYS.length]!(item)
  return JSON.stringify(broken)
}

const WAYS: ReadonlyArray<(item: Loose) => unknown> = [
  (item) => ({ ...item, id: String(item.id) }),
  (item) => without(item, 'imported_at'),
  (item) => ({ ...item, imported_at: 'yesterday' }),
  (item) => ({ ...item, imported_at: 1_721_676_352 }),
  (item) => ({ ...item, identity_name: null }),
  (item) => without(item, 'identity_name'),
  (item) => ({ ...item, hash: { value: item.hash } }),
  (item) => ({ ...item, hash_type: 5 }),
  (item) => ({ ...item, source_id: 77 }),
  (item) => ({ ...item, source: 'a leak' }),
  (item) => ({ ...item, source: { ...(item.source as Loose | null), is_alert_enabled: 'yes' } }),
  (item) => ({ ...item, id: 0.5 }),
  (item) => without(item, 'id'),
  (item) => [item],
  () => null,
  (item) => String(item.hash),
]

function without(item: Loose, key: string): Loose {
  const { [key]: _dropped, ...rest } = item
  return rest
}
