import { domainToASCII } from 'node:url'

/**
 * The normal form of an identity: what is compared and digested, so that all spellings of a person are one. In Unicode
 * normalization form C, without characters that nobody sees, a leading `mailto:` and white space at its ends, case folded,
 * and of an e-mail address the domain in ASCII without a final dot. The form of a form is itself.
 *
 * Case folded is lower case by Unicode's default mapping of any language, with ς as σ: which of them stands for Σ depends on
 * its place in the word. ß and ss, ı and i stay different, as they are to mail servers.
 */
export function normalIdentity(identity: string): string {
  if (PLAIN.test(identity)) return identity.toLowerCase()
  const text = identity.toWellFormed().replace(IGNORABLE, '').normalize('NFC').replace(MAILTO, '').trim()
  const at = text.lastIndexOf('@')
  if (at <= 0) return folded(text)
  const domain = withoutEnd(text.slice(at + 1), FINAL_DOT)
  const ascii = TO_ASCII.test(domain) ? domainToASCII(lower(domain)) : ''
  return `${folded(text.slice(0, at))}@${ascii === '' ? folded(domain) : ascii}`
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

/**
 * Letter by letter, so that Σ is σ wherever it is: ς is another letter in domains. Without it capitals such as ẞ would
 * depend on the version of Unicode.
 */
function lower(domain: string): string {
  return Array.from(domain, (letter) => letter.toLowerCase()).join('')
}

function folded(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}

/** Nearly all are of this form: in them only the case matters. */
const PLAIN = /^(?!mailto:|.*xn--)[\x21-\x7e]*(?<!\.)$/i

/** Host names that IDNA may change. What others have beside would be cut off or decoded, or read as an IP address. */
const TO_ASCII = /^(?=.*(?:[^\0-\x7f]|xn--))(?=.*\p{L})[\p{L}\p{M}\p{N}._。．｡·・׳״͵-]+$/iu

/**
 * Brings the UTF-8 text at [start, end) into normal form in place, if it is plain: ASCII without white space or encoded
 * labels, as nearly all are.
 * @returns false when it is another text; its form is still the same
 */
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
