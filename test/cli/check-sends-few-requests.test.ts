import { expect, it } from 'vitest'
import { serve } from '../extract/support.ts'
import { exits } from '../support/run-cli.ts'
import { trial } from './trial.ts'

const check = async (url: string) =>
  (await trial({}, {}, { SPILLWAY_BASE_URL: `${url}/firework` })).call('check')

const linesOf = (requests: readonly { readonly method: string; readonly url: string }[]) =>
  requests.map(({ method, url }) => `${method} ${url}`)

it('the token is tested where the service has a token test', async () => {
  const here = await trial()
  const good = await here.call('check')
  expect(good).toMatchObject({ code: 0, stderr: '' })
  expect(good.stdout).toContain('the token is accepted')
  expect(here.sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /tokens/test',
    'GET /firework/v4/credentials/global/_search',
  ])
  expect(good.stdout).toContain('the search path exists')
  const bad = await exits(3, here.with({ SPILLWAY_TOKEN: 'another-one' }).call('check'))
  expect(bad.stdout).toMatch(/^no {2}service/m)
  expect(bad.stdout + bad.stderr).not.toContain('another-one')
})

it.each([
  [404, '{}'],
  // As gateways do.
  [403, '{}'],
  [200, '<!doctype html>'],
  [302, ''],
])('a service that responds %i %s has no token test, which is no error', async (status, body) => {
  const { url, received } = await serve((request, response) => {
    if (request.url === '/tokens/test') response.writeHead(status, { location: '/' }).end(body)
    else response.writeHead(405).end('{}')
  })
  const { code, stdout, stderr } = await check(url)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`the token is not tested: there is no test at ${url}/tokens/test`)
  expect(linesOf(received)).toEqual(['GET /tokens/test', 'GET /firework/v4/credentials/global/_search'])
})

it.each([
  [401, 'yes', '{}'],
  [405, 'yes', '{}'],
  [422, 'yes', '{}'],
  [404, 'no', '{}'],
  [302, 'redirect', '{}'],
  [503, 'unknown', '{}'],
  [200, 'unknown', '{}'],
  [200, 'no', '<!doctype html>'],
] as const)('a search path that responds %i to a GET exists: %s %s', async (status, found, body) => {
  const { url, received } = await serve((request, response) => {
    if (request.url === '/tokens/test') response.end('{}')
    else response.writeHead(status).end(body)
  })
  const { code, stdout, stderr } = await check(url)
  expect(linesOf(received).at(-1)).toMatch(/^GET .*_search$/)
  expect(code).toBe({ no: 2, redirect: 1, yes: 0, unknown: 0 }[found])
  expect(stdout.includes('the search path exists')).toBe(found === 'yes')
  expect(stdout.includes('the search path is not tested')).toBe(found === 'unknown')
  expect(stderr.includes('service.base_url')).toBe(found === 'no' || found === 'redirect')
})

it('a service that fails gets one request, and no export is announced', async () => {
  const { url, received } = await serve((_request, response) => response.writeHead(503).end('{}'))
  for (const [base, why] of [
    [url, '503'],
    ['http://127.0.0.1:1', 'ECONNREFUSED'],
  ] as const) {
    const { stdout, stderr } = await exits(1, check(base), why)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stdout + stderr).not.toMatch(/export|resume|requests (go on|wait)|trying again/)
  }
  expect(received).toHaveLength(1)
})

it('without a token no request is sent', async () => {
  const { sandbox, call } = await trial({}, {}, { SPILLWAY_TOKEN: '' })
  expect((await call('check')).code).toBe(2)
  expect(sandbox.requests).toEqual([])
})
