import type { SecretFacts } from '../../core/index.ts'
import { isDigest } from './digest-forms.ts'

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
    if (saysDigest || isDigest(bytes, start, end)) return DIGEST
    let found = 0
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!
      if (byte >= 0x80) return meets(...measured(bytes.toString('utf8', start, end)))
      found |= ASCII[byte]!
    }
    return meets(end - start, found)
  }
}

/* Classes of characters, as bits. */
const UPPER = 1
const LOWER = 2
const DIGIT = 4
const OTHER = 8
const CLASSES = UPPER | LOWER | DIGIT | OTHER

/** How many classes are in a set of them. */
const COUNTS = Uint8Array.from(
  { length: CLASSES + 1 },
  (_, set) => set.toString(2).replaceAll('0', '').length,
)

const ASCII = Uint8Array.from({ length: 0x80 }, (_, code) => classOf(String.fromCharCode(code)))

/** As Active Directory counts them, but for letters without a case, which are others here. */
function classOf(character: string): number {
  if (/\p{Lu}/u.test(character)) return UPPER
  if (/\p{Ll}/u.test(character)) return LOWER
  return /[0-9]/.test(character) ? DIGIT : OTHER
}

function measured(text: string): [points: number, classes: number] {
  let points = 0
  let classes = 0
  for (const character of text) {
    points++
    classes |= classOf(character)
  }
  return [points, classes]
}
