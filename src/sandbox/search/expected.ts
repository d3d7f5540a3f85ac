import type { Credentials, IncludeValue } from '../data/credentials.ts'
import { parseTimestamp } from '../data/timeline.ts'
import { indexRange, type SearchQuery, select } from './selection.ts'

/** A credential as it comes over the wire. Source: spec 2.2 and 2.3, nullability as publicly documented. */
export type CredentialJson = {
  id: number
  domain: string | null
  identity_name: string
  hash: string | null
  hash_type: string | null
  imported_at: string
  known_password_id?: number | null
  auth_domains?: string[]
  urls?: string[]
  credential_hash?: string
  event_uid?: string | null
  source_id: string
  source: SourceJson | null
}

type SourceJson = {
  id: string
  name: string | null
  description_en: string | null
  description_fr: string | null
  is_alert_enabled: boolean
  breached_at: string | null
  leaked_at: string | null
  url?: string | null
  pii_tags?: string[] | null
}

/** A query over `[from, until)`, as a pipeline's window has it; an end left out is open. */
export type ExpectedSearch = {
  query: SearchQuery
  from?: string
  until?: string
  include?: readonly string[]
}

/**
 * Yields what matches, oldest first, one record at a time.
 * @throws Error when an end of the range is no ISO 8601 date-time
 */
export function* expectedCredentials(data: Credentials, search: ExpectedSearch): Generator<CredentialJson> {
  const selection = select(data, search.query)
  const gte = search.from === undefined ? null : bound(search.from)
  const lte = search.until === undefined ? null : bound(search.until) - 1
  const { low, high } = indexRange(data, selection, { gte, lte })
  const include = new Set(search.include ?? []) as ReadonlySet<IncludeValue>
  for (let index = low; index < high; index++) {
    const position = selection.positionAt(index)
    if (selection.matches === null || selection.matches(position)) {
      yield JSON.parse(data.json(position, include)) as CredentialJson
    }
  }
}

function bound(text: string): number {
  const micros = parseTimestamp(text, 'up')
  if (micros === null) throw new Error('from and until must be ISO 8601 date-times')
  return micros
}
