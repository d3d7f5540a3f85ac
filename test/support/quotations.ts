import fc from 'fast-check'

/*
 * Passwords that are hard to recognise, and the ways in which software quotes them. The encoders are written without
 * the decoders of `src/core/secrets/`, so that a mistake there is not made twice.
 */

const units = (text: string): readonly number[] =>
  Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))
const points = (text: string): readonly number[] => [...text].map((character) => character.codePointAt(0)!)
const digits = (code: number, length: number, radix = 16): string =>
  code.toString(radix).padStart(length, '0')
const isPlain = (code: number): boolean =>
  code >= 0x20 && code < 0x7f && !'"\'\\&<>=%'.includes(String.fromCharCode(code))

/** Escapes what is not plain, or everything. */
function escaping(
  write: (code: number) => string,
  by: (text: string) => readonly number[] = points,
  all = false,
) {
  return (text: string): string =>
    by(text)
      .map((code) => (isPlain(code) && !all ? String.fromCodePoint(code) : write(code)))
      .join('')
}

const latin1 = (text: string): readonly number[] => [...Buffer.from(text)]
const u4 = (code: number): string => `\\u${digits(code, 4)}`
const json = (text: string): string => JSON.stringify(text).slice(1, -1)
const asciiJson = (text: string): string => json(text).replace(/[^ -~]/g, (found) => u4(found.charCodeAt(0)))
/** As PHP's `htmlentities` and Python's `html.entities` name them. */
const NAMES: Readonly<Record<string, string>> = {
  é: 'eacute', è: 'egrave', ï: 'iuml', ü: 'uuml', ñ: 'ntilde', ç: 'ccedil', å: 'aring', ø: 'oslash', ß: 'szlig', æ: 'aelig',
  É: 'Eacute', Ü: 'Uuml', Ø: 'Oslash', '€': 'euro', '£': 'pound', '§': 'sect', '¿': 'iquest', ł: 'lstrok', ő: 'odblac', č: 'ccaron',
  ж: 'zhcy', п: 'pcy', Š: 'Scaron', '†': 'dagger', '‡': 'Dagger', '♥': 'hearts', '∞': 'infin', '★': 'starf', '™': 'trade', '!': 'excl', λ: 'lambda', '"': 'quot', "'": 'apos', '&': 'amp', '<': 'lt', '>': 'gt', '=': 'equals', '%': 'percnt', '\\': 'bsol',
} // biome-ignore format: a table
const named = escaping((code) => {
  const name = NAMES[String.fromCodePoint(code)]
  return name === undefined ? `&#${code};` : `&${name};`
})

/** The forms in which a secret is looked for. */
export const FORMS: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => secret,
  'in capitals': (secret) => secret.toUpperCase(),
  'as JSON': json,
  'as ASCII JSON': asciiJson,
  'as ASCII JSON, digits in capitals': (secret) =>
    asciiJson(secret).replace(/\\u[0-9a-f]{4}/g, (found) => `\\u${found.slice(2).toUpperCase()}`),
  'as JSON with everything escaped': escaping(u4, units, true),
  'percent-encoded': (secret) => encodeURIComponent(secret.toWellFormed()),
  'percent-encoded in small letters': (secret) =>
    encodeURIComponent(secret.toWellFormed()).replace(/%../g, (found) => found.toLowerCase()),
  'percent-encoded all over': escaping((code) => `%${digits(code, 2)}`, latin1, true),
  'as a parameter of a URL': (secret) =>
    `https://shop.test/login?a=b&password=${encodeURIComponent(secret.toWellFormed())}&c=d`,
  'as a form': (secret) => new URLSearchParams({ password: secret.toWellFormed() }).toString(),
}

