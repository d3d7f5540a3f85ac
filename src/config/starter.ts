import { stringify } from 'yaml'
import type { Path } from './problems/tree.ts'
import { pipelineFile } from './schema/file-schema.ts'

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

/** The commented pipeline file that `init` writes. It is valid if SPILLWAY_BASE_URL is set. */
export function starterPipeline(settings: Partial<StarterAnswers> = {}): string {
  const { name, baseUrl, domains, from, until, every, secret, format } = { ...DEFAULTS, ...settings }
  return starter({
    name: commented(`name: ${scalar(name)}`, 'a-z, 0-9 and -; names the checkpoint'),
    baseUrl: commented(
      `  base_url: ${scalar(baseUrl)}`,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the reader's own syntax
      'host and prefix of the service; ${VAR} and ${VAR:-default} are expanded',
    ),
    domains: `  domains: [${domains.map(scalar).join(', ')}]`,
    windows: `  windows: { from: ${from}, until: ${until}, every: ${every} }   # UTC; every: <n>h, <n>d, week, month or year`,
    secret: commented(
      `  secret: ${secret}`,
      'redact | drop | partial | hmac | plaintext (needs --allow-plaintext)',
    ),
    format: commented(`  format: ${format}`, 'parquet | csv'),
    path: commented(`  # path: output/${name}`, 'relative to the working directory'),
  })
}

/** Aligns comments in one column, if there is space. */
function commented(text: string, comment: string): string {
  return `${text.padEnd(36)} # ${comment}`
}

function scalar(value: string): string {
  return stringify(value, { lineWidth: 0 }).trimEnd()
}

type Lines = Readonly<
  Record<'name' | 'baseUrl' | 'domains' | 'windows' | 'secret' | 'format' | 'path', string>
>

// `$` before `{` is escaped for TypeScript.
const starter = (lines: Lines): string => `# A pipeline: what to export, how to mask it, where to write it.
#   spillway check pipeline.yaml   validates this file, the environment and the service
#   spillway plan pipeline.yaml    shows what a run would do and cost; sends nothing
#   spillway run pipeline.yaml     exports; run again to resume where it stopped
# Commented lines show the defaults or an alternative.

${lines.name}

service:
${lines.baseUrl}
  token_env: SPILLWAY_TOKEN          # the variable that holds the token; SPILLWAY_TOKEN_FILE may name a file
  # api_key_env: SPILLWAY_API_KEY    # instead of token_env: a key that is exchanged for tokens and renewed
  # tenant_id: 1                     # with api_key_env: the tenant that the tokens are for
  # requests_per_second: 1           # what the service allows; may be a fraction
  # timeout: 60s                     # per request, headers to last byte
  # retries: 8

extract:
${lines.domains}
  # domains_file: domains.txt        # one a line, # comments; relative to this file
  # queries:                         # any of the five kinds
  #   - { type: auth_domain, fqdn: login.example.com }
  #   - { type: email, email: someone@example.com }
  #   - { type: keyword, keyword: someone }
  #   - { type: secret, secret_env: LEAKED_PASSWORD }   # the variable that holds it, never the secret
${lines.windows}
  # lag: 15m                         # with until: now, windows that ended less than this ago wait
  # include: [known_password_id]     # optional fields to request
  # concurrency: 4                   # chains in flight; the rate limit is shared by all
  # page_size: auto                  # or a number up to 10000, the upper bound; may change between runs
  max_requests: 500                  # budget of one run, in requests; none: no budget
  min_searches_remaining: 100        # searches of the quota to be left; none: no reserve

transform:
${lines.secret}
  identity: keep                     # keep | hmac | drop
  # mask_key_env: SPILLWAY_MASK_KEY  # with hmac: the variable that holds a key of 32 bytes or more
  # columns: [id, domain, imported_at, source_name]   # left out: all
  # extra_columns: [event_uid]       # further fields, also ones that this version does not know
  # on_invalid: quarantine           # quarantine | fail
  # max_quarantined: 1%              # a count or a share; beyond it the partition fails

load:
${lines.format}
${lines.path}
  # partition_by: [query, window]    # either, both, or none
  # shard_rows: 1000000
  # keep: 24mo                      # \`spillway prune\` removes older partitions; a run removes nothing
  # compression: snappy              # parquet: none | snappy | gzip | zstd; csv: none | gzip
`

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
