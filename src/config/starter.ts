import { stringify } from 'yaml'
import { IDENTITY_POLICIES, INVALID_POLICIES, SECRET_POLICIES } from '../core/index.ts'
import type { Path } from './problems/tree.ts'
import { pipelineFile } from './schema/file-schema.ts'
import { keysOf } from './schema/key.ts'

/** The settings of a starter pipeline. */
export type StarterAnswers = {
  readonly name: string
  /** A URL, or a reference to a variable that holds one. */
  readonly baseUrl: string
  readonly domains: readonly string[]
  readonly from: string
  readonly until: string
  readonly every: string
  readonly secret: string
  readonly format: string
}

const DEFAULTS: StarterAnswers = {
  name: 'my-export',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
  baseUrl: '${SPILLWAY_BASE_URL}',
  domains: ['example.com'],
  from: '2024-01-01',
  until: 'now',
  every: 'month',
  secret: 'redact',
  format: 'parquet',
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the reader's own syntax
const ABOUT_VARIABLES = 'host and prefix of the service; ${VAR} and ${VAR:-default} are expanded'

/** The commented pipeline file that `init` writes. It is valid if SPILLWAY_BASE_URL is set. */
export function starterPipeline(settings: Partial<StarterAnswers> = {}): string {
  const { name, baseUrl, domains, from, until, every, secret, format } = { ...DEFAULTS, ...settings }
  return `# A pipeline: what to export, how to mask it, where to write it.
#   spillway check pipeline.yaml   validates this file, the environment and the service
#   spillway plan pipeline.yaml    shows what a run would do and cost; sends nothing
#   spillway run pipeline.yaml     exports; run again to resume where it stopped
# Commented lines show the defaults or an alternative.

${commented(`name: ${inline(name)}`, 'a-z, 0-9 and -; names the checkpoint')}

service:
${line('base_url', baseUrl, ABOUT_VARIABLES)}
${line('token_env', usual('service', 'token_env'), 'the variable that holds the token; SPILLWAY_TOKEN_FILE may name a file')}
${option('service', 'api_key_env', 'instead of token_env: a key that is exchanged for tokens and renewed')}
${option('service', 'tenant_id', 'with api_key_env: the tenant that the tokens are for')}
${option('service', 'requests_per_second', 'what the service allows; may be a fraction')}
${option('service', 'timeout', 'per request, headers to last byte')}
${option('service', 'retries', 'how often a failed request is sent again')}

extract:
  domains: [${domains.map(inline).join(', ')}]
${option('extract', 'domains_file', 'one a line, # comments; relative to this file')}
  # queries:                         # any of the five kinds
  #   - { type: auth_domain, fqdn: login.example.com }
  #   - { type: email, email: someone@example.com }
  #   - { type: keyword, keyword: someone }
  #   - { type: secret, secret_env: LEAKED_PASSWORD }   # the variable that holds it, never the secret
  windows: { from: ${from}, until: ${until}, every: ${every} }   # UTC; every: <n>h, <n>d, week, month or year
${option('extract', 'lag', 'with until: now, windows that ended less than this ago wait')}
${option('extract', 'include', 'optional fields to request')}
${option('extract', 'concurrency', 'chains in flight; the rate limit is shared by all')}
${option('extract', 'page_size', 'or a number up to 10000, the upper bound; may change between runs')}
${line('max_requests', usual('extract', 'max_requests'), 'budget of one run, in requests; none: no budget')}
${line('min_searches_remaining', usual('extract', 'min_searches_remaining'), 'searches of the quota to be left; none: no reserve')}

transform:
${line('secret', secret, `${SECRET_POLICIES.join(' | ')} (needs --allow-plaintext)`)}
${line('identity', usual('transform', 'identity'), IDENTITY_POLICIES.join(' | '))}
${option('transform', 'mask_key_env', 'with hmac: the variable that holds a key of 32 bytes or more')}
${option('transform', 'columns', 'left out: all')}
${option('transform', 'extra_columns', 'further fields, also ones that this version does not know')}
${option('transform', 'on_invalid', INVALID_POLICIES.join(' | '))}
${option('transform', 'max_quarantined', 'a count or a share; beyond it the partition fails')}

load:
${line('format', format, 'parquet | csv')}
${commented(`  # path: output/${name}`, 'relative to the working directory')}
${option('load', 'partition_by', 'either, both, or none')}
${option('load', 'shard_rows', 'rows of one file')}
${option('load', 'keep', '`spillway prune` removes older partitions; a run removes nothing')}
${option('load', 'compression', 'parquet: none | snappy | gzip | zstd; csv: none | gzip')}
`
}

/** Aligns comments in one column, if there is space. */
function commented(text: string, comment: string): string {
  return `${text.padEnd(36)} # ${comment}`
}

function line(name: string, value: unknown, comment: string): string {
  return commented(`  ${name}: ${inline(value)}`, comment)
}

/** A line that is a comment: a key with its default, or an example if it has none. */
function option(section: string, name: string, comment: string): string {
  return commented(`  # ${name}: ${inline(usual(section, name))}`, comment)
}

function usual(section: string, name: string): unknown {
  const keys = keysOf(pipelineFile).find((key) => key.name === section)?.keys
  const key = keys?.find((each) => each.name === name)
  return key?.byDefault ?? key?.example
}

function inline(value: unknown): string {
  // A style of its own would put strings with braces in quotes, too.
  const style = typeof value === 'object' ? 'flow' : 'any'
  return stringify(value, { lineWidth: 0, collectionStyle: style, flowCollectionPadding: false }).trimEnd()
}

/**
 * The fault of a value for one key of a pipeline file, as the continuation of "expected"; null: none. Dependencies on
 * other keys are not checked.
 */
export function settingFault(path: Path, value: unknown): string | null {
  const [section = '', ...keys] = path
  const base: Readonly<Record<string, object>> = {
    service: { base_url: 'https://host.invalid' },
    extract: keys[0] === 'windows' ? { windows: { from: '2024-01-01' } } : {},
  }
  const file = { name: 'unnamed', service: base.service, extract: base.extract }
  const result = pipelineFile.safeParse(
    keys.length === 0 ? { ...file, [section]: value } : put(file, path, value),
  )
  if (result.success) return null
  const [issue] = result.error.issues
  const fault: unknown = issue?.code === 'custom' ? issue.params?.fault : undefined
  return `${issue?.message}${typeof fault === 'string' ? `, found ${fault}` : ''}`
}

function put(root: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value
  const inner = typeof root === 'object' && root !== null ? root : {}
  return { ...inner, [key]: put(Reflect.get(inner, key), rest, value) }
}
