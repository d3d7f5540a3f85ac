import { createHash } from 'node:crypto'
import { type Asked, credential, type HostileService, type Item, startService } from './hostile-service.ts'
import type { Canary } from './leak-search.ts'

/** Characters that every encoding writes in its own way are among them. */
const text = (name: string): string => `K4n"ri\\${name}+9f/d2&c7 ${name}é`

/** What a run is given and what the service sends that must not be seen anywhere afterwards. */
export const SECRETS = {
  token: 'tok.K4nari-access-9fd2c7e1',
  exchanged: 'tok.K4nari-exchanged-5be1a0d3',
  apiKey: 'key.K4nari-api-77aa10fe',
  maskKey: 'K4nari-mask-key-of-32-bytes-or-more-c0ffee',
  query: text('query'),
  hash: text('hash'),
  asObject: text('object'),
  asList: text('list'),
  asItem: text('item'),
  unknown: text('unknown'),
  sourceUnknown: text('source'),
} as const

/** A secret that the service sends as a number. */
const AS_NUMBER = 918_273_645_546_372

export const CANARIES: readonly Canary[] = [
  ...Object.entries(SECRETS).map(([name, secret]) => ({ name, text: secret })),
  { name: 'number', text: String(AS_NUMBER) },
]

export const IDENTITY = 'k4nari.person+9f@acme.example'

const PAGES = 6

/**
 * A service that gives everything away: secrets in fields where they belong and where they don't, in broken
 * items, and whatever it is asked, the token with it, in its errors.
 * @param onSearch called with each search before it is answered
 */
export function startTellTale(onSearch: (asked: Asked) => void): Promise<HostileService> {
  let troubles = 0
  return startService((asked) => {
    const { path, body } = asked
    if (path === '/tokens/generate') return asked.json({ token: SECRETS.exchanged })
    if (path === '/tokens/test') return asked.json({ tenant_id: 1, scopes: ['credentials:read'] })
    if (path.includes('/reports/')) {
      return path.endsWith('/1') ? asked.json({ report: { id: 1, title: 'A report' } }) : echo(asked, 404)
    }
    onSearch(asked)
    // A look whether there is a search at all.
    if (asked.method === 'GET') return echo(asked, 405)
    if (body.query.fqdn === 'refused.example') return echo(asked, 404)
    const page = Number(body.from?.split('-').at(-1) ?? 0)
    // Before every other page one error, each in another dress.
    if (page % 2 === 1 && troubles < page) {
      troubles = page
      return echo(asked, [500, 503, 507][Math.floor(page / 2)]!)
    }
    asked.json({
      items: items(page, body.query.type === 'secret' ? 1000 : 0),
      next: page + 1 < PAGES ? `${body.query.type}-${page + 1}` : null,
    })
  })
}

function echo(asked: Asked, status: number): void {
  const all = `${asked.headers.authorization} ${asked.text} ${JSON.stringify(asked.text)} ${SECRETS.query}`
  switch (status) {
    case 503:
      asked.json({ detail: [{ loc: ['body', all], msg: encodeURIComponent(all), type: 'echo' }] }, 503)
      return
    case 507:
      asked.json(`<html>${all}</html>`, 507, { 'content-type': 'text/html' })
      return
    case 404:
      asked.json({ detail: all.toUpperCase() }, 404)
      return
    default:
      asked.json({ error: { code: asked.headers.authorization, message: all, data: asked.body } }, status)
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
