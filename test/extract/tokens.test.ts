import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Auth } from '../../src/core/index.ts'
import type { Service } from '../../src/extract/index.ts'
import { CERTIFICATE_PATH } from '../e2e/support/proxy.ts'
import { portOf } from '../support/listening.ts'
import {
  collect,
  domainChain,
  failure,
  fakeClock,
  type OpenOptions,
  open,
  type Received,
  sendJson,
  sendPage,
  serve,
} from './support.ts'

const never = new AbortController().signal
const API_KEY = { API_KEY: 'key-of-acme' }

function apiKeyAuth(overrides: Partial<Auth & { kind: 'api-key' }> = {}): Auth {
  return { kind: 'api-key', secretIn: 'API_KEY', tokenUrl: '/tokens/generate', tenantId: null, ...overrides }
}

/** A service at `url` that gets its tokens for an API key. */
function openWithKey(url: string, options: OpenOptions & { auth?: Auth } = {}): Service {
  const { auth = apiKeyAuth(), settings, ...more } = options
  return open(url, { secrets: API_KEY, settings: { auth, ...settings }, ...more })
}

/** Issues token-1, token-2, …; `search` responds to everything else. */
function serveTokens(search: (request: Received, response: ServerResponse, exchanges: number) => void) {
  let exchanges = 0
  return serve((request, response) => {
    if (request.url === '/tokens/generate') sendJson(response, { token: `token-${++exchanges}` })
    else search(request, response, exchanges)
  })
}

const searches = (received: readonly Received[]): Received[] =>
  received.filter(({ url }) => url !== '/tokens/generate')
const exchanges = (received: readonly Received[]): Received[] =>
  received.filter(({ url }) => url === '/tokens/generate')

