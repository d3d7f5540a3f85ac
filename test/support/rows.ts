import { createHmac } from 'node:crypto'
import { expect } from 'vitest'
import type { CredentialJson, ExpectedSearch, Sandbox, SearchQuery } from './sandbox.ts'

/**
 * Rows as the documentation promises them, made from the data of the sandbox without any code of the product.
 * Integers and timestamps (microseconds since 1970) are decimal strings.
 */
export type Row = Readonly<Record<string, Value>>
export type Value = string | boolean | null | readonly string[]

export type Masking = {
  readonly secret?: 'redact' | 'drop' | 'partial' | 'hmac' | 'plaintext'
  readonly identity?: 'keep' | 'hmac' | 'drop'
  readonly key?: string
}

export type Wanted = ExpectedSearch & {
  readonly masking?: Masking
  /** Left out: all. */
  readonly columns?: readonly string[]
  /** The engine that knows milliseconds only. */
  readonly milliseconds?: boolean
}

/** The rows of one query over one range. Items that break the schema are left out. */
export function expectedRows(sandbox: Sandbox, wanted: Wanted): Row[] {
  return [...sandbox.expected(wanted)].filter(isValid).map((item) => rowOf(item, wanted))
}

/** The rows of several domains, in one list. */
export function expectedOfDomains(
  sandbox: Sandbox,
  domains: readonly string[],
  wanted: Omit<Wanted, 'query'> = {},
): Row[] {
  return domains.flatMap((fqdn) => expectedRows(sandbox, { ...wanted, query: { type: 'domain', fqdn } }))
}

export function expectSame(found: readonly Row[], wanted: readonly Row[]): void {
  const [is, shouldBe] = [keysOf(found), keysOf(wanted)]
  const extra = is.filter(unmatched(shouldBe))
  const missing = shouldBe.filter(unmatched(is))
  // A few examples show what is wrong; thousands would hide it.
  expect({
    extra: extra.length,
    missing: missing.length,
    examples: [...extra.slice(0, 2), ...missing.slice(0, 2)],
  }).toEqual({ extra: 0, missing: 0, examples: [] })
}

function keysOf(rows: readonly Row[]): string[] {
  return rows.map((row) => JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))))
}

/** How often each occurs. */
export function counted<Key>(keys: readonly Key[]): Map<Key, number> {
  const counts = new Map<Key, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/** Each match uses up one of the others. */
function unmatched(others: readonly string[]): (key: string) => boolean {
  const left = counted(others)
  return (key) => {
    const count = left.get(key) ?? 0
    left.set(key, count - 1)
    return count < 1
  }
}

/** The row of an item, as an export of this query has it. */
export function rowOf(item: CredentialJson, wanted: Wanted): Row {
  const { query, include = [], masking = {}, columns, milliseconds } = wanted
  const { secret = 'redact', identity = 'keep', key = '' } = masking
  const { source } = item
  const at = (time: string | null | undefined): string | null => {
    if (time === null || time === undefined) return null
    const micros = microsOf(time)
    return String(milliseconds ? (micros / 1000n) * 1000n : micros)
  }
  const ofSource = (text: string | null | undefined): string | null => well(text ?? null)
  const known = item.known_password_id
  const row: Record<string, Value> = {
    id: String(item.id),
    domain: item.domain,
    ...(identity === 'drop' ? {} : { identity_name: maskIdentity(item.identity_name, identity, key) }),
    ...(secret === 'drop' ? {} : { hash: item.hash === null ? null : maskSecret(item.hash, secret, key) }),
    hash_type: item.hash_type,
    imported_at: at(item.imported_at),
    ...(include.includes('known_password_id')
      ? { known_password_id: known === null || known === undefined ? null : String(known) }
      : {}),
    source_id: item.source_id,
    source_name: ofSource(source?.name),
    source_description_en: ofSource(source?.description_en),
    source_description_fr: ofSource(source?.description_fr),
    source_is_alert_enabled: source?.is_alert_enabled ?? null,
    source_breached_at: at(source?.breached_at),
    source_leaked_at: at(source?.leaked_at),
    query_type: query.type,
    query_value: queryValue(query, { secret, identity, key }),
    ...(include.includes('auth_domains') ? { auth_domains: item.auth_domains ?? null } : {}),
    ...(include.includes('urls') ? { urls: item.urls?.map(bareUrl) ?? null } : {}),
  }
  if (columns === undefined) return row
  return Object.fromEntries(Object.entries(row).filter(([name]) => columns.includes(name)))
}

function queryValue(query: SearchQuery, { secret, identity, key }: Required<Masking>): string {
  if ('fqdn' in query) return query.fqdn
  if (query.type === 'secret') return maskSecret(query.secret, secret, key)
  return maskIdentity(query.type === 'email' ? query.email : query.keyword, identity, key)
}

export function maskSecret(secret: string, policy: NonNullable<Masking['secret']>, key: string): string {
  switch (policy) {
    case 'redact':
    case 'drop':
      return '[REDACTED]'
    case 'partial': {
      const points = [...well(secret)]
      return points.length < 6 ? '[REDACTED]' : `${points[0]}****${points.at(-1)}`
    }
    case 'hmac':
      return hmac(secret, key)
    case 'plaintext':
      return well(secret)
  }
}

type IdentityPolicy = NonNullable<Masking['identity']>

export function maskIdentity(identity: string, policy: IdentityPolicy, key: string): string {
  if (policy === 'drop') return '[REDACTED]'
  return policy === 'keep' ? well(identity) : hmac(`identity:${normalForm(identity)}`, key)
}

/** Of identities whose domain is ASCII, as all of the sandbox's are. */
function normalForm(identity: string): string {
  return well(identity).normalize('NFC').trim().toLowerCase()
}

function hmac(value: string, key: string): string {
  return createHmac('sha256', Buffer.from(key)).update(well(value)).digest('hex')
}

/** Lone surrogates become U+FFFD. */
function well(value: string): string
function well(value: string | null): string | null
function well(value: string | null): string | null {
  return value === null ? null : value.toWellFormed()
}

export const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)$/

export function microsOf(time: string): bigint {
  const [, clock, fraction = '', offset] = TIMESTAMP.exec(time) ?? []
  if (clock === undefined || offset === undefined) throw new Error(`no timestamp: ${time}`)
  return BigInt(Date.parse(clock + offset)) * 1000n + BigInt(fraction.padEnd(6, '0'))
}

/** Whether an item keeps the service's schema. */
export function isValid(item: unknown): item is CredentialJson {
  if (!isObject(item)) return false
  const { id, domain, identity_name, hash, hash_type, imported_at, source_id, source } = item
  return (
    Number.isSafeInteger(id) &&
    isStringOrNull(domain) &&
    typeof identity_name === 'string' &&
    isStringOrNull(hash) &&
    isStringOrNull(hash_type) &&
    typeof imported_at === 'string' &&
    TIMESTAMP.test(imported_at) &&
    typeof source_id === 'string' &&
    (source === null || (isObject(source) && typeof source.is_alert_enabled === 'boolean'))
  )
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isStringOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string'
}

/** A URL of the sandbox's as rows show it under any policy but `plaintext`. */
function bareUrl(text: string): string {
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}
