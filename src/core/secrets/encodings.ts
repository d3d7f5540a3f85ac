import { decodeHTML } from 'entities/decode'

/**
 * Whether `isTrue` holds for a string or any decoding of it: percent, quoted-printable, backslash and HTML escapes, hex
 * and base64 (at any offset of a longer string), UTF-16, UTF-8 read as Latin-1, and nested encodings up to three levels.
 * All possible decodings are tried, so most strings that `isTrue` receives are meaningless.
 * @returns true also if there are more decodings than an ordinary string has
 */
export function inAnyEncoding(text: string, isTrue: (text: string) => boolean): boolean {
  const seen = new Set<string>()
  let budget = MAX_EXAMINED
  const found = (candidate: string, depth: number): boolean => {
    if (candidate === '' || seen.has(candidate)) return false
    seen.add(candidate)
    budget -= candidate.length
    if (budget < 0 || isTrue(candidate)) return true
    if (depth === 0) return false
    if (UNESCAPES.some((undo) => found(undo(candidate), depth - 1))) return true
    return BINARIES.some((decode) => {
      const parts = decode(candidate)
      return (
        parts.length > 0 &&
        (CHARSETS.some((charset) => found(joined(parts, charset), 0)) ||
          // Nearly every word is valid base64, so only printable bytes are decoded further.
          found(joined(parts.filter(isPrintable), 'utf8'), depth - 1))
      )
    })
  }
  return found(text, MAX_DEPTH)
}

/**
 * The same without hex, base64 and UTF-16.
 */
export function inAnyEscape(text: string, isTrue: (text: string) => boolean): boolean {
  const seen = new Set<string>()
  const found = (candidate: string, depth: number): boolean => {
    if (candidate === '' || seen.has(candidate)) return false
    seen.add(candidate)
    if (isTrue(candidate)) return true
    return depth > 0 && UNESCAPES.some((undo) => found(undo(candidate), depth - 1))
  }
  return found(text, MAX_DEPTH)
}

const MAX_DEPTH = 3
/** Characters of all candidates together. */
const MAX_EXAMINED = 8_000_000

/** Separates parts that were not adjacent. */
const BETWEEN = '\u{FFFD}'

const CHARSETS = ['utf8', 'utf16le', 'utf16be'] as const

function joined(parts: readonly Buffer[], charset: (typeof CHARSETS)[number]): string {
  return parts.map((part) => textIn(part, charset)).join(BETWEEN)
}

function textIn(bytes: Buffer, charset: (typeof CHARSETS)[number]): string {
  if (charset === 'utf8') return bytes.toString('utf8')
  const whole = bytes.subarray(0, bytes.length & ~1)
  return (charset === 'utf16le' ? whole : Buffer.from(whole).swap16()).toString('utf16le')
}

/** Mostly printable ASCII, with or without a zero after each character. */
function isPrintable(bytes: Buffer): boolean {
  let printable = 0
  for (const byte of bytes) if (byte === 0 || (byte >= 0x20 && byte < 0x7f)) printable++
  return bytes.length >= 3 && printable >= bytes.length * 0.8
}

/** Each undoes one kind of escape alone: characters of the text may look like an escape of another kind. */
const UNESCAPES: readonly ((text: string) => string)[] = [
  (text) => unescapePercent(text, asUtf8),
  (text) => unescapePercent(text, (bytes) => bytes),
  unescapeQuotedPrintable,
  (text) => unescapeBackslash(text, JSON_ESCAPE),
  (text) => unescapeBackslash(text, C_ESCAPE),
  unescapeHtml,
  asUtf8,
]

/**
 * `%C3%A9`; or what JavaScript's `escape` makes, which are Latin-1 characters: `%E9`, `%u20AC`.
 * @param textOf bytes, as Latin-1 characters, in their charset
 */
function unescapePercent(text: string, textOf: (bytes: string) => string): string {
  if (!text.includes('%')) return text
  return text.replace(/%u([0-9a-f]{4})|(?:%[0-9a-f]{2})+/gi, (run, unicode) =>
    unicode === undefined ? textOf(bytesOf(run)) : character(Number.parseInt(unicode, 16)),
  )
}

/** `=C3=A9`, and lines that `=` continues. */
function unescapeQuotedPrintable(text: string): string {
  if (!text.includes('=')) return text
  return text.replace(/=[ \t]*\r?\n/g, '').replace(/(?:=[0-9a-f]{2})+/gi, (run) => asUtf8(bytesOf(run)))
}

