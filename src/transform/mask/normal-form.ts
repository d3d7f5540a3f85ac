import { domainToASCII, domainToUnicode } from 'node:url'

/**
 * All spellings of a person have one form: in NFC, without invisible characters, a leading `mailto:` and white space at
 * the ends, case folded, the domain of an e-mail address in ASCII without a final dot. The form of a form is itself.
 * ς is σ: which of them stands for Σ depends on its place in the word. ß and ss, ı and i differ, as for mail servers.
 */
export function normalIdentity(identity: string): string {
  if (PLAIN.test(identity)) return identity.toLowerCase()
  const text = identity.toWellFormed().replace(IGNORABLE, '').normalize('NFC').replace(MAILTO, '').trim()
  const at = text.lastIndexOf('@')
  if (at <= 0) return folded(text)
  const domain = withoutEnd(text.slice(at + 1), FINAL_DOT)
  return `${folded(text.slice(0, at))}@${asciiOf(domain) || folded(domain)}`
}

/** Characters without a picture: zero-width spaces, marks of direction, soft hyphens, variation selectors. */
export const IGNORABLE = /\p{Default_Ignorable_Code_Point}+/gu
const MAILTO = /^\s*(?:mailto:\s*)+/i
const FINAL_DOT = /[\s.\u3002\uff0e\uff61]/

/** A text without the characters of a kind at its end. A regular expression would look at each run of them again and again. */
export function withoutEnd(text: string, kind: RegExp): string {
  let end = text.length
  while (end > 0 && kind.test(text[end - 1]!)) end--
  return text.slice(0, end)
}

/** By UTS 46; empty: it is no domain. Its punycode may hide ignorable characters. */
function asciiOf(domain: string): string {
  if (PLAIN.test(domain) || NO_DOMAIN.test(domain)) return ''
  const shown = domainToUnicode(domainToASCII(lower(domain) + NAME)).replace(IGNORABLE, '')
  return withoutEnd(domainToASCII(shown).slice(0, -NAME.length), FINAL_DOT)
}

/** Where a URL would decode it, or cut it off. */
const NO_DOMAIN = /[%/?#\\\t\r\n]/
/** A last label that is a name: with a number there it would be read as an IP address. */
const NAME = '.x'

/** By letter: Σ is σ anywhere, for ς is another letter in domains, and ẞ does not depend on the version of Unicode. */
function lower(domain: string): string {
  return Array.from(domain, (letter) => letter.toLowerCase()).join('')
}

function folded(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}

/** Nearly all are of this form: in them only the case matters. */
const PLAIN = /^(?!mailto:|.*xn--)[\x21-\x7e]*(?<!\.)$/i

/** In place, if the text is plain ASCII, as nearly all are. @returns false when it is another; its form is the same */
export function normalizePlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte < 0x21 || byte > 0x7e) return false
    if (byte >= UPPER_A && byte <= UPPER_Z) bytes[i] = byte | 0x20
    else if (byte === HYPHEN && i - start >= 3 && bytes[i - 1] === HYPHEN && isPrefix(bytes, i - 3))
      return false
    else if (byte === COLON && i - start === MAILTO_LENGTH && isMailto(bytes, start)) return false
  }
  return bytes[end - 1] !== DOT || end === start
}

const UPPER_A = 0x41
const UPPER_Z = 0x5a
const HYPHEN = 0x2d
const COLON = 0x3a
const DOT = 0x2e
const MAILTO_LENGTH = 'mailto'.length

/** Whether `xn` stands there, which begins an encoded label. */
function isPrefix(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0x78 && bytes[at + 1] === 0x6e
}

function isMailto(bytes: Uint8Array, start: number): boolean {
  return Buffer.from(bytes.subarray(start, start + MAILTO_LENGTH)).toString('latin1') === 'mailto'
}
