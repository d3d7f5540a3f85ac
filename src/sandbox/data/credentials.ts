import type { Settings } from '../options.ts'
import { NO_TEXT, NULL_SOURCE_TEXT, type Sources, type SourceText } from './sources.ts'
import { formatTimestamp, type Timeline } from './timeline.ts'
import {
  atSubdomain,
  COMMON_PASSWORDS,
  fraction,
  hash32,
  LOGIN_HOSTS,
  localPart,
  NASTY_TEXTS,
  PASSWORD_WORDS,
  SUBDOMAIN_LABEL,
} from './words.ts'

const [KIND, DIGITS, NULL] = [401, 402, 408]
const BYTES = Array.from({ length: 65_536 }, (_, i) => i.toString(16).padStart(4, '0'))

export type IncludeValue = 'known_password_id' | 'auth_domains' | 'urls'

/** A credential in two parts: `head` up to the source, `tail` the source, shared and encoded. */
type CredentialText = { readonly head: string; readonly ascii: boolean; readonly tail: SourceText }

/** The credentials of all domains, each computed from its position on the shared timeline. */
export type Credentials = {
  readonly settings: Settings
  readonly timeline: Timeline
  /** One credential as JSON text, fields as in spec 2.2 in the published order. */
  json(position: number, include: ReadonlySet<IncludeValue>): string
  /** The same in two parts, for building pages fast. */
  text(position: number, include: ReadonlySet<IncludeValue>): CredentialText
  identityName(position: number): string
  secretText(position: number): string | null
  loginHosts(position: number): readonly string[]
}

const ID_BASE = 33_880_000_000
const [ID, PERSON, NASTY, NASTY_KIND, NULL_DOMAIN, NULL_SOURCE, HOSTS, INVALID, STYLE, NO_EVENT, DIGEST] = [
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
] as const

/** Source: spec 2.2 and 2.3; nullability, `auth_domains`, `urls` and ids above 2^31 from the public documentation. */
export function credentials(settings: Settings, timeline: Timeline, sources: Sources): Credentials {
  const { seed, domains, nastyRate, nullRate, invalidRate } = settings
  const people = Math.max(1, Math.ceil(settings.records / 3))
  const subdomains = domains.map((domain) => `${SUBDOMAIN_LABEL}.${domain}`)

  const personAt = (position: number): number => {
    const share = fraction(seed, position, PERSON)
    return Math.floor(share * Math.sqrt(share) * people)
  }
  /** Index into NASTY_TEXTS, or -1 for the ordinary record. */
  const nastyAt = (position: number): number =>
    nastyRate > 0 && fraction(seed, position, NASTY) < nastyRate
      ? (hash32(seed, position, NASTY_KIND) >>> 4) % NASTY_TEXTS.length
      : -1
  const nastyNameAt = (position: number, nasty: number): boolean =>
    nasty >= 0 && hash32(seed, position, NASTY_KIND) % 4 === 0
  const domainAt = (position: number, person: number): string =>
    (atSubdomain(seed, person) ? subdomains : domains)[position % domains.length]!

  const identityName = (position: number): string => {
    const person = personAt(position)
    const nasty = nastyAt(position)
    const plain = `${localPart(person)}@${domainAt(position, person)}`
    return nastyNameAt(position, nasty) ? NASTY_TEXTS[nasty] + plain : plain
  }
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

  const text = (position: number, include: ReadonlySet<IncludeValue>): CredentialText => {
    const person = personAt(position)
    const nasty = nastyAt(position)
    const domain = domainAt(position, person)
    const secret = secretOf(seed, position, nullRate)
    const source = sources.pick(position)
    const style = hash32(seed, position, STYLE)
    const hash = nasty >= 0 ? NASTY_JSON[nasty]! : secret.text === null ? 'null' : `"${secret.text}"`
    const name = `${localPart(person)}@${domain}`
    // Shuffled in blocks of 1024 (389 is odd, so nothing collides): ids do not reveal the order.
    const serial = position - (position & 1023) + ((position * 389 + 71) & 1023)
    let head = `{"id":${ID_BASE + serial * 3 + (hash32(seed, position, ID) % 3)}`
    head += fraction(seed, position, NULL_DOMAIN) < nullRate / 10 ? ',"domain":null' : `,"domain":"${domain}"`
    head += nastyNameAt(position, nasty)
      ? `,"identity_name":${JSON.stringify(NASTY_TEXTS[nasty] + name)}`
      : `,"identity_name":"${name}"`
    head += `,"hash":${hash},"hash_type":${secret.type === null ? 'null' : `"${secret.type}"`}`
    head += `,"imported_at":"${importedAt(timeline.at(position), style)}"`
    if (include.has('known_password_id')) {
      const known = nasty < 0 && secret.common >= 0 ? 5_000_000_000 + secret.common : null
      head += `,"known_password_id":${known}`
    }
    if (include.has('auth_domains')) head += `,"auth_domains":${JSON.stringify(loginHosts(position))}`
    if (include.has('urls')) {
      head += `,"urls":${JSON.stringify(loginHosts(position).map((host) => `https://${host}/login?next=%2F`))}`
    }
    if (settings.publicFields) {
      const hasNone = fraction(seed, position, NO_EVENT) < nullRate
      head += `,"credential_hash":"${hex(seed, serial, 4, DIGEST)}","event_uid":${hasNone ? null : `"leak/ev-${serial}"`}`
    }
    if (settings.unknownFields) head += `,"confidence":0.${style % 90},"x_ingest":{"shard":${style % 8}}`
    head += `,"source_id":"${sources.ids[source]}","source":`
    const tail =
      fraction(seed, position, NULL_SOURCE) < nullRate / 20 ? NULL_SOURCE_TEXT : sources.texts[source]!
    if (invalidRate > 0 && fraction(seed, position, INVALID) < invalidRate) {
      const broken = breakCredential(head + tail.text, hash32(seed, position, INVALID + 100))
      return { head: broken, ascii: false, tail: NO_TEXT }
    }
    return { head, ascii: nasty < 0, tail }
  }

  const json = (position: number, include: ReadonlySet<IncludeValue>): string => {
    const { head, tail } = text(position, include)
    return head + tail.text
  }

  return { settings, timeline, json, text, identityName, secretText, loginHosts }
}

