import type { Credentials, IncludeValue } from '../../src/sandbox/data/credentials.ts'
import { parseTimestamp } from '../../src/sandbox/data/timeline.ts'
import { indexRange, type SearchQuery, select } from '../../src/sandbox/search/selection.ts'
import type { CredentialJson } from './sandbox-items.ts'

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
    if (selection.matches === null || selection.matches(position))
      yield JSON.parse(data.json(position, include)) as CredentialJson
  }
}

function bound(text: string): number {
  const micros = parseTimestamp(text, 'up')
  if (micros === null) throw new Error('from and until must be ISO 8601 date-times')
  return micros
}
