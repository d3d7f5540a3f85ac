import { decodedCodes, folded, MIN_IN_CODE, unescaped } from '../../core/index.ts'

// Shorter secrets occur in most strings by chance, so only a string that equals the secret counts.
const MIN_WITHIN = 4

/**
 * A function that says whether a string contains this secret, plain or in JSON, percent, hex or base64. The secret is
 * not added to the known ones.
 * @param codes whether hex and base64 are decoded
 */
export function givenSecret(secret: string, codes: 'decode' | 'skip' = 'decode'): (text: string) => boolean {
  const wanted = folded(secret)
  // Some other letters are, in capitals, letters of ASCII.
  const isAscii = /^[\0-\x7f]*$/.test(secret)
  const isWord = secret.length < MIN_WITHIN
  const bytes = Buffer.byteLength(secret)
  const isIn = (text: string): boolean => {
    const line = folded(isAscii ? text.replace(/[^\0-\x7f]/g, '\ufffd') : text)
    if (isWord ? line === wanted : line.includes(wanted)) return true
    return codes === 'decode' && bytes >= MIN_IN_CODE && folded(decodedCodes(text, bytes)).includes(wanted)
  }
  return (text) => secret !== '' && unescaped(text).some(isIn)
}
