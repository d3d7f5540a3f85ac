import { COMMON_PASSWORDS, fraction, hash32, PASSWORD_WORDS } from './words.ts'

export type Secret = {
  /** The leaked value as stored: plain text or a digest. ASCII, without anything that JSON escapes. */
  text: string | null
  type: string | null
  /** Index into COMMON_PASSWORDS, or -1. */
  common: number
}

const KIND = 401
const DIGITS = 402
const NULL = 408
const BYTES = Array.from({ length: 65_536 }, (_, i) => i.toString(16).padStart(4, '0'))

/**
 * The secret of a record: a fifth are passwords that many people share, the rest words with digits, or
 * text that looks like an MD5, SHA-1 or bcrypt digest (drawn at random: nothing was ever digested).
 */
export function secretOf(seed: number, position: number, nullRate: number): Secret {
  if (fraction(seed, position, NULL) < nullRate) return { text: null, type: null, common: -1 }
  const bits = hash32(seed, position, KIND)
  const kind = bits % 100
  const plainType = bits & 0x10000 ? 'unknown' : null
  if (kind < 20) {
    const common = (bits >>> 17) % COMMON_PASSWORDS.length
    return { text: COMMON_PASSWORDS[common]!, type: plainType, common }
  }
  if (kind < 62) {
    const digits = hash32(seed, position, DIGITS) % 100_000
    const word = PASSWORD_WORDS[(bits >>> 17) % PASSWORD_WORDS.length]!
    return { text: `${word}${kind % 2 ? '-' : ''}${digits}`, type: plainType, common: -1 }
  }
  if (kind < 78) return { text: hex(seed, position, 4), type: kind < 64 ? 'unknown' : 'md5', common: -1 }
  if (kind < 90) return { text: hex(seed, position, 5), type: 'sha1', common: -1 }
  return { text: `$2b$12$${hex(seed, position, 5)}${hex(seed, position, 1)}.`, type: 'bcrypt', common: -1 }
}

function hex(seed: number, position: number, words: number): string {
  let text = ''
  for (let i = 0; i < words; i++) {
    const bits = hash32(seed, position, DIGITS + i)
    text += BYTES[bits >>> 16]! + BYTES[bits & 0xffff]!
  }
  return text
}
