import * as z from 'zod'
import {
  parseInstant,
  RESOURCE_NAMES,
  SEARCHES,
  type SearchQuery,
  type WindowLength,
} from '../../core/index.ts'
import { DOMAIN_EXPECTED, domainFault, mistakeIn, parseDomain } from '../values/addresses.ts'
import { key, onlyFor } from './key.ts'
import {
  choice,
  duration,
  flag,
  integer,
  integerOr,
  limit,
  list,
  parsed,
  section,
  text,
  variableName,
} from './leaves.ts'

const SEARCHED = onlyFor(({ reading }) => reading === 'search')
const LISTED = onlyFor(({ reading }) => reading === 'list')

// A looser pattern than the parser's: regular expressions for Unicode differ between editors.
const domain = () => parsed(/\S/, DOMAIN_EXPECTED, parseDomain, domainFault)
const fqdn = key(domain(), 'Domain name.')
/** A text without the blanks around it. @param kind of a query whose value it is */
const trimmed = (pattern: RegExp, maxLength: number, expected: string, kind?: 'email' | 'keyword') => {
  const mistake = (text: string) => (kind === undefined ? null : mistakeIn(kind, text))
  const parse = (text: string): string | null => {
    const value = text.trim()
    return value.length <= maxLength && pattern.test(value) && mistake(value) === null ? value : null
  }
  return parsed(/\S/, expected, parse, mistake)
}
const PRINTABLE = /^\P{Cc}+$/u
const KEYWORD_EXPECTED = 'a text of 1 to 256 characters, without @ and control characters'
const NAME_EXPECTED = 'a name of 1 to 200 characters, without control characters'
const kind = <const Kind extends SearchQuery['type'], By extends z.core.$ZodLooseShape>(name: Kind, by: By) =>
  section({
    type: key(z.literal(name), 'Kind of the query: what is searched for.'),
    ...by,
    as: key(
      trimmed(PRINTABLE, 200, NAME_EXPECTED).optional(),
      'Name of the query in folders, keys and logs, instead of its value. Default: its value.',
    ),
  })
const query = z
  .discriminatedUnion(
    'type',
    [
      kind('domain', { fqdn }),
      kind('auth_domain', { fqdn }),
      kind('email', {
        email: key(
          trimmed(/^[^\s\p{Cc}]+@[^\s\p{Cc}@]+$/u, 320, 'an e-mail address', 'email'),
          'Exact address.',
        ),
      }),
      kind('keyword', {
        keyword: key(
          trimmed(PRINTABLE, 256, KEYWORD_EXPECTED, 'keyword'),
          'The part of the identity before the @.',
        ),
      }),
      kind('secret', {
        secret_env: key(
          variableName(),
          'Environment variable that holds the secret; a secret is never written in the file.',
        ),
      }),
    ],
    {
      error: (issue) =>
        issue.code === 'invalid_union'
          ? Object.keys(SEARCHES).join(' | ')
          : 'a query such as { type: domain, fqdn: example.com }',
    },
  )
  .meta({ description: "One query, in the service's own shape." })

const INSTANT_PATTERN = /^\d{4}-\d{2}-\d{2}/
export const INSTANT = 'a date or date-time that exists, such as 2024-01-31 or 2024-01-31T06:00:00Z'

const windows = section({
  from: key(
    parsed(INSTANT_PATTERN, INSTANT, parseInstant).optional(),
    'Begin, inclusive: a date or date-time, UTC unless it has an offset. Default: none; required unless resource is feed, which takes none.',
    SEARCHED,
  ),
  until: key(
    parsed(/^(?:now$|\d{4}-\d{2}-\d{2})/, `${INSTANT}, or now`, (value) =>
      value === 'now' ? ('now' as const) : parseInstant(value),
    ).prefault('now'),
    'End, exclusive: a date or date-time, or now.',
    SEARCHED,
  ),
  every: key(
    parsed(
      /^(?:[1-9]\d{0,5}[hd]|week|month|year)$/,
      '<n>h, <n>d, week, month or year',
      parseWindowLength,
    ).optional(),
    'Length of a window: <n>h, <n>d, week, month or year. Default: one window; for resource: feed, a month.',
  ),
  per_chain: key(
    integerOr('all', 1).prefault('all'),
    'Windows that are requested together, with one sequence of cursors; each such chain is at least one request.',
    SEARCHED,
  ),
})

export const extract = section({
  resource: key(choice(...RESOURCE_NAMES).prefault('credentials'), 'What to export.'),
  domains: key(
    list(domain(), 'a list of domain names').optional(),
    'Short for domain queries. Default: none.',
    SEARCHED,
  ),
  domains_file: key(
    text(/./, 'the path of a file').optional(),
    'File with one domain a line and # comments, relative to the file that names it. Default: none.',
    SEARCHED,
  ),
  queries: key(list(query, 'a list of queries').optional(), 'Queries of any kind. Default: none.', SEARCHED),
  ids: key(
    list(integer(0), 'a list of report ids').optional(),
    'Reports to fetch, by id. Default: none.',
    LISTED,
  ),
  all: key(flag().optional(), 'Fetch every report. Default: false.', LISTED),
  identifiers: key(
    list(integer(1), 'a list of identifier ids')
      .min(1, 'at least one id; default: the feed of the tenant')
      .optional(),
    'With resource: feed, the identifiers whose feeds are read. Default: the feed of the tenant.',
    onlyFor(({ reading, addresses }) => reading === 'feed' && addresses.length > 1),
  ),
  windows: key(
    windows.optional(),
    'Range of import times, cut into windows. Default: everything, as one window.',
    onlyFor(({ reading }) => reading !== 'list'),
  ),
  lag: key(
    duration('0s', '365d').prefault('15m'),
    'With until: now, windows that ended less than this ago wait.',
    SEARCHED,
  ),
  order: key(
    choice('asc', 'desc').prefault('asc'),
    'Order by import time; with asc a resumed run gets rows that were imported in between.',
  ),
  page_size: key(
    integerOr('auto', 1, 10_000).prefault('auto'),
    'Maximum number of items in one request; fewer if the service cannot serve so many in time. auto: 10000, for reports 10, for feeds 100.',
  ),
  include: key(
    list(text(/^[a-z0-9_]+$/, 'a field name (a-z, 0-9 and _)'), 'a list of field names').optional(),
    'Optional fields to request, such as known_password_id, auth_domains or urls. Default: none.',
    onlyFor(({ optional }) => optional?.length !== 0),
  ),
  concurrency: key(integer(1, 64).prefault(4), 'Chains in flight; they share the rate.'),
  max_requests: key(limit(1, 500), 'Budget of one run in requests, retries among them; none: no budget.'),
  monthly_searches: key(
    limit(1, 'none'),
    'Searches of the quota that all runs of the data set may spend in a calendar month (UTC); a page may cost several. none: no such share.',
    SEARCHED,
  ),
  min_searches_remaining: key(
    limit(0, 100),
    'Searches of the quota to be left, by the service’s count: a page that may cost more is not requested. none: no reserve.',
    SEARCHED,
  ),
})

export function parseWindowLength(value: string): WindowLength | null {
  const match = /^(\d+)([hd])$/.exec(value)
  if (match !== null) return { unit: match[2] === 'h' ? 'hour' : 'day', count: Number(match[1]) }
  return value === 'week' || value === 'month' || value === 'year' ? { unit: value } : null
}
