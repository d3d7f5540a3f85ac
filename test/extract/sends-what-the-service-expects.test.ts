import { describe, expect, it } from 'vitest'
import type { Query } from '../../src/core/index.ts'
import { fetchReport } from '../../src/extract/index.ts'
import {
  type Chain,
  chainOf,
  collect,
  domainChain,
  failure,
  open,
  sendJson,
  sendPage,
  serve,
} from './support.ts'

async function bodySent(chain: Chain): Promise<string> {
  const server = await serve((_request, response) => sendPage(response, null))
  await collect(open(server.url), chain)
  return server.received[0]!.body
}

describe('a search request', () => {
  it('has exactly the documented body', async () => {
    expect(await bodySent(domainChain({ include: ['known_password_id'], cursor: 'opaque==' }))).toBe(
      '{"query":{"type":"domain","fqdn":"acme.example"},' +
        '"filters":{"imported_at":{"gte":"2024-07-01T00:00:00Z","lte":"2024-08-01T00:00:00Z"}},' +
        '"from":"opaque==","size":10000,"include":["known_password_id"],"order":"asc"}',
    )
  })

  it('omits what is not requested', async () => {
    expect(await bodySent(domainChain({ window: null, pageSize: 5, order: 'desc' }))).toBe(
      '{"query":{"type":"domain","fqdn":"acme.example"},"size":5,"order":"desc"}',
    )
  })

  it.each<[Query, string]>([
    [{ type: 'auth_domain', fqdn: 'acme.example' }, '{"type":"auth_domain","fqdn":"acme.example"}'],
    [{ type: 'email', email: 'a@acme.example', as: 'case-17' }, '{"type":"email","email":"a@acme.example"}'],
    [{ type: 'keyword', keyword: 'admin' }, '{"type":"keyword","keyword":"admin"}'],
    [{ type: 'secret', secretEnv: 'LEAKED' }, '{"type":"secret","secret":"hunter\\"2\\n"}'],
  ])('contains the query in the service’s own shape: $type', async (query, shape) => {
    expect(await bodySent(chainOf(query, { secret: 'hunter"2\n' }))).toContain(`"query":${shape},`)
  })

  it('is sent to the search path below the base, with these headers', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    await collect(open(`${server.url}/firework`), domainChain())
    expect(server.received[0]).toMatchObject({
      method: 'POST',
      url: '/firework/v4/credentials/global/_search',
      headers: {
        authorization: 'Bearer the-token',
        'content-type': 'application/json',
        accept: 'application/json',
        'accept-encoding': 'gzip',
        'user-agent': 'spillway',
      },
    })
  })

  it('is sent to another address when the search path is a URL', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const search_path = `${server.url}/astp/v2/credentials/_search`
    await collect(open('http://127.0.0.1:9/unused', { addresses: { search_path } }), domainChain())
    expect(server.received[0]?.url).toBe('/astp/v2/credentials/_search')
  })

  it('asks for the feed of an identifier wherever its id belongs in the address', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const identifier_feed_path = `${server.url.replace('127.0.0.1', '127.0.0.{id}')}/feed?of={id}`
    const chain = chainOf({ type: 'identifier', id: 1 }, { window: null })
    await collect(open('http://127.0.0.1:9/unused', { addresses: { identifier_feed_path } }), chain)
    expect(server.received[0]?.url).toBe('/feed?of=1&size=10000')
  })

  it('is not sent without the secret of a secret query', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const chain = chainOf({ type: 'secret', secretEnv: 'LEAKED' })
    await expect(collect(open(server.url), chain)).rejects.toThrow('without its secret')
    expect(server.received).toHaveLength(0)
  })
})

describe('reports', () => {
  const report = { id: 7, format_type: 'simple_summary', title: 'T', tags: ['a'], subtitle: null, extra: 1 }

  it('are requested one by one', async () => {
    const server = await serve((_request, response) => sendJson(response, { report }))
    expect(await fetchReport(open(`${server.url}/firework`), 7)).toEqual(report)
    expect(server.received[0]).toMatchObject({
      method: 'GET',
      url: '/firework/v4/threat_flow/reports/7',
      body: '',
    })
    expect(server.received[0]?.headers['content-type']).toBeUndefined()
  })

  it('fail with the names of the fields that are wrong, not their values', async () => {
    const server = await serve((_request, response) =>
      sendJson(response, { report: { ...report, title: { text: 'private' }, id: 'seven' } }),
    )
    const error = await failure(fetchReport(open(server.url), 7))
    expect(error.kind).toBe('data')
    expect(error.message).toContain('report.title')
    expect(error.message).toContain('report.id')
    expect(error.message).not.toMatch(/private|seven/)
  })

  it('are listed page by page in an export of all', async () => {
    const server = await serve((_request, response, index) =>
      sendPage(response, index === 0 ? 'a/b=&c' : null),
    )
    const chain = chainOf({ type: 'reports' }, { window: null, pageSize: 100 })
    const service = open(server.url)
    expect(await collect(service, chain)).toHaveLength(2)
    expect(server.received.map(({ url }) => url)).toEqual([
      '/v4/threat_flow/reports/?size=100&order=asc',
      '/v4/threat_flow/reports/?from=a%2Fb%3D%26c&size=100&order=asc',
    ])
    expect(service.counters.requests).toBe(2)
  })
})
