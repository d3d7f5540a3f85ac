import { expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { startAttack } from './hostile-run.ts'
import { credential, type Exchange } from './hostile-service.ts'
import { findLeaks, haystacksOf } from './leak-search.ts'

/** Secrets that do not belong to the request whose response repeats them. */
const TOKENS = {
  'a token that this run does not use': 'tok.M4rlin-unused-0b7de911',
  'the API key': 'key.M4rlin-api-5530fe77aa',
  'a token that was replaced': 'tok.M4rlin-replaced-93ab02cc',
  'the mask key': 'M4rlin-mask-key-of-32-bytes-or-more-beef',
  'the password of a proxy': 'M4rlin-proxy-7716',
} as const

const SECRETS = {
  ...TOKENS,
  'the secret of a query that is done': 'M4r"lin\\done+1/2&3 doné',
  'the secret of a query that is not sent yet': 'M4r"lin\\later+4/5&6 latér',
  'the secret of a query, short': 'm4rl1n',
} as const

const json = (value: string): string => JSON.stringify(value).slice(1, -1)
type Echo = (secret: string) => string
const FORMS: readonly Echo[] = [
  (secret) => secret,
  (secret) => secret.toUpperCase(),
  (secret) => json(secret),
  (secret) => encodeURIComponent(secret),
  (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  (secret) => Buffer.from(`x${secret}`).toString('base64'),
  (secret) => Buffer.from(`xy${secret}`).toString('base64url'),
]
/** Only where no text of the service is shown at all. */
const OTHERS: readonly Echo[] = [
  (secret) => json(json(secret)),
  (secret) => Buffer.from(secret, 'utf16le').toString('hex'),
]

/** What is echoed for each domain: every secret in every form. */
function casesOf(secrets: Readonly<Record<string, string>>, forms: readonly Echo[]) {
  return new Map(
    Object.values(secrets).flatMap((secret, s) =>
      forms.map((echo, e) => [`s${s}-e${e}.example`, echo(secret)] as const),
    ),
  )
}

/** How a service responds that echoes what it should not know. */
function echoing(cases: ReadonlyMap<string, string>): (exchange: Exchange) => void {
  let exchanged = 0
  const refused = new Set<string>()
  return (exchange) => {
    const { path, body, headers } = exchange
    if (path === '/tokens/generate') {
      exchanged++
      exchange.json({ token: exchanged === 1 ? SECRETS['a token that was replaced'] : 'tok.current-77aa' })
      return
    }
    if (headers.authorization === `Bearer ${SECRETS['a token that was replaced']}`) {
      exchange.json({ error: { code: 'EXPIRED', message: 'expired' } }, 401)
      return
    }
    const { fqdn = '' } = body.query
    const echo = cases.get(fqdn)
    if (echo === undefined) exchange.json(page(fqdn))
    // Before the final failure there is a retry, which is logged.
    else if (!refused.has(fqdn)) {
      refused.add(fqdn)
      exchange.json({ error: { code: 'BUSY', message: `try ${echo} again` } }, 503)
    } else exchange.json({ error: { code: echo, message: `no index for ${echo}`, data: echo } }, 400)
  }
}

function page(fqdn: string): object {
  const [apiKey, replaced] = [SECRETS['the API key'], SECRETS['a token that was replaced']]
  const maskKey = SECRETS['the mask key']
  switch (fqdn) {
    case 'fine-0.example':
      return { items: [credential(1)], next: `c-${Buffer.from(apiKey).toString('base64')}` }
    case 'fine-1.example':
      return { items: [credential(2, { [replaced]: 1, [`x${maskKey}`]: 2 })], next: null }
    case 'fine-2.example':
      return {
        items: [credential(3), { ...credential(4), imported_at: maskKey, domain: apiKey }],
        next: null,
      }
    case 'fine-3.example':
      return { items: [{ ...credential(5), id: 'x', [apiKey]: [replaced] }], next: null }
    default:
      return { items: [], next: null }
  }
}

const QUERIES = ['DONE', 'SHORT', 'LATER'].map((name) => `{ type: secret, secret_env: ${name} }`)

const RUNS = [
  {
    name: 'beside queries of secrets',
    logs: 'json',
    queries: QUERIES,
    cases: casesOf(SECRETS, [...FORMS, ...OTHERS]),
    remark: 'left out: the run holds a query whose value must not be shown',
  },
  {
    name: 'without such queries',
    logs: 'pretty',
    queries: [],
    cases: casesOf(TOKENS, FORMS),
    remark: 'left out: it repeats a secret',
  },
]

test.concurrent.each(RUNS)(
  'a secret of one request is never printed or stored for another: $name',
  async ({ logs, queries, cases, remark }) => {
    // Valid responses come in between, because too many failures in a row end a run.
    const domains = [...cases.keys()].flatMap((domain, i) => [domain, `fine-${i}.example`])
    const secrets = {
      SPILLWAY_TOKEN: SECRETS['a token that this run does not use'],
      MY_KEY: SECRETS['the API key'],
      SPILLWAY_MASK_KEY: SECRETS['the mask key'],
      DONE: SECRETS['the secret of a query that is done'],
      SHORT: SECRETS['the secret of a query, short'],
      LATER: SECRETS['the secret of a query that is not sent yet'],
    }
    // No other command uses the network, so only this one gets the proxy.
    const proxy = { HTTPS_PROXY: `http://user:${SECRETS['the password of a proxy']}@127.0.0.1:9` }
    const { call, pipeline, output } = await startAttack(echoing(cases), {
      service: 'api_key_env: MY_KEY, retries: 1',
      extract: `domains: [${domains.join(', ')}], queries: [${queries}], concurrency: 8`,
      env: secrets,
    })
    const traced = ['run', pipeline, '--json', '--log-level', 'debug', '--log-format', logs]
    const run = await exits(1, call(traced, proxy))
    expect(run.stderr.split(remark).length).toBeGreaterThan(cases.size)
    const results = [run, await call(['status', pipeline]), await call(['status', pipeline, '--json'])]
    // Every case failed, and the page whose cursor could not be saved. The others were exported.
    const failed = JSON.parse(results[2]!.stdout).totals.failed
    expect(failed).toBe(cases.size + 1)
    const canaries = Object.entries(SECRETS).map(([name, value]) => ({ name, value }))
    const printed = results.flatMap(({ stdout, stderr }) => [
      { name: 'stdout', bytes: Buffer.from(stdout) },
      { name: 'stderr', bytes: Buffer.from(stderr) },
    ])
    // Rows may hold anything that the service sends.
    const files = (await haystacksOf(output)).filter(({ name }) => !name.endsWith('.csv'))
    const names = files.map(({ name }) => name).join('\n')
    expect(names).toContain('checkpoint.jsonl')
    expect(names).toContain('_quarantine')
    expect(findLeaks([...printed, ...files], canaries)).toEqual([])
  },
)
