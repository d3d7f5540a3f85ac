import { createServer, type RequestListener } from 'node:http'
import { expect, it } from 'vitest'
import { portOf } from '../support/listening.ts'
import { exits } from '../support/run-cli.ts'
import type { PipelineParts } from '../support/workspace.ts'
import { trial } from './trial.ts'

/** A service that responds alike to every request. @returns its base URL, and the requests it received */
async function service(respond: RequestListener): Promise<{ baseUrl: string; requests: string[] }> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    respond(request, response)
  })
  return { baseUrl: `http://127.0.0.1:${await portOf(server)}/firework`, requests }
}

async function check(baseUrl: string, service: PipelineParts['service'] = {}) {
  return (await trial({ service }, {}, { SPILLWAY_BASE_URL: baseUrl })).call('check')
}

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

const elsewhere: Readonly<Record<string, RequestListener>> = {
  'that responds 404': (_request, response) => response.writeHead(404).end('{}'),
  'that responds 403, as gateways do': (_request, response) => response.writeHead(403).end('{}'),
  'that shows a page': (_request, response) => response.end('<!doctype html>'),
  'that redirects': (_request, response) => response.writeHead(302, { location: '/' }).end(),
}

it.each(Object.entries(elsewhere))(
  'a service %s has no token test, which is no error',
  async (_, respond) => {
    const { baseUrl, requests } = await service((request, response) => {
      if (request.url === '/tokens/test') respond(request, response)
      else response.writeHead(405).end('{}')
    })
    const { code, stdout, stderr } = await check(baseUrl)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(
      `the token is not tested: there is no test at ${new URL('/tokens/test', baseUrl)}`,
    )
    expect(requests).toEqual(['GET /tokens/test', 'GET /firework/v4/credentials/global/_search'])
  },
)

it.each([
  [401, 'yes'],
  [405, 'yes'],
  [422, 'yes'],
  [404, 'no'],
  [302, 'redirect'],
  [503, 'unknown'],
  [200, 'unknown'],
] as const)('a search path that responds %i to a GET exists: %s', async (status, found) => {
  const { baseUrl, requests } = await service((request, response) => {
    response.writeHead(request.url === '/tokens/test' ? 200 : status).end('{}')
  })
  const { code, stdout, stderr } = await check(baseUrl)
  expect(requests.at(-1)).toMatch(/^GET .*_search$/)
  expect(code).toBe({ no: 2, redirect: 1, yes: 0, unknown: 0 }[found])
  expect(stdout.includes('the search path exists')).toBe(found === 'yes')
  expect(stdout.includes('the search path is not tested')).toBe(found === 'unknown')
  expect(stderr.includes('service.base_url')).toBe(found === 'no' || found === 'redirect')
})

it('a service that fails gets one request, and no export is announced', async () => {
  const { baseUrl, requests } = await service((_request, response) => response.writeHead(503).end('{}'))
  const { code, stdout, stderr } = await check(baseUrl)
  expect(code).toBe(1)
  expect(requests).toHaveLength(1)
  expect(stderr).toContain('503')
  expect(stdout + stderr).not.toMatch(/export|resume|requests (go on|wait)|trying again/)
})

it('a web page at the search path is no service', async () => {
  const { baseUrl } = await service((request, response) => {
    response.end(request.url === '/tokens/test' ? '{}' : '<!doctype html>')
  })
  const { code, stderr } = await check(baseUrl)
  expect(code).toBe(2)
  expect(stderr).toContain('A web page is at the search path')
})

it('a service that cannot be reached is reported once', async () => {
  const { code, stdout, stderr } = await check('http://127.0.0.1:1/firework')
  expect(code).toBe(1)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(stdout + stderr).not.toMatch(/export|resume|requests (go on|wait)|trying again/)
})

it('without a token no request is sent', async () => {
  const { sandbox, call } = await trial({}, {}, { SPILLWAY_TOKEN: '' })
  expect((await call('check')).code).toBe(2)
  expect(sandbox.requests).toEqual([])
})
