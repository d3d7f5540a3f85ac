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
/**
 * Texts that break careless exporters: quotes and line ends for CSV, formula characters for spreadsheets,
 * surrogates and direction marks for encoders, lengths for buffers. All harmless.
 */
export const NASTY_TEXTS: readonly string[] = [
  'say "hello", she said',
  'line one\nline two',
  'windows\r\nline end',
  'lone\rreturn',
  '\ttab first',
  '=1+1',
  '+49 30 000000',
  '-2+3',
  '@sum(A1:A9)',
  '"',
  "it's; DROP --",
  'comma,comma,,',
  ' blank around ',
  '',
  'null',
  'bell\u0007 escape\u001b[31m del\u007f unit\u001f',
  'snow ☃ rocket 🚀 family 👩‍👩‍👧',
  'مرحبا \u202eright to left\u202c שלום',
  'Zoë Ångström ñandú',
  'e\u0301 combining \u200bzero width \ufeffmark',
  'line\u2028separator\u2029paragraph \u0085next',
  'lone high \ud83d end',
  '\udc00 lone low',
  '{"json":"inside"}',
  '<b>bold</b> &amp;',
  '%00%0a $HOME `x`',
  '\\N \\ \\"',
  '漢字かなカナ',
  'x'.repeat(20_000),
  '長い🧵'.repeat(2_000),
]

/** The same as JSON text. A lone surrogate travels as an escape (`\ud83d`), as it does on the wire. */
export const NASTY_JSON: readonly string[] = NASTY_TEXTS.map((text) => JSON.stringify(text))

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

function without(item: Loose, key: string): Loose {
  const { [key]: _dropped, ...rest } = item
  return rest
}
