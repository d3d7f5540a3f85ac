import * as z from 'zod'
import {
  parseInstant,
  type ResourceRules,
  SEARCHES,
  type SearchQuery,
  type WindowLength,
} from '../../core/index.ts'
import { DOMAIN_EXPECTED, domainFault, mistakeIn, parseDomain } from '../values/addresses.ts'
import { key, onlyFor } from './key.ts'
import { integerOr, parsed, section, variableName } from './leaves.ts'

const SEARCHED = ({ reading }: ResourceRules) => reading === 'search'

// A looser pattern than the parser's: regular expressions for Unicode differ between editors.
export const domain = () => parsed(/\S/, DOMAIN_EXPECTED, parseDomain, domainFault)
const fqdn = key(domain(), 'Domain name.')
const KEYWORD_EXPECTED = 'a text of 1 to 256 characters, without @ and control characters'
const NAME_EXPECTED = 'a name of 1 to 200 characters, without control characters'
const kind = <const Kind extends SearchQuery['type'], By extends z.core.$ZodLooseShape>(name: Kind, by: By) =>
  section({
    type: key(z.literal(name), 'Kind of the query: what is searched for.'),
    ...by,
    as: key(
      parsed(/\S/, NAME_EXPECTED, cleanName).optional(),
      'Name of the query in folders, keys and logs, instead of its value. Default: its value.',
    ),
  })
export const query = z
  .discriminatedUnion(
    'type',
    [
      kind('domain', { fqdn }),
      kind('auth_domain', { fqdn }),
      kind('email', {
        email: key(
          parsed(/@/, 'an e-mail address', cleanEmail, (text) => mistakeIn('email', text)),
          'Exact address.',
        ),
      }),
      kind('keyword', {
        keyword: key(
          parsed(/\S/, KEYWORD_EXPECTED, cleanKeyword, (text) => mistakeIn('keyword', text)),
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

export const windows = section({
  from: key(
    parsed(INSTANT_PATTERN, INSTANT, parseInstant).optional(),
    'Begin, inclusive: a date or date-time, UTC unless it has an offset. Default: none; required unless resource is feed, which takes none.',
    onlyFor(SEARCHED, () => ': it is read from where the last run ended'),
  ),
  until: key(
    parsed(/^(?:now$|\d{4}-\d{2}-\d{2})/, `${INSTANT}, or now`, (value) =>
      value === 'now' ? ('now' as const) : parseInstant(value),
    ).prefault('now'),
    'End, exclusive: a date or date-time, or now.',
    onlyFor(SEARCHED, () => ': it is read to its end'),
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
    onlyFor(SEARCHED, () => ': it is read in one sequence'),
  ),
})

function cleanEmail(value: string): string | null {
  const email = value.trim()
  if (email.length > 320 || mistakeIn('email', email) !== null) return null
  return /^[^\s\p{Cc}]+@[^\s\p{Cc}@]+$/u.test(email) ? email : null
}

function cleanKeyword(value: string): string | null {
  const keyword = value.trim()
  if (keyword.length > 256 || mistakeIn('keyword', keyword) !== null) return null
  return /\p{Cc}/u.test(keyword) ? null : keyword
}

function cleanName(value: string): string | null {
  const name = value.trim()
  return name !== '' && name.length <= 200 && !/\p{Cc}/u.test(name) ? name : null
}

function parseWindowLength(value: string): WindowLength | null {
  const match = /^(\d+)([hd])$/.exec(value)
  if (match !== null) return { unit: match[2] === 'h' ? 'hour' : 'day', count: Number(match[1]) }
  return value === 'week' || value === 'month' || value === 'year' ? { unit: value } : null
}
