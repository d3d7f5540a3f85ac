import { createHash } from 'node:crypto'
import { credential, type Exchange, type HostileService, type Item, startService } from './hostile-service.ts'
import type { Canary } from './leak-search.ts'

/** A secret with characters that every encoding writes differently. */
const secretFor = (name: string): string => `K4n"ri\\${name}+9f/d2&c7 ${name}é`

/** Secrets of a run and of the responses. They must not occur in any output. */
export const SECRETS = {
  token: 'tok.K4nari-access-9fd2c7e1',
  exchanged: 'tok.K4nari-exchanged-5be1a0d3',
  apiKey: 'key.K4nari-api-77aa10fe',
  maskKey: 'K4nari-mask-key-of-32-bytes-or-more-c0ffee',
  query: secretFor('query'),
  hash: secretFor('hash'),
  asObject: secretFor('object'),
  asList: secretFor('list'),
  asItem: secretFor('item'),
  unknown: secretFor('unknown'),
  sourceUnknown: secretFor('source'),
} as const

/** A secret that the service sends as a number. */
const AS_NUMBER = 918_273_645_546_372

export const CANARIES: readonly Canary[] = [
  ...Object.entries(SECRETS).map(([name, secret]) => ({ name, value: secret })),
  { name: 'number', value: String(AS_NUMBER) },
]

export const IDENTITY = 'k4nari.person+9f@acme.example'

const PAGES = 6

/**
 * A service that reveals everything: secrets in their fields, in other fields and in broken items; in its errors the
 * request with the token.
 * @param onSearch called with each search before the response
 */
export function startTellTale(onSearch: (exchange: Exchange) => void): Promise<HostileService> {
  let troubles = 0
  return startService((exchange) => {
    const { path, body } = exchange
    if (path === '/tokens/generate') return exchange.json({ token: SECRETS.exchanged })
    if (path === '/tokens/test') return exchange.json({ tenant_id: 1, scopes: ['credentials:read'] })
    if (path.includes('/reports/')) {
      return path.endsWith('/1')
        ? exchange.json({ report: { id: 1, title: 'A report' } })
        : echo(exchange, 404)
    }
    onSearch(exchange)
    // `check` requests whether the search path exists.
    if (exchange.method === 'GET') return echo(exchange, 405)
    if (body.query.fqdn === 'refused.example') return echo(exchange, 404)
    const page = Number(body.from?.split('-').at(-1) ?? 0)
    // Every other page comes after one error, each of another form.
    if (page % 2 === 1 && troubles < page) {
      troubles = page
      return echo(exchange, [500, 503, 507][Math.floor(page / 2)]!)
    }
    exchange.json({
      items: items(page, body.query.type === 'secret' ? 1000 : 0),
      next: page + 1 < PAGES ? `${body.query.type}-${page + 1}` : null,
    })
  }, true)
}

function echo(exchange: Exchange, status: number): void {
  const all = `${exchange.headers.authorization} ${exchange.text} ${JSON.stringify(exchange.text)} ${SECRETS.query}`
  switch (status) {
    case 503:
      exchange.json({ detail: [{ loc: ['body', all], msg: encodeURIComponent(all), type: 'echo' }] }, 503)
      return
    case 507:
      exchange.json(`<html>${all}</html>`, 507, { 'content-type': 'text/html' })
      return
    case 404:
      exchange.json({ detail: all.toUpperCase() }, 404)
      return
    default:
      exchange.json(
        { error: { code: exchange.headers.authorization, message: all, data: exchange.body } },
        status,
      )
  }
}

function items(page: number, start: number): readonly Item[] {
  const id = start + page * 100
  const { hash, unknown } = SECRETS
  const good = (n: number, differences: Item = {}): Item =>
    credential(id + n, { hash, identity_name: IDENTITY, ...differences })
  const { source } = good(0) as { source: Item }
  return [
    good(0),
    good(1, { hash: null }),
    good(2, { credential_hash: createHash('sha1').update(hash).digest('hex') }),
    good(3, { password: unknown, raw: { nested: [unknown] } }),
    good(4, { source: { ...source, dump: SECRETS.sourceUnknown } }),
    good(5, { hash: AS_NUMBER }),
    good(6, { hash: { value: SECRETS.asObject } }),
    good(7, { hash: [SECRETS.asList] }),
    good(8, { hash_type: { value: SECRETS.asObject }, imported_at: 5 }),
    good(9, { id: 'x', password: unknown }),
    good(10, { identity_name: null }),
    good(11, { identity_name: { value: SECRETS.asObject } }),
    good(12, { source: { ...source, is_alert_enabled: 'yes', dump: SECRETS.sourceUnknown } }),
    good(13, { source: SECRETS.asItem }),
    SECRETS.asItem as unknown as Item,
    [SECRETS.asItem] as unknown as Item,
    [[good(16)]] as unknown as Item,
  ]
}
