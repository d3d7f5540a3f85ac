/**
 * Whether `isTrue` holds for a string or any decoding of it: percent, JSON and HTML escapes, hex and base64 (at any
 * offset of a longer string), UTF-16, UTF-8 read as Latin-1, and nested encodings up to three levels. All possible
 * decodings are tried, so most strings that `isTrue` receives are meaningless.
 * @returns true also if there are more decodings than an ordinary string has
 */
export function inAnyDisguise(text: string, isTrue: (text: string) => boolean): boolean {
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
 * The same for escapes alone: percent, JSON and HTML escapes, UTF-8 read as Latin-1, and nested escapes.
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

const UNESCAPES: readonly ((text: string) => string)[] = [unescapePercent, unescapeJson, unescapeHtml, asUtf8]

/** `%C3%A9`, `%u00e9` and quoted-printable's `=C3=A9`. */
function unescapePercent(text: string): string {
  return text
    .replace(/%u([0-9a-f]{4})/gi, (_, hex: string) => character(Number.parseInt(hex, 16)))
    .replace(/(?:[%=][0-9a-f]{2})+/gi, (run) => Buffer.from(run.replace(/[%=]/g, ''), 'hex').toString())
}

function unescapeJson(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\(?:u\{?([0-9a-f]{4,6})\}?|x([0-9a-f]{2})|(.))/gis, (_, unicode, hex, other) => {
    if (other === undefined) return character(Number.parseInt(unicode ?? hex, 16))
    return /[nrtbfv0]/i.test(other) ? ' ' : other
  })
}

function unescapeHtml(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));?/gi, (found, decimal, hex, name) => {
    if (decimal !== undefined) return character(Number(decimal))
    if (hex !== undefined) return character(Number.parseInt(hex, 16))
    // Comparisons ignore accents.
    const accented = /^([a-z])(?:acute|grave|circ|uml|tilde|cedil|ring|caron|slash)$/i.exec(name)?.[1]
    return accented ?? ENTITIES.get(name.toLowerCase()) ?? found
  })
}

/** Names of characters that passwords and tokens contain. Source: HTML standard, 13.5. */
const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    amp: '&',
    apos: "'",
    ast: '*',
    bsol: '\\',
    colon: ':',
    comma: ',',
    commat: '@',
    dollar: '$',
    equals: '=',
    excl: '!',
    grave: '`',
    gt: '>',
    hat: '^',
    lbrace: '{',
    lbrack: '[',
    lcub: '{',
    lowbar: '_',
    lpar: '(',
    lsqb: '[',
    lt: '<',
    nbsp: ' ',
    num: '#',
    percnt: '%',
    period: '.',
    plus: '+',
    quest: '?',
    quot: '"',
    rbrace: '}',
    rbrack: ']',
    rcub: '}',
    rpar: ')',
    rsqb: ']',
    semi: ';',
    sol: '/',
    szlig: 'ß',
    verbar: '|',
    vert: '|',
  }),
)

function asUtf8(text: string): string {
  return /^[\0-\xff]*[\x80-\xff][\0-\xff]*$/.test(text) ? Buffer.from(text, 'latin1').toString() : text
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