describe('an API key', () => {
  it.each([
    [null, '', undefined],
    [42, '{"tenant_id":42}', 'application/json'],
  ])('is exchanged for a token (tenant %s)', async (tenantId, body, contentType) => {
    const server = await serveTokens((_request, response) => sendPage(response, null))
    const service = openWithKey(server.url, { auth: apiKeyAuth({ tenantId }) })
    await collect(service, domainChain())
    const [exchange, search] = server.received
    expect(exchange).toMatchObject({ method: 'POST', body, headers: { authorization: 'key-of-acme' } })
    expect(exchange?.headers['content-type']).toBe(contentType)
    expect(search?.headers.authorization).toBe('Bearer token-1')
    expect(service.counters.requests).toBe(1)
  })

  it('is exchanged once for all requests that start together', async () => {
    const server = await serveTokens((_request, response) => sendPage(response, null))
    const service = openWithKey(server.url)
    await Promise.all(Array.from({ length: 20 }, () => collect(service, domainChain())))
    expect(exchanges(server.received)).toHaveLength(1)
    expect(searches(server.received)).toHaveLength(20)
  })

  it('is exchanged again six minutes before the hour of the token ends', async () => {
    const usableMs = 3_240_000
    const clock = fakeClock()
    const server = await serveTokens((_request, response) => sendPage(response, null))
    const service = openWithKey(server.url, { clock })
    await collect(service, domainChain())
    await clock.sleep(usableMs - 1, never)
    await collect(service, domainChain())
    expect(exchanges(server.received)).toHaveLength(1)
    await clock.sleep(1, never)
    await Promise.all([1, 2, 3].map(() => collect(service, domainChain())))
    expect(exchanges(server.received)).toHaveLength(2)
    expect(searches(server.received).at(-1)?.headers.authorization).toBe('Bearer token-2')
  })

  it('is exchanged once for all requests whose token was refused, in the middle of their chains', async () => {
    const server = await serveTokens((request, response, generation) => {
      const valid = searches(server.received).length <= 12 ? generation === 1 : generation === 2
      if (!valid || request.headers.authorization !== `Bearer token-${generation}`)
        response.writeHead(401).end()
      else
        sendPage(
          response,
          typeof request.json.from === 'string' && request.json.from >= 'c9' ? null : nextOf(request),
        )
    })
    const service = openWithKey(server.url)
    const chains = await Promise.all([1, 2, 3].map(() => collect(service, domainChain())))
    expect(chains.map((pages) => pages.length)).toEqual([11, 11, 11])
    expect(exchanges(server.received)).toHaveLength(2)
    const refused = searches(server.received).length - 33
    expect(refused).toBeGreaterThan(0)
    expect(service.counters).toMatchObject({ requests: 33 + refused, retries: refused })
  })

  it('is exchanged between two retries when the token expires there', async () => {
    const statuses = [503, 401, 503, 200]
    const server = await serveTokens((_request, response) => {
      const status = statuses[searches(server.received).length - 1]!
      if (status === 200) sendPage(response, null)
      else response.writeHead(status).end()
    })
    const service = openWithKey(server.url, { clock: fakeClock() })
    const [page] = await collect(service, domainChain())
    expect(page?.requests).toBe(4)
    expect(searches(server.received).map(({ headers }) => headers.authorization)).toEqual(
      [1, 1, 2, 2].map((number) => `Bearer token-${number}`),
    )
  })

  it('fails when a fresh token is refused as well', async () => {
    const server = await serveTokens((_request, response) => response.writeHead(401).end())
    const service = openWithKey(server.url)
    const error = await failure(collect(service, domainChain()))
    expect(error.kind).toBe('credentials')
    expect(error.message).toContain('API_KEY')
    expect(searches(server.received)).toHaveLength(2)
    expect(exchanges(server.received)).toHaveLength(2)
  })

  it('is of another address where the exchange responds with 404, and no search is blamed for it', async () => {
    const server = await serve((_request, response) =>
      sendJson(response, { detail: 'none' }, { status: 404 }),
    )
    const service = openWithKey(server.url)
    const error = await failure(collect(service, domainChain()))
    expect(error).toMatchObject({ kind: 'config', next: 'Correct service.token_url.' })
    expect(error.where).toContain('/tokens/generate, token exchange')
    expect(await service.probeSearch()).toBeNull()
    expect(searches(server.received)).toEqual([])
  })

  it.each([
    [429, 2],
    [500, 9],
  ])('is sent again when the exchange responds %i, but not for ever: %i times', async (status, times) => {
    let failures = times
    const server = await serve((request, response) => {
      if (request.url !== '/tokens/generate') sendPage(response, null)
      else if (failures-- > 0) response.writeHead(status).end()
      else sendJson(response, { token: 'token' })
    })
    const service = openWithKey(server.url, { clock: fakeClock(), settings: { retries: 2 } })
    const pages = collect(service, domainChain())
    if (times > 2) expect((await failure(pages)).kind).toBe('transient')
    else expect(await pages).toHaveLength(1)
    expect(exchanges(server.received)).toHaveLength(3)
    expect(service.counters).toMatchObject({ requests: times > 2 ? 0 : 1, retries: 0 })
  })

  it.each([
    [401, {}, 'credentials'],
    [403, {}, 'credentials'],
    [200, {}, 'data'],
    [200, { token: '' }, 'data'],
    [200, { token: 7 }, 'data'],
    [200, { token: 'two\r\nx-injected: 1' }, 'data'],
  ])('is not followed by a search when the exchange responds %i %j', async (status, body, kind) => {
    const server = await serve((_request, response) => sendJson(response, body, { status }))
    const error = await failure(collect(openWithKey(server.url), domainChain()))
    expect(error.kind).toBe(kind)
    expect(error.message).not.toContain('injected')
    expect(server.received).toHaveLength(1)
  })
})

it('a token that expires while its request waits for the end of a pause is replaced, however many came before', async () => {
  const clock = fakeClock()
  const issuedMs: number[] = []
  const agesMs: number[] = []
  let pauses = 6
  let search: Promise<unknown> | null = null
  const server = await serve((request, response) => {
    if (request.url === '/tokens/generate') {
      issuedMs.push(clock.monotonicMs())
      return sendJson(response, { token: `token-${issuedMs.length}` })
    }
    if (request.url === '/tokens/test') {
      search ??= collect(service, domainChain())
      return void setImmediate(() => {
        if (pauses-- > 0) response.writeHead(429, { 'retry-after': '600' }).end()
        else sendJson(response, {})
      })
    }
    const token = Number(request.headers.authorization?.slice('Bearer token-'.length))
    agesMs.push(clock.monotonicMs() - issuedMs[token - 1]!)
    sendPage(response, null)
  })
  // The search has its permit, and waits for the connection, whenever the token test is paused.
  const service = openWithKey(server.url, {
    clock,
    limits: { connections: 1 },
    settings: { retries: pauses },
  })
  await service.testToken('/tokens/test')
  await search
  expect(clock.monotonicMs()).toBeGreaterThan(3_600_000)
  expect(issuedMs).toHaveLength(2)
  expect(agesMs).toHaveLength(1)
  expect(agesMs[0]).toBeLessThan(3_240_000)
})