/** Codes need no escapes; a string of fewer bytes than four is not looked for in them. */
export const CODES: Readonly<Record<string, (secret: string) => string>> = {
  'as base64': (secret) => Buffer.from(secret).toString('base64'),
  'as base64 without padding': (secret) => Buffer.from(secret).toString('base64').replace(/=+$/, ''),
  'as base64url': (secret) => Buffer.from(secret).toString('base64url'),
  'as base64 one byte on': (secret) => Buffer.from(`:${secret}`).toString('base64'),
  'as base64 two bytes on': (secret) => Buffer.from(`u:${secret};x`).toString('base64'),
  'as base64 glued to a word': (secret) => `value${Buffer.from(secret).toString('base64')}`,
  'as base64 in a URL': (secret) =>
    `?auth=${encodeURIComponent(Buffer.from(`ab:${secret}`).toString('base64'))}`,
  'as hex': (secret) => Buffer.from(secret).toString('hex'),
  'as hex in capitals': (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  'as hex after an odd digit': (secret) => `f${Buffer.from(secret).toString('hex')}`,
}

/** In these no secret is looked for: where they may turn up, no text is shown at all. */
export const OTHER_SPELLINGS: Readonly<Record<string, (secret: string) => string>> = {
  'as ASCII JSON in JSON': (secret) => json(asciiJson(secret)),
  'as ASCII JSON in JSON in JSON': (secret) => json(json(asciiJson(secret))),
  'as braced code points': escaping((code) => `\\u{${code.toString(16)}}`),
  'as code points of eight digits': escaping((code) => `\\U${digits(code, 8)}`),
  'as UTF-8 bytes in hex': escaping((code) => `\\x${digits(code, 2)}`, latin1),
  'as Python writes it': escaping((code) =>
    code < 0x100 ? `\\x${digits(code, 2)}` : code < 0x10000 ? u4(code) : `\\U${digits(code, 8)}`,
  ),
  'as UTF-8 bytes in octal': escaping((code) => `\\${digits(code, 3, 8)}`, latin1),
  'percent-encoded twice': (secret) => encodeURIComponent(encodeURIComponent(secret.toWellFormed())),
  "by JavaScript's escape": escape,
  'as quoted-printable': escaping((code) => `=${digits(code, 2).toUpperCase()}`, latin1),
  'as HTML names': named,
  'as HTML numbers': escaping((code) => `&#${code};`),
  'as HTML numbers in hex': escaping((code) => `&#x${digits(code, 4)};`),
  'as HTML names, encoded again': (secret) => named(secret).replaceAll('&', '&amp;'),
  'as percent in JSON': (secret) => json(encodeURIComponent(secret.toWellFormed())),
  'as UTF-8 taken for Latin-1': (secret) => Buffer.from(secret).toString('latin1'),
  'as UTF-8 taken for Windows-1252': (secret) => new TextDecoder('windows-1252').decode(Buffer.from(secret)),
  'with words between': (secret) => [...secret].join(' and then '),
  'by its beginning': (secret) => [...secret].slice(0, -1).join(''),
}

/** Each is at the edge of some rule: hex digits, letters or escapes after an escape, few letters, several planes. */
export const HARD_SECRETS: readonly string[] = [
  'Québec2024', 'naïveté', 'Zoë1', 'façade', 'déad', 'bébé', 'éa', 'éééé', 'ü12ab', 'Ærøskøbing', 'łódź99', 'ő9f', 'Straße=de', 'piña%41', 'señor=C3',
  '😀2024', '🔑🔑', 'a🔑bc', '𝔭𝔴99', '密码123', 'пароль1', 'жук', 'λόγος7', 'pass\u00a0word', 'tab\there1', 'nul\x0a3', 'line\nfeed', 'e\u0301te\u0301', '\u00e9\u0301\u0302\u0303',
  'dave@corp.test', 'Cafe2024!$', '100%25', '%41%42', 'a=da=fe', '=3D=3D', 'x&eacute;y', '&amp;&lt;', '&#233;9', 'AT&T=1', '\\u00e9', 'C:\\new\\x41', '★Š♥†', '‡∞™é', '\\\\\\\\', '""""', "'`\"\\", '+-_=', '+/+/', '" "a', "p'w\"", '<>"&', '(){}',
  'abcd', 'P@s5', 'pass1', 'hunter', 'Zz9-_', '12345678', '0612345678', '1e10', '-1234567', '{"a":1}', '[1,2,3]', '1,2,3,4', 'true', 'null', 'a:b"c', 'ab\ud83dcd', '\udc00xyz1', '€uro', '£5§¿', "O'Brien", 'c:\\temp\\007', 'Ünïcödé', 'ⅷⅸⅹⅻ', 'ﬃﬃ', 'İstanbul', 'ǅungla',
] // biome-ignore format: a list

const UNPLEASANT = [
  ...'abcdefABCDEF0123456789', ...'"\'\\&%=+-_/`;:#<>{}[]()@!$ \t', ...'éïüßøñçžłőœ€£ÿÃŠ†‡♥∞★™', ...'жпλΩ密码한ｱ', '😀', '🔑', '𝔭', '\u0301', '\u200b', '\u00a0', '\u2028', '\0', '\ud83d', '\ude00', '\ufffd',
  '\\u', '\\x', '%u', '%C3', '=C3', '&#', '&amp;', '\\"', 'u00e9', '4',
] // biome-ignore format: a list

/** Passwords of at least four characters, which is what is looked for within a string. */
export const unpleasantSecret: fc.Arbitrary<string> = fc
  .array(fc.constantFrom(...UNPLEASANT), { minLength: 1, maxLength: 14 })
  .map((parts) => parts.join(''))
  .filter((text) => text.trim().length >= 4)
