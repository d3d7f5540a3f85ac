import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { portOf } from '../support/listening.ts'

/** A request that the service received, and the means to respond. */
export type Exchange = {
  /** From 1 on. */
  readonly number: number
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever JSON the client sends
  readonly body: any
  readonly response: ServerResponse
  /** Responds with JSON; a string is sent as it is. */
  json(value: unknown, status?: number, headers?: Readonly<Record<string, string>>): void
}

export type HostileService = {
  readonly origin: string
  readonly baseUrl: string
  readonly requests: readonly Exchange[]
}

/**
 * A service on 127.0.0.1 that responds as a test says, until the tests of the file are done.
 * @param testsTokens default: it has no test of tokens, which runs ask for first, and these requests are not recorded
 */
export async function startService(
  respond: (exchange: Exchange) => void,
  testsTokens = false,
): Promise<HostileService> {
  const log: Exchange[] = []
  const server = createServer((request, response) => {
    if (!testsTokens && request.url === '/tokens/test') return void response.writeHead(404).end()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    response.on('error', () => {})
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const exchange: Exchange = {
        number: log.length + 1,
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        text,
        body: text === '' ? null : JSON.parse(text),
        response,
        json: (value, status = 200, headers = {}) =>
          void response
            .writeHead(status, { 'content-type': 'application/json', ...headers })
            .end(typeof value === 'string' ? value : JSON.stringify(value)),
      }
      log.push(exchange)
      respond(exchange)
    })
  })
  const origin = `http://127.0.0.1:${await portOf(server)}`
  return { origin, baseUrl: `${origin}/firework`, requests: log }
}

export type Item = Record<string, unknown>

export function credential(id: number, differences: Item = {}): Item {
  return {
    id,
    domain: 'acme.example',
    identity_name: `person-${id}@acme.example`,
    hash: `secret-${id}`,
    hash_type: null,
    imported_at: new Date(Date.UTC(2024, 0, 1) + id * 1000).toISOString(),
    source_id: 'leak-1',
    source: {
      id: 'leak-1',
      name: 'A leak',
      description_en: 'made up',
      description_fr: 'inventé',
      is_alert_enabled: true,
      breached_at: null,
      leaked_at: null,
    },
    ...differences,
  }
}

/**
 * Responds with these items, in the order of their times.
 * @param back how many items before the index that its cursor names each page begins
 */
export function serviceOf(items: readonly Item[], back = 0): (exchange: Exchange) => void {
  return ({ body, json }) => {
    const { gte = '0', lte = '9' } = body.filters?.imported_at ?? {}
    const found = items.filter(({ imported_at }) => {
      const at = new Date(String(imported_at)).getTime()
      return (gte === '0' || at >= Date.parse(gte)) && (lte === '9' || at <= Date.parse(lte))
    })
    if (body.order === 'desc') found.reverse()
    const start = Number(String(body.from ?? '0').split('~')[0])
    const end = start + body.size
    json({
      items: found.slice(Math.max(0, start - back), end),
      // It names its range, so it is valid only there.
      next: end < found.length ? `${end}~${gte}~${lte}` : null,
    })
  }
}

export function idsOf(rows: readonly { readonly [column: string]: unknown }[]): readonly number[] {
  return rows.map(({ id }) => Number(id)).sort((a, b) => a - b)
}
