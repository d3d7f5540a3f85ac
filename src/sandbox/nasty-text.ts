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