describe('a configured token', () => {
  it('is read again when it is refused, once for all requests, which do not wait as after an error', async () => {
    const secrets = { TOKEN: 'old' }
    const server = await serve((request, response) => {
      secrets.TOKEN = 'new'
      if (request.headers.authorization === 'Bearer new') sendPage(response, null)
      else response.writeHead(401).end()
    })
    const clock = fakeClock()
    const service = open(server.url, { secrets, clock })
    await Promise.all([1, 2, 3].map(() => collect(service, domainChain())))
    expect(server.received.at(-1)?.headers.authorization).toBe('Bearer new')
    expect(clock.waits.filter((ms) => ms >= 200)).toEqual([])
  })

  it.each([undefined, '', 'abc\r\nx-injected: 1'])(
    'that is not set, or not valid in a header, is named and not shown: %j',
    async (token) => {
      const server = await serve((_request, response) => sendPage(response, null))
      const settings = { auth: { kind: 'token', secretIn: 'MY_TOKEN' } as const }
      const secrets = token === undefined ? {} : { MY_TOKEN: token }
      const error = await failure(collect(open(server.url, { settings, secrets }), domainChain()))
      expect(error.kind).toBe('config')
      expect(error.message).toContain('MY_TOKEN')
      if (token) expect(error.message).not.toContain(token.trim())
      expect(server.received).toHaveLength(0)
    },
  )
})

describe('a token test', () => {
  it('shows what the token is good for and costs no search', async () => {
    const server = await serve((_request, response) =>
      sendJson(response, { tenant_id: 7, organization_id: null, scopes: ['search'], user_email: 'a@b.test' }),
    )
    const service = open(server.url, { limits: { maxRequests: 0 } })
    const info = await service.testToken(`${server.url}/tokens/test`)
    expect(info).toEqual({ tenantId: 7, organizationId: null, scopes: ['search'] })
    expect(server.received[0]).toMatchObject({ method: 'GET', url: '/tokens/test' })
    expect(service.counters.requests).toBe(0)
  })

  it('shows no scopes that repeat a secret', async () => {
    const server = await serve((_request, response) =>
      sendJson(response, { scopes: ['read', `x:${Buffer.from('the-token').toString('base64')}`] }),
    )
    const info = await open(server.url).testToken('/tokens/test')
    expect(info?.scopes).toEqual(['read', '[left out: it repeats a secret]'])
  })
})

function nextOf(request: Received): string {
  const from = request.json.from
  return typeof from === 'string' ? `c${Number(from.slice(1)) + 1}` : 'c0'
}

/** It signs itself. */
const certificate = readFileSync(CERTIFICATE_PATH)

afterEach(() => {
  vi.unstubAllEnvs()
})

it('a redirect is an error, never followed', async () => {
  const other = await serve((_request, response) => sendPage(response, null))
  const server = await serve((_request, response) =>
    response.writeHead(307, { location: `${other.url}/v4/credentials/global/_search` }).end(),
  )
  const error = await failure(collect(open(server.url), domainChain()))
  expect(error.kind).toBe('refused')
  expect(error.message).toContain('responded with 307')
  expect(error.message).toContain('Redirects are not followed')
  expect(other.received).toHaveLength(0)
  expect(server.received).toHaveLength(1)
})

it('an untrusted certificate is rejected, whatever the environment says', async () => {
  let requests = 0
  const server = createServer({ key: certificate, cert: certificate }, (_request, response) => {
    requests++
    sendPage(response, null)
  })
  const port = await portOf(server)
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const error = await failure(collect(open(`https://127.0.0.1:${port}`), domainChain()))
  expect(error.kind).toBe('refused')
  expect(error.message).toMatch(/certificate of \S+ is not accepted/)
  expect(requests).toBe(0)
})