/** Of `%C3%A9` or `=C3=A9`: a character for each byte. */
function bytesOf(run: string): string {
  return Buffer.from(run.replace(/[%=]/g, ''), 'hex').toString('latin1')
}

/** `\u00e9`, `\u{e9}`, `\xe9`, `\x{e9}`, `\n`, `\"`; also in capitals: `\U00E9`. */
const JSON_ESCAPE = /\\([ux]\{0*[0-9a-f]{1,6}\}|u[0-9a-f]{4}|x[0-9a-f]{2}|.)/gis
/** The same with `\U000000e9` and `\303\251`. JSON and SQL have none: a digit after their `\\` or `\0` is text. */
const C_ESCAPE =
  /\\([uUxX]\{0*[\da-fA-F]{1,6}\}|U[\da-fA-F]{8}|u[\da-fA-F]{4}|[xX][\da-fA-F]{2}|[0-3]?[0-7]{1,2}|.)/gs

function unescapeBackslash(text: string, pattern: RegExp): string {
  if (!text.includes('\\')) return text
  return text.replace(pattern, (_, escaped: string) => {
    if (escaped.length === 1) return CONTROLS.get(escaped.toLowerCase()) ?? escaped
    if (/^[0-7]/.test(escaped)) return character(Number.parseInt(escaped, 8))
    return character(Number.parseInt(escaped.replace(/^.\{?/, ''), 16))
  })
}

const CONTROLS: ReadonlyMap<string, string> = new Map(
  Object.entries({ n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', v: '\v', 0: '\0' }),
)

/** Undoes `&eacute;`, `&#233;` and `&#xe9;`; also without the semicolon, as browsers do, and in capitals. */
function unescapeHtml(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(
    /&(?:#0*(\d{1,7})|#x0*([0-9a-f]{1,6})|[a-z][a-z0-9]{1,31});?/gi,
    (found, decimal, hex) => {
      if (decimal !== undefined) return numbered(Number(decimal))
      return hex === undefined ? named(found) : numbered(Number.parseInt(hex, 16))
    },
  )
}

/** Halves of a surrogate pair are kept, since some software writes each as a number. */
function numbered(codePoint: number): string {
  // Numbers of Windows-1252 are common; HTML defines them so (13.2.5.80).
  if (codePoint >= 0x80 && codePoint <= 0x9f) return WINDOWS_1252[codePoint - 0x80]!
  return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : ''
}

function named(found: string): string {
  const character = decodeHTML(found)
  return character === found ? decodeHTML(found.toLowerCase()) : character
}

/** The characters that Windows-1252 has at 0x80 to 0x9f; where it has none, the control character. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** UTF-8 that was read as Latin-1 or Windows-1252: a lead byte, and as many others as it announces. */
function asUtf8(text: string): string {
  if (!/[\xc2-\xf4]/.test(text)) return text
  return text.replace(MISREAD, (run) => Buffer.from(run.replace(NOT_LATIN_1, byteOf), 'latin1').toString())
}

const NEXT = `[\x80-\xbf${WINDOWS_1252}]`
const MISREAD = new RegExp(`[\xc2-\xdf]${NEXT}|[\xe0-\xef]${NEXT}{2}|[\xf0-\xf4]${NEXT}{3}`, 'g')
const NOT_LATIN_1 = /[^\0-\xff]/g

function byteOf(character: string): string {
  return String.fromCharCode(0x80 + WINDOWS_1252.indexOf(character))
}

function character(codePoint: number): string {
  return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : ''
}

/** Decodes every run of a string that may be encoded bytes, at every offset at which they may begin. */
const BINARIES: readonly ((text: string) => readonly Buffer[])[] = [
  ...[0, 1, 2, 3].map((skip) => runs(/[a-z0-9+/_-]{2,}/gi, (run) => Buffer.from(run.slice(skip), 'base64'))),
  ...[0, 1].map((skip) => runs(/[0-9a-f]{2,}/gi, (run) => Buffer.from(run.slice(skip), 'hex'))),
  // `68:75 6e`, `0x68, 0x75`
  runs(/(?:(?:0x)?[0-9a-f]{2}[\s:,;-]+)+(?:0x)?[0-9a-f]{2}/gi, (run) =>
    Buffer.from(run.replace(/0x|[^0-9a-f]/gi, ''), 'hex'),
  ),
]

function runs(pattern: RegExp, decode: (run: string) => Buffer): (text: string) => readonly Buffer[] {
  return (text) => (text.match(pattern) ?? []).map(decode).filter((bytes) => bytes.length > 0)
}
