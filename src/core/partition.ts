import type { IdentityPolicy, NamedQuery, Query } from './pipeline.ts'
import { formatInstant, type Micros, parseInstant } from './time.ts'

/** Half-open UTC range `[from, until)`. */
export type Window = { readonly from: Micros; readonly until: Micros }

/** One query over one window: the unit of what is written. What is asked is a chain: {@link WindowRun}. */
export type Partition = {
  /** Stable name: `domain.acme.com/2024-01-01..2024-02-01`; never holds a secret. */
  readonly key: string
  readonly query: NamedQuery
  readonly window: Window | null
}

/** How many partitions of a plan are done and how many are left; those that were pruned are not counted. */
export type PartitionCounts = {
  readonly total: number
  readonly done: number
  readonly failed: number
  /** Neither done nor failed: not begun, or not at their end. */
  readonly pending: number
}

export function partitionCounts(
  total: number,
  { done, failed }: Pick<PartitionCounts, 'done' | 'failed'>,
): PartitionCounts {
  return { total, done, failed, pending: total - done - failed }
}

/**
 * The query with its name: `<type>.<label>`, everything outside `[A-Za-z0-9._@-]` percent-encoded.
 * @param label what may be shown: see {@link openLabel}
 */
export function nameQuery(query: Query, label: string): NamedQuery {
  return { ...query, name: `${query.type}.${encodeSegment(label)}` }
}

/**
 * The label of a query that can be told without the mask key: the name that the user gave it, else what it asks for.
 * Null where that is an identity which the policy hides.
 */
export function openLabel(query: Query, identity: IdentityPolicy): string | null {
  return ('as' in query ? query.as : undefined) ?? (hidesIdentity(query, identity) ? null : queryLabel(query))
}

/** Whether what a query asks for is an identity that the policy hides: any policy but the one that keeps it. */
export function hidesIdentity(query: Query, identity: IdentityPolicy): boolean {
  return (query.type === 'email' || query.type === 'keyword') && identity !== 'keep'
}

/** What a query asks for: the value, or the variable that holds the secret. {@link hidesIdentity} says when to hide it. */
export function queryLabel(query: Query): string {
  switch (query.type) {
    case 'domain':
    case 'auth_domain':
      return query.fqdn
    case 'email':
      return query.email
    case 'keyword':
      return query.keyword
    case 'secret':
      return query.secretEnv
    case 'report':
      return String(query.id)
    case 'reports':
      return 'all'
  }
}

/** `2024-01-01`, or `2024-01-01T060000Z` when it does not start at midnight, or `all` where there are no windows. */
export function windowName(window: Window | null): string {
  return window === null ? 'all' : instantName(window.from)
}

export function partition(query: NamedQuery, window: Window | null): Partition {
  return { key: partitionKey(query.name, window), query, window }
}

/** @param query its name */
export function partitionKey(query: string, window: Window | null): string {
  return `${query}/${windowRange(window)}`
}

/** The window's part of a partition's key: {@link windowRange}. */
export function windowOfKey(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

/** `2024-01-01..2024-02-01`, or `all` where there are no windows: the last part of a partition's key. */
export function windowRange(window: Window | null): string {
  return window === null ? 'all' : `${instantName(window.from)}..${instantName(window.until)}`
}

/** Reads {@link windowRange} back. */
export function parseWindow(name: string): Window | null {
  if (name === 'all') return null
  const [from, until] = name.split('..').map(parseInstantName)
  if (from === undefined || until === undefined || from === null || until === null) {
    throw new Error(`not the window of a partition's key`)
  }
  return { from, until }
}

function parseInstantName(name: string): Micros | null {
  return parseInstant(name.replace(/T(\d\d)(\d\d)/, 'T$1:$2:'))
}

function instantName(at: Micros): string {
  const text = formatInstant(at)
  return text.endsWith('T00:00:00Z') ? text.slice(0, 10) : text.replaceAll(':', '')
}

function encodeSegment(value: string): string {
  // encodeURIComponent throws on lone surrogates, leaves !'()*~ as they are and encodes @.
  return encodeURIComponent(value.toWellFormed())
    .replaceAll('%40', '@')
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
