import type { Settings } from '../options.ts'
import { formatTimestamp, type Timeline, timeline as timelineOf } from './timeline.ts'
import {
  atSubdomain,
  COMMON_PASSWORDS,
  fraction,
  hash32,
  LOGIN_HOSTS,
  localPart,
  NASTY_TEXTS,
  PASSWORD_WORDS,
  SOURCE_PLACES,
  SUBDOMAIN_LABEL,
} from './words.ts'

const [KIND, DIGITS, NULL] = [401, 402, 408]
const BYTES = Array.from({ length: 65_536 }, (_, i) => i.toString(16).padStart(4, '0'))

export type IncludeValue = 'known_password_id' | 'auth_domains' | 'urls'

/** The credentials of all domains, each computed from its position on the shared timeline. */
export type Credentials = {
  readonly settings: Settings
  readonly timeline: Timeline
  /** A credential as it is sent, fields as in spec 2.2 in the published order. By `invalidRate` it is none. */
  item(position: number, include: readonly IncludeValue[]): unknown
  identityName(position: number): string
  secretText(position: number): string | null
  loginHosts(position: number): readonly string[]
}

const ID_BASE = 33_880_000_000
const [ID, PERSON, NASTY, NASTY_KIND, NULL_DOMAIN, NULL_SOURCE, HOSTS, INVALID, STYLE, NO_EVENT, DIGEST] = [
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
] as const

/** Source: spec 2.2 and 2.3; nullability, `auth_domains`, `urls` and ids above 2^31 from the public documentation. */
export function credentials(settings: Settings): Credentials {
  const { seed, domains, records, nastyRate, nullRate, invalidRate } = settings
  const timeline = timelineOf(seed, domains.length, records, settings.from, settings.until)
  const people = Math.max(1, Math.ceil(records / 3))
  const sources = Array.from({ length: settings.sources }, (_, i) => sourceAt(i, settings))

  const personAt = (position: number): number => {
    const share = fraction(seed, position, PERSON)
    return Math.floor(share * Math.sqrt(share) * people)
  }
  /** Index into NASTY_TEXTS, or -1 for the ordinary record. */
  const nastyAt = (position: number): number =>
    nastyRate > 0 && fraction(seed, position, NASTY) < nastyRate
      ? (hash32(seed, position, NASTY_KIND) >>> 4) % NASTY_TEXTS.length
      : -1
  const subdomains = domains.map((domain) => `${SUBDOMAIN_LABEL}.${domain}`)
  const domainOf = (person: number, position: number): string =>
    (atSubdomain(seed, person) ? subdomains : domains)[position % domains.length]!
  const nameOf = (person: number, nasty: number, position: number): string => {
    const before = nasty >= 0 && hash32(seed, position, NASTY_KIND) % 4 === 0 ? NASTY_TEXTS[nasty]! : ''
    return `${before}${localPart(person)}@${domainOf(person, position)}`
  }
  const identityName = (position: number): string => nameOf(personAt(position), nastyAt(position), position)
  const secretText = (position: number): string | null => {
    const nasty = nastyAt(position)
    return nasty >= 0 ? NASTY_TEXTS[nasty]! : secretOf(seed, position, nullRate).text
  }
  const loginHosts = (position: number): readonly string[] => {
    const bits = hash32(seed, position, HOSTS)
    const first = (bits >>> 3) % LOGIN_HOSTS.length
    // The documentation allows up to 100 host names.
    if ((bits >>> 9) % 5000 === 0) return Array.from({ length: 100 }, (_, i) => `n${i}.${LOGIN_HOSTS[first]}`)
    return Array.from({ length: bits % 4 }, (_, i) => LOGIN_HOSTS[(first + i) % LOGIN_HOSTS.length]!)
  }

  /** A few sources carry most of the credentials. */
  const sourceOf = (position: number): Source => {
    const share = fraction(seed, position, SOURCE + 1)
    return sources[Math.floor(share * share * sources.length)]!
  }

  const item = (position: number, include: readonly IncludeValue[]): unknown => {
    const chance = (field: number): number => fraction(seed, position, field)
    const person = personAt(position)
    const nasty = nastyAt(position)
    const secret = secretOf(seed, position, nullRate)
    const source = sourceOf(position)
    const style = hash32(seed, position, STYLE)
    // Shuffled in blocks of 1024 (389 is odd, so nothing collides): ids do not reveal the order.
    const serial = position - (position & 1023) + ((position * 389 + 71) & 1023)
    const found: Loose = {
      id: ID_BASE + serial * 3 + (hash32(seed, position, ID) % 3),
      domain: chance(NULL_DOMAIN) < nullRate / 10 ? null : domainOf(person, position),
      identity_name: nameOf(person, nasty, position),
      hash: nasty >= 0 ? NASTY_TEXTS[nasty]! : secret.text,
      hash_type: secret.type,
      imported_at: importedAt(timeline.at(position), style),
    }
    if (include.includes('known_password_id'))
      found.known_password_id = nasty < 0 && secret.common >= 0 ? 5e9 + secret.common : null
    if (include.includes('auth_domains')) found.auth_domains = loginHosts(position)
    if (include.includes('urls'))
      found.urls = loginHosts(position).map((host) => `https://${host}/login?next=%2F`)
    if (settings.publicFields) {
      found.credential_hash = hex(seed, serial, 4, DIGEST)
      found.event_uid = chance(NO_EVENT) < nullRate ? null : `leak/ev-${serial}`
    }
    if (settings.unknownFields) {
      found.confidence = Number(`0.${style % 90}`)
      found.x_ingest = { shard: style % 8 }
    }
    found.source_id = source.id
    found.source = chance(NULL_SOURCE) < nullRate / 20 ? null : source
    if (chance(INVALID) >= invalidRate) return found
    return WAYS[hash32(seed, position, INVALID + 100) % WAYS.length]!(found)
  }

  return { settings, timeline, item, identityName, secretText, loginHosts }
}

