import { expect, test } from 'vitest'
import { CODES, FORMS, OTHER_SPELLINGS } from '../support/quotations.ts'
import { exits } from '../support/run-cli.ts'
import { isOfTheDay, some } from '../support/thorough.ts'
import { startAttack } from './hostile-run.ts'
import { credential, type Exchange } from './hostile-service.ts'
import { haystacksOf } from './leak-search.ts'

/** Stands in every text that quotes the secret. No such text may be anywhere. */
const MARKER = 'quotes-it'

const QUOTED = Object.values({ ...FORMS, ...CODES, ...OTHER_SPELLINGS })

/** Refusals that quote a text, each at another place: a retry is logged, and what remains fails a partition. */
const REFUSALS: readonly ((exchange: Exchange, text: string) => void)[] = [
  (exchange, text) => exchange.json({ error: { code: 'BUSY', message: text } }, 503),
  (exchange, text) => exchange.json({ error: { code: text, message: null, data: text } }, 400),
  (exchange, text) => exchange.json({ detail: [{ loc: ['body', text, 7], msg: text, input: text }] }, 422),
  (exchange, text) => exchange.json({ detail: text }, 409),
  (exchange, text) => exchange.json(`<html><h1>${text}</h1></html>`, 500, { 'content-type': 'text/html' }),
  (exchange, text) => exchange.json(`Bad request: ${text}`, 400, { 'content-type': 'text/plain' }),
  // No JSON, and JSON of another shape.
  (exchange, text) => exchange.json(`{"items": [${JSON.stringify(text)}`),
  (exchange, text) => exchange.json({ items: { [text]: text } }),
  (exchange, text) => exchange.json({ items: [], next: { [text]: text } }),
  ({ response }, text) => response.writeHead(307, { location: `/${encodeURIComponent(text)}` }).end(),
  (exchange, text) => exchange.json(text, 200, { 'content-encoding': encodeURIComponent(text) }),
]

/**
 * Refuses each domain `d<i>` with a quotation of the secret, and has fields that are named so; its headers quote it too.
 */
function quoting(secret: string): (exchange: Exchange) => void {
  return (exchange) => {
    const { fqdn } = exchange.body?.query ?? {}
    const number = Number(/^d(\d+)\./.exec(fqdn ?? '')?.[1] ?? -1)
    const quotations = QUOTED.map((each) => `${MARKER} {"secret":"${each(secret)}"}`)
    const { response } = exchange
    const inHeader = `${MARKER} ${encodeURIComponent(secret.toWellFormed())}`
    for (const name of ['x-error', 'warning', 'x-flare-global-searches-remaining', 'retry-after', 'date'])
      response.setHeader(name, inHeader)
    response.setHeader('x-flare-global-searches-batch-reached', inHeader)
    response.statusMessage = MARKER
    if (exchange.path === '/tokens/test') exchange.json({ scopes: quotations, tenant_id: 7 })
    else if (number >= 0) REFUSALS[number % REFUSALS.length]!(exchange, quotations[number % QUOTED.length]!)
    else {
      const named = Object.fromEntries(quotations.map((name) => [name, { [name]: name }]))
      const wrong = (field: string, value: unknown, id: number) =>
        credential(id, { ...named, [field]: value })
      const [text] = quotations
      exchange.json({
        items: [
          credential(1, named),
          ...['id', 'imported_at', 'known_password_id'].map((field, i) =>
            wrong(field, { [text!]: text }, 2 + i),
          ),
          ...['id', 'imported_at', 'source', 'auth_domains'].map((field, i) => wrong(field, text, 7 + i)),
          wrong('source', { id: 7, is_alert_enabled: text, leaked_at: text, ...named }, 20),
          ...quotations,
          { [text!]: text },
        ],
        next: null,
      })
    }
  }
}

const SECRETS = ['Québec2024', '😀2024ab', 'Ærø=daf%41e', 'hunté', 'p"\\w&é;9', 'ключ2024']

test.each(SECRETS.filter((_, i) => isOfTheDay(i)))(
  'a secret query is in no output, log or file, however and wherever the service quotes it: %s',
  async (secret) => {
    const refused = QUOTED.length * REFUSALS.length
    // All spellings at all places, where everything is tried.
    const numbers = some([...Array(refused).keys()], QUOTED.length + REFUSALS.length)
    const domains = numbers.flatMap((number, i) => [`d${number}.example`, `fine-${i}.example`])
    const queries = [{ type: 'secret', secret_env: 'LEAKED_PASSWORD' }]
    const { call, json, folder } = await startAttack(
      quoting(secret),
      {
        service: { retries: 1 },
        extract: { domains, queries, concurrency: 16 },
        transform: { extra_columns: [{ name: 'note', path: 'note.text', type: 'string' }] },
      },
      { testsTokens: true, env: { SPILLWAY_TOKEN: 'tok.M4rlin-0b7de911', LEAKED_PASSWORD: secret } },
    )
    const trace = ['--log-level', 'debug']
    const run = await exits(1, call('run', '--json', ...trace, '--metrics-file', 'metrics.prom'))
    const status = await json('status')
    expect(status.value).toMatchObject({ totals: { failed: numbers.length } })
    const check = await call('check', ...trace)
    expect(check.stdout).toContain('tenant 7, scopes [left out: the run holds a query')
    const results = [
      run,
      status,
      check,
      await call('run', ...trace, '--log-format', 'json'),
      await call('status', '--all'),
      await call('verify', '--json'),
      await call('summary'),
    ]
    const texts = [
      ...results.flatMap(({ stdout, stderr }, i) => [
        { name: `stdout ${i}`, bytes: Buffer.from(stdout) },
        { name: `stderr ${i}`, bytes: Buffer.from(stderr) },
      ]),
      ...(await haystacksOf(folder)),
    ]
    const names = texts.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(
        'metrics.prom out/_manifest.json out/_report.html out/_state/checkpoint.jsonl'.split(' '),
      ),
    )
    expect(names.join()).toContain('out/_quarantine/')
    // A failure of this line shows only where it is, and the first of them.
    const leaks = texts.flatMap(({ name, bytes }) => {
      const at = bytes.indexOf(MARKER)
      return at === -1 ? [] : [`${name}: ${bytes.toString('utf8', at, at + 120)}`]
    })
    expect(leaks).toEqual([])
    expect(run.stderr).toContain('[left out: the run holds a query whose value must not be shown')
  },
)
