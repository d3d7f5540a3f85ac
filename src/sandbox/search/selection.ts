import * as z from 'zod'
import type { Credentials } from '../data/credentials.ts'
import { SUBDOMAIN_LABEL } from '../data/words.ts'

const hostName = z.string().regex(/^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/i, 'Input should be a host name')

/** The query kinds. Source: spec 4.2 for `domain`, the public documentation for the others. */
export const query = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('domain'), fqdn: hostName }),
  z.strictObject({ type: z.literal('auth_domain'), fqdn: hostName }),
  z.strictObject({
    type: z.literal('email'),
    email: z.string().regex(/^[^@][\s\S]*@[^@]+$/, 'Input should be an email address'),
  }),
  z.strictObject({ type: z.literal('keyword'), keyword: z.string().min(1) }),
  z.strictObject({ type: z.literal('secret'), secret: z.string().min(1) }),
])

export type SearchQuery = z.infer<typeof query>

/** The records of some domains (`slots`), all or those that pass a test. An index counts these alone, by time. */
type Selection = {
  readonly matches: ((position: number) => boolean) | null
  positionAt(index: number): number
  /** How many matches lie before a position of the timeline. */
  matchesBefore(position: number): number
}

/** A whole domain is a plain range, whatever its size; the other kinds look at every record between the bounds. */
export function select(data: Credentials, query: SearchQuery): Selection {
  switch (query.type) {
    case 'domain':
      return domainSelection(data, query.fqdn.toLowerCase())
    case 'email':
      return ofAll(data, (position) => data.identityName(position) === query.email)
    case 'keyword':
      return ofAll(data, (position) => {
        const name = data.identityName(position)
        return name.slice(0, name.lastIndexOf('@')) === query.keyword
      })
    case 'secret':
      return ofAll(data, (position) => data.secretText(position) === query.secret)
    case 'auth_domain': {
      const host = query.fqdn.toLowerCase()
      return ofAll(data, (position) => data.loginHosts(position).includes(host))
    }
  }
}

function domainSelection(data: Credentials, fqdn: string): Selection {
  const { domains } = data.settings
  const whole = allSlots(data).filter((slot) => `.${domains[slot]}`.endsWith(`.${fqdn}`))
  if (whole.length > 0) return inSlots(data, whole, null)
  const slots = allSlots(data).filter((slot) => `${SUBDOMAIN_LABEL}.${domains[slot]}` === fqdn)
  return inSlots(data, slots, (position) => data.identityName(position).endsWith(`@${fqdn}`))
}

function ofAll(data: Credentials, matches: Selection['matches']): Selection {
  return inSlots(data, allSlots(data), matches)
}

function allSlots(data: Credentials): number[] {
  return data.settings.domains.map((_, slot) => slot)
}

function inSlots(data: Credentials, slots: number[], matches: Selection['matches']): Selection {
  const all = data.settings.domains.length
  return {
    matches,
    positionAt: (index) => Math.floor(index / slots.length) * all + slots[index % slots.length]!,
    matchesBefore: (position) =>
      Math.floor(position / all) * slots.length + slots.filter((slot) => slot < position % all).length,
  }
}

/** Indexes of a selection, `[low, high)`, oldest first. */
type IndexRange = { readonly low: number; readonly high: number }

type Page = {
  /** Positions on the timeline, in the requested order. */
  readonly positions: number[]
  /** The index of the first match that did not fit, or null when there is none. */
  readonly next: number | null
}

/** Looks for one match more than `size`: a cursor is handed out only when something follows. */
export function collectPage(
  selection: Selection,
  range: IndexRange,
  start: number,
  order: 'asc' | 'desc',
  size: number,
): Page {
  const positions: number[] = []
  const step = order === 'asc' ? 1 : -1
  for (let index = start; index >= range.low && index < range.high; index += step) {
    const position = selection.positionAt(index)
    if (selection.matches !== null && !selection.matches(position)) continue
    if (positions.length === size) return { positions, next: index }
    positions.push(position)
  }
  return { positions, next: null }
}

/** Both instants are inclusive, as in the service's filter. @param bounds microseconds since 1970; null: open */
export function indexRange(
  data: Credentials,
  selection: Selection,
  bounds: { readonly gte: number | null; readonly lte: number | null },
): IndexRange {
  const { timeline } = data
  const first = bounds.gte === null ? 0 : timeline.firstAtOrAfter(bounds.gte)
  const last = bounds.lte === null ? timeline.total : timeline.firstAtOrAfter(bounds.lte + 1)
  return { low: selection.matchesBefore(first), high: selection.matchesBefore(Math.max(first, last)) }
}