/** The instant in one of the spellings that ISO 8601 allows: mostly `+00:00` with microseconds. */
function importedAt(micros: number, style: number): string {
  const kind = style % 100
  const offset = kind < 92 ? '+00:00' : kind < 96 ? '+02:00' : kind < 98 ? '-05:30' : 'Z'
  return formatTimestamp(micros, offset, (style >>> 8) % 4 !== 0)
}

type Secret = {
  /** The leaked value as stored: plain text or a digest. */
  text: string | null
  type: string | null
  /** Index into COMMON_PASSWORDS, or -1. */
  common: number
}

/** A fifth are shared passwords; the rest words with digits, or what looks like an MD5, SHA-1 or bcrypt digest. */
function secretOf(seed: number, position: number, nullRate: number): Secret {
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

/** What looks like a digest. */
function hex(seed: number, position: number, words: number, field = DIGITS): string {
  let text = ''
  for (let i = 0; i < words; i++) {
    const bits = hash32(seed, position, field + i)
    text += BYTES[bits >>> 16]! + BYTES[bits & 0xffff]!
  }
  return text
}

type Source = ReturnType<typeof sourceAt>

const SOURCE = 200
const YEAR_MICROS = 365 * 86_400_000_000

/** Source: spec 2.3. Now and then a field is null where the documentation allows it. Leaks precede all imports. */
function sourceAt(i: number, { seed, from, nastyRate, publicFields }: Settings) {
  const bits = hash32(seed, i, SOURCE + 2)
  const forum = SOURCE_PLACES[bits % SOURCE_PLACES.length]!
  const breached = Math.floor(from - YEAR_MICROS * (1 + 6 * fraction(seed, i, SOURCE + 3)))
  const leaked = breached + Math.floor(YEAR_MICROS * fraction(seed, i, SOURCE + 4))
  const year = new Date(leaked / 1000).getUTCFullYear()
  // Every seventh has an awkward name: there are few sources, so chance would mostly leave none.
  const awkward = nastyRate > 0 && i % 7 === 5 ? ` ${NASTY_TEXTS[Math.floor(i / 7) % 28]}` : ''
  return {
    id: `leak_${hash32(seed, i, SOURCE).toString(36)}_${i}`,
    name: i % 50 === 13 ? null : `${forum} ${year}${awkward}`,
    description_en:
      i % 50 === 17 ? null : `Credentials collected from ${forum} in ${year}.${awkward} Invented for tests.`,
    description_fr:
      i % 10 === 3 ? null : `Identifiants relevés sur ${forum} en ${year}.${awkward} Données inventées.`,
    is_alert_enabled: bits % 5 !== 0,
    breached_at: i % 3 === 1 ? null : formatTimestamp(breached - (breached % 1_000_000), '+00:00', true),
    leaked_at: i % 4 === 1 ? null : formatTimestamp(leaked, i % 8 === 2 ? 'Z' : '+00:00', true),
    ...(publicFields ? publicFieldsOf(i) : {}),
  }
}

/** Required by the public documentation, and null now and then. */
function publicFieldsOf(i: number): { url: string | null; pii_tags: readonly string[] | null } {
  const tags = ['email', 'password', 'phone number', 'date of birth']
  return {
    url: i % 9 === 4 ? null : `https://leaks.tarnhollow.io/${i}`,
    pii_tags: i % 11 === 6 ? null : tags.slice(0, i % 5),
  }
}

type Loose = Record<string, unknown>

/** Each breaks one rule of the schema. The secret, where it survives, still must not reach a log. */
const WAYS: ReadonlyArray<(item: Loose) => unknown> = [
  (item) => ({ ...item, id: String(item.id) }),
  (item) => ({ ...item, imported_at: undefined }),
  (item) => ({ ...item, imported_at: 'yesterday' }),
  (item) => ({ ...item, imported_at: 1_721_676_352 }),
  (item) => ({ ...item, identity_name: null }),
  (item) => ({ ...item, identity_name: undefined }),
  (item) => ({ ...item, hash: { value: item.hash } }),
  (item) => ({ ...item, hash_type: 5 }),
  (item) => ({ ...item, source_id: 77 }),
  (item) => ({ ...item, source: 'a leak' }),
  (item) => ({ ...item, source: { ...(item.source as Loose | null), is_alert_enabled: 'yes' } }),
  (item) => ({ ...item, id: 0.5 }),
  (item) => ({ ...item, id: undefined }),
  (item) => [item],
  () => null,
  (item) => String(item.hash),
]
