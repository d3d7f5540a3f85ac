import { expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { startAttack } from './hostile-run.ts'
import { credential, type Exchange } from './hostile-service.ts'
import { findLeaks, haystacksOf } from './leak-search.ts'

/** Secrets that do not belong to the request whose response repeats them. */
const SECRETS = {
  'a token that this run does not use': 'tok.M4rlin-unused-0b7de911',
  'the API key': 'key.M4rlin-api-5530fe77aa',
  'a token that was replaced': 'tok.M4rlin-replaced-93ab02cc',
  'the mask key': 'M4rlin-mask-key-of-32-bytes-or-more-beef',
  'the password of a proxy': 'M4rlin-proxy-7716',
} as const

/** What is echoed for each domain: every secret, as it is and in one of the forms of `test/core/known-secrets`. */
const CASES = new Map(
  Object.values(SECRETS).flatMap((secret, i) => [
    [`plain-${i}.example`, secret],
    [`base64-${i}.example`, Buffer.from(`xy${secret}`).toString('base64url')],
  ]),
)

/** How a service responds that echoes what it should not know. */
function echoing(): (exchange: Exchange) => void {
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
    const echo = CASES.get(fqdn)
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
      return { items: [credential(3), credential(4, { imported_at: maskKey, domain: apiKey })], next: null }
    case 'fine-3.example':
      return { items: [credential(5, { id: 'x', [apiKey]: [replaced] })], next: null }
    default:
      return { items: [], next: null }
  }
}

// In a run that holds a query for a secret, no text of the service is shown at all: `quoted-secrets-are-left-out`.
test.concurrent.each(['pretty', 'json'])(
  'a secret of one request is never printed or stored for another: %s',
  async (logs) => {
    // Valid responses come in between, because too many failures in a row end a run.
    const domains = [...CASES.keys()].flatMap((domain, i) => [domain, `fine-${i}.example`])
    const secrets = {
      SPILLWAY_TOKEN: SECRETS['a token that this run does not use'],
      MY_KEY: SECRETS['the API key'],
      SPILLWAY_MASK_KEY: SECRETS['the mask key'],
    }
    // No other command uses the network, so only this one gets the proxy.
    const proxy = { HTTPS_PROXY: `http://user:${SECRETS['the password of a proxy']}@127.0.0.1:9` }
    const here = await startAttack(
      echoing(),
      { service: { api_key_env: 'MY_KEY', retries: 1 }, extract: { domains, concurrency: 8 } },
      { env: secrets },
    )
    const run = await exits(1, here.with(proxy).run('--log-level', 'debug', '--log-format', logs))
    expect(run.stderr.split('left out: it repeats a secret').length).toBeGreaterThan(CASES.size)
    const results = [run, await here.call('status'), await here.call('status', '--json')]
    // Every case failed, and the page whose cursor could not be saved. The others were exported.
    const failed = JSON.parse(results[2]!.stdout).totals.failed
    expect(failed).toBe(CASES.size + 1)
    const canaries = Object.entries(SECRETS).map(([name, value]) => ({ name, value }))
    const printed = results.flatMap(({ stdout, stderr }) => [
      { name: 'stdout', bytes: Buffer.from(stdout) },
      { name: 'stderr', bytes: Buffer.from(stderr) },
    ])
    // Rows may hold anything that the service sends.
    const files = (await haystacksOf(here.output)).filter(({ name }) => !name.endsWith('.csv'))
    const names = files.map(({ name }) => name).join('\n')
    expect(names).toContain('checkpoint.jsonl')
    expect(names).toContain('_quarantine')
    expect(findLeaks([...printed, ...files], canaries)).toEqual([])
  },
)
