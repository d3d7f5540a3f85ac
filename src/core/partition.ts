import type { Query } from './pipeline.ts'
import { formatInstant, type Micros, parseInstant } from './time.ts'

/** Half-open UTC range `[from, until)`. */
export type Window = { readonly from: Micros; readonly until: Micros }

/** One query over one window: the unit of work, of retry, of resume. One chain of cursors. */
export type Partition = {
  /** Stable name: `domain.acme.com/2024-01-01..2024-02-01`; never holds a secret. */
  readonly key: string
  readonly query: Query
  readonly window: Window | null
}

/** `<type>.<value>` with everything outside `[A-Za-z0-9._@-]` percent-encoded; a secret goes by its variable's name. */
export function queryName(query: Query): string {
  return `${query.type}.${encodeSegment(queryLabel(query))}`
}

/** What a query asks for, in words that may be shown: the value, or the variable that holds the secret. */
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

export function partition(query: Query, window: Window | null): Partition {
  return { key: `${queryName(query)}/${windowRange(window)}`, query, window }
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
