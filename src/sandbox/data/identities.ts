import { FIRST_NAMES, hash32, LAST_NAMES } from './words.ts'

const SUBDOMAIN = 301
const NAMES = FIRST_NAMES.length * LAST_NAMES.length

/**
 * The part before `@` of person number k: `ada.marsh`, `ilka_reed`, and with a number behind it once all
 * pairs of names are used up. The same person has an account at every domain, which is what a keyword
 * query finds.
 */
export function localPart(person: number): string {
  const first = person % FIRST_NAMES.length
  // Shifted by the first name; otherwise small data sets would hold one family only.
  const last = (Math.floor(person / FIRST_NAMES.length) + first * 37) % LAST_NAMES.length
  const round = Math.floor(person / NAMES)
  const joint = person % 5 === 4 ? '_' : '.'
  return `${FIRST_NAMES[first]}${joint}${LAST_NAMES[last]}${round === 0 ? '' : round}`
}

/** The person behind a local part, or null when it belongs to nobody. */
export function personOf(local: string): number | null {
  const match = /^([a-z]+)[._]([a-z]+)(\d*)$/.exec(local)
  if (!match) return null
  const first = FIRST_NAMES.indexOf(match[1]!)
  const last = LAST_NAMES.indexOf(match[2]!)
  if (first < 0 || last < 0) return null
  const lastName = (last - ((first * 37) % LAST_NAMES.length) + LAST_NAMES.length) % LAST_NAMES.length
  const person = Number(match[3]) * NAMES + lastName * FIRST_NAMES.length + first
  return localPart(person) === local ? person : null
}

/** Some people have their address at a subdomain; a domain query finds them under both. */
export function atSubdomain(seed: number, person: number): boolean {
  return hash32(seed, person, SUBDOMAIN) % 16 === 5
}

export const SUBDOMAIN_LABEL = 'mail'