/** The instant in one of the spellings that ISO 8601 allows: mostly `+00:00` with microseconds. */
function importedAt(micros: number, style: number): string {
  const kind = style % 100
  const offset = kind < 92 ? '+00:00' : kind < 96 ? '+02:00' : kind < 98 ? '-05:30' : 'Z'
  return formatTimestamp(micros, offset, (style >>> 8) % 4 !== 0)
}

type Secret = {
  /** The leaked value as stored: plain text or a digest. ASCII, without anything that JSON escapes. */
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

const WAYS: ReadonlyArray<(item: Loose) => unknown> = [
  (item) => ({ ...item, id: String(item.id) }),
  (item) => without(item, 'imported_at'),
  (item) => ({ ...item, imported_at: 'yesterday' }),
  (item) => ({ ...item, imported_at: 1_721_676_352 }),
  (item) => ({ ...item, identity_name: null }),
  (item) => without(item, 'identity_name'),
  (item) => ({ ...item, hash: { value: item.hash } }),
  (item) => ({ ...item, hash_type: 5 }),
  (item) => ({ ...item, source_id: 77 }),
  (item) => ({ ...item, source: 'a leak' }),
  (item) => ({ ...item, source: { ...(item.source as Loose | null), is_alert_enabled: 'yes' } }),
  (item) => ({ ...item, id: 0.5 }),
  (item) => without(item, 'id'),
  (item) => [item],
  () => null,
  (item) => String(item.hash),
]

/** The same as JSON text. A lone surrogate travels as an escape (`\ud83d`), as it does on the wire. */
const NASTY_JSON: readonly string[] = NASTY_TEXTS.map((text) => JSON.stringify(text))

type Loose = Record<string, unknown>

/** Breaks one rule of the schema, chosen by `bits`. The secret, where it survives, still must not reach a log. */
function breakCredential(text: string, bits: number): string {
  return JSON.stringify(WAYS[bits % WAYS.length]!(JSON.parse(text) as Loose))
}

function without(item: Loose, key: string): Loose {
  const { [key]: _dropped, ...rest } = item
  return rest
}
