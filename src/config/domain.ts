const DOMAIN = /^[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)*$/u
const NO_DOMAIN_CHARACTER = /[^\p{L}\p{M}\p{N}_.-]/u
/** RFC 1035, section 2.3.4: 255 bytes with the length byte and the root. */
const MAX_LENGTH = 253
/** Composing makes a text shorter, to a quarter at most; of many marks in a row it takes quadratic time. */
const MAX_RAW_LENGTH = 4 * MAX_LENGTH

export const DOMAIN_EXPECTED = `a domain name (letters, digits, -, _ and dots, at most ${MAX_LENGTH} characters)`

/** A domain in lower case without the trailing dot, so that the same domain is the same text; null when it is none. */
export function parseDomain(text: string): string | null {
  if (text.length > MAX_RAW_LENGTH) return null
  const domain = normalise(text)
  return domain.length <= MAX_LENGTH && DOMAIN.test(domain) ? domain : null
}

/** Why a text is no domain, without showing the text. */
export function domainFault(text: string): string {
  if (text.length > MAX_RAW_LENGTH) return `${text.length} characters`
  const domain = normalise(text)
  const strange = NO_DOMAIN_CHARACTER.exec(domain)
  if (strange !== null) return `the character ${JSON.stringify(strange[0])}`
  return domain.length > MAX_LENGTH ? `${domain.length} characters` : 'an empty label'
}

function normalise(text: string): string {
  return text.trim().replace(/\.$/, '').normalize('NFC').toLowerCase()
}
