import { RESOURCE_NAMES } from '../../core/index.ts'
import { key, onlyFor } from './key.ts'
import { choice, duration, flag, integer, integerOr, limit, list, section, text } from './leaves.ts'
import { domain, query, windows } from './query-schema.ts'

const SEARCHED = onlyFor(({ reading }) => reading === 'search')
const IN_WINDOWS = onlyFor(({ reading }) => reading !== 'list')
const LISTED = onlyFor(({ reading }) => reading === 'list')
const COUNTED = onlyFor(
  ({ reading }) => reading === 'search',
  () => ', which costs no searches',
)

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
    list(integer(1), 'a list of identifier ids').optional(),
    'With resource: feed, the identifiers whose feeds are read. Default: the feed of the tenant.',
    onlyFor(({ reading, addresses }) => reading === 'feed' && addresses.length > 1),
  ),
  windows: key(
    windows.optional(),
    'Range of import times, cut into windows. Default: everything, as one window.',
    IN_WINDOWS,
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
    COUNTED,
  ),
  min_searches_remaining: key(
    limit(0, 100),
    'Searches of the quota to be left, by the service’s count: a page that may cost more is not requested. none: no reserve.',
    COUNTED,
  ),
})
