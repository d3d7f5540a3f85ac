import type { Mapping } from '../problems/tree.ts'
import { ADDRESS, ID_ADDRESS, URL_ALONE } from '../values/addresses.ts'
import { type Condition, key, onlyFor, onlyIf } from './key.ts'
import {
  byteSize,
  duration,
  flag,
  integer,
  integerOr,
  parsed,
  rate,
  section,
  text,
  variableName,
} from './leaves.ts'

const address = () => parsed(...ADDRESS)

const exchange = onlyIf<Mapping>(
  'service',
  ({ api_key_env, api_key_file }) => (api_key_env ?? api_key_file) !== undefined,
  () => 'goes with api_key_env, which is not there',
)

/** Beside no other place of the secret. */
function alone(name: string, ...others: readonly string[]): Condition {
  const beside = (found: Mapping) => others.find((other) => found[other] !== undefined)
  return onlyIf<Mapping>(
    'service',
    (found) => beside(found) === undefined,
    (found) => `expected ${name} or ${beside(found)}, found both`,
  )
}

const path = () => text(/^(?!~)./, 'the path of a file, relative to this one')

export const service = section({
  base_url: key(
    parsed(...URL_ALONE),
    'Host and fixed prefix segment of the service; https unless the host is this machine. Required.',
  ),
  allow_http: key(
    flag().prefault(false),
    'Allow plain http to other machines: tokens and leaked secrets are then sent unencrypted.',
  ),
  token_env: key(
    variableName().prefault('SPILLWAY_TOKEN'),
    'Environment variable with the access token; <name>_FILE may name a file instead.',
    alone('token_env', 'token_file', 'api_key_env', 'api_key_file'),
  ),
  token_file: key(
    path().optional(),
    'File with the access token, relative to the pipeline file, instead of token_env. Default: none.',
    alone('token_file', 'api_key_env', 'api_key_file'),
  ),
  api_key_env: key(
    variableName().optional(),
    'Environment variable with an API key that is exchanged for tokens, instead of token_env. Default: none.',
    alone('api_key_env', 'api_key_file'),
  ),
  api_key_file: key(
    path().optional(),
    'File with an API key, relative to the pipeline file, instead of api_key_env. Default: none.',
  ),
  token_url: key(
    address().prefault('/tokens/generate'),
    'Where the API key is exchanged: a path on the host of base_url, or a URL; `check` tests the token beside it.',
    exchange,
  ),
  tenant_id: key(
    integer(0).optional(),
    'Tenant that exchanged tokens are for. Default: that of the key.',
    exchange,
  ),
  organization: key(
    text(/^[\w.@/-]{1,100}$/, 'up to 100 letters, digits and . _ @ / -').optional(),
    'Name of the organization whose rate limit and quota this uses, for runs of many workers. Default: that of the token test, else the host of base_url.',
  ),
  search_path: key(
    address().prefault('/v4/credentials/global/_search'),
    'Credential search: a path under base_url, or a URL.',
    onlyFor(({ reading }) => reading !== 'feed'),
  ),
  report_path: key(
    address().prefault('/v4/threat_flow/reports'),
    'Threat-flow reports: a path under base_url, or a URL.',
  ),
  feed_path: key(
    address().prefault('/v2/me/feed/credentials'),
    'Feed of the token’s tenant: a path under base_url, or a URL.',
  ),
  identifier_feed_path: key(
    parsed(...ID_ADDRESS).prefault('/v3/identifiers/{id}/feed/credentials'),
    'Feed of one identifier: a path under base_url, or a URL, with {id} in it.',
  ),
  requests_per_second: key(
    rate(10_000).prefault(1),
    'Requests a second to the credential search, or to the feeds, all partitions together; may be a fraction. The second search may allow 4.',
  ),
  basic_requests_per_second: key(
    rate(10_000).prefault(4),
    'Requests a second to everything but searches and feeds.',
  ),
  rows_per_search: key(
    integerOr('page', 1).prefault(100),
    'Rows that one search of the quota covers; `page`: a page is one search, however many rows it has.',
  ),
  timeout: key(
    duration('1ms', '1d').prefault('60s'),
    'Longest duration of one request, from the headers sent to the last byte.',
  ),
  retries: key(
    integer(0, 100).prefault(8),
    'How often a failed request is sent again: 2 means three requests at most.',
  ),
  max_response_bytes: key(byteSize(1024, 2 ** 31).prefault('256MB'), 'Largest response that is accepted.'),
})
