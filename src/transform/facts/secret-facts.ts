import type { SecretFacts } from '../../core/index.ts'

/** Values of `secret_kind`, by their numbers here. */
export const SECRET_KINDS = ['plain', 'digest', 'empty'] as const

const PLAIN = 0
const DIGEST = 1
const EMPTY = 2

/** Numbers of {@link SECRET_KINDS}; plain secrets that meet the policy have one of their own. */
export const PLAIN_THAT_MEETS = SECRET_KINDS.length

/** What is known of a secret before it is masked: the number of its kind. The secret is the UTF-8 text at [start, end). */
export type FactsOf = (bytes: Buffer, start: number, end: number, saysDigest: boolean) => number

export function secretFacts({ policy }: SecretFacts): FactsOf {
  const meets = (points: number, classes: number): number =>
    points >= policy.minLength && COUNTS[classes]! >= policy.classes ? PLAIN_THAT_MEETS : PLAIN
  return (bytes, start, end, saysDigest) => {
    if (start === end) return EMPTY
    if (saysDigest || beginsAsDigest(bytes, start, end)) return DIGEST
    let found = 0
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!
      if (byte >= 0x80) return meets(...measured(bytes.toString('utf8', start, end)))
      found |= ASCII[byte]!
    }
    if ((found & NO_HEX) === 0 && HEX_LENGTHS.has(end - start)) return DIGEST
    return meets(end - start, found & CLASSES)
  }
}

/** Whether the type of a secret, as the service names it, says that it is a digest. Of unknown types nothing is said. */
export function saysDigest(hashType: string): boolean {
  return DIGEST_TYPES.test(hashType)
}

const DIGEST_TYPES =
  /hash|digest|crypt|hmac|salt|md[2-6]|sha(?![a-z])|ntlm|\blm\b|argon|pbkdf|blake|ripemd|whirlpool|tiger|gost|mysql|phpass/i

/** Of hexadecimal digests: MD5, SHA-1, SHA-224, SHA-256, SHA-384, SHA-512. */
const HEX_LENGTHS: ReadonlySet<number> = new Set([32, 40, 56, 64, 96, 128])

const PREFIXES = [
  ...['$2a$', '$2b$', '$2y$', '$argon2', '$6$', '$5$', '$1$', '$apr1$', '$y$', '{SHA}', '{SSHA}', 'pbkdf2'],
  // phpass in WordPress and phpBB; Drupal.
  ...['$P$', '$H$', '$S$'],
].map((text) => Buffer.from(text))
const FIRST_BYTES: ReadonlySet<number | undefined> = new Set(PREFIXES.map((prefix) => prefix[0]))
const STAR = 0x2a
const OF_MYSQL = /^\*[0-9A-F]{40}$/

function beginsAsDigest(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[start] === STAR) return end - start === 41 && OF_MYSQL.test(bytes.toString('latin1', start, end))
  if (!FIRST_BYTES.has(bytes[start])) return false
  return PREFIXES.some(
    ({ length }, i) =>
      end - start >= length && bytes.compare(PREFIXES[i]!, 0, length, start, start + length) === 0,
  )
}

/* Classes of characters, as bits. */
const UPPER = 1
const LOWER = 2
const DIGIT = 4
const OTHER = 8
const CLASSES = UPPER | LOWER | DIGIT | OTHER
const NO_HEX = 16

/** How many classes are in a set of them. */
const COUNTS = Uint8Array.from(
  { length: CLASSES + 1 },
  (_, set) => set.toString(2).replaceAll('0', '').length,
)

const ASCII = Uint8Array.from({ length: 0x80 }, (_, code) => {
  const character = String.fromCharCode(code)
  return classOf(character) | (/[0-9a-f]/i.test(character) ? 0 : NO_HEX)
})

/** As Active Directory counts them, but for letters without a case, which are others here. */
function classOf(character: string): number {
  if (/\p{Lu}/u.test(character)) return UPPER
  if (/\p{Ll}/u.test(character)) return LOWER
  return /[0-9]/.test(character) ? DIGIT : OTHER
}

/** Code points of a text, and the set of its classes. */
function measured(text: string): [points: number, classes: number] {
  let points = 0
  let classes = 0
  for (const character of text) {
    points++
    classes |= classOf(character)
  }
  return [points, classes]
}
