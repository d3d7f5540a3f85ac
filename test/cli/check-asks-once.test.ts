import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { accessTo, sandboxWith, spillway, workFolder, writePipeline } from './spillway.ts'

/** A service that answers everything alike. @returns its base URL, and what it was asked */
async function service(answer: RequestListener): Promise<{ baseUrl: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/firework`, asked }
}

async function check(baseUrl: string, parts = '') {
  const folder = workFolder()
  const file = await writePipeline(folder, { service: parts })
  return spillway(['check', file], folder, { SPILLWAY_BASE_URL: baseUrl, SPILLWAY_TOKEN: 'some-token' })
}

it('the token is tested where the public address is there', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder)
  const good = await spillway(['check', file], folder, accessTo(sandbox))
  expect(good).toMatchObject({ code: 0, stderr: '' })
  expect(good.stdout).toContain('the token is accepted')
  expect(sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /tokens/test',
    'GET /firework/v4/credentials/global/_search',
  ])
  expect(good.stdout).toContain('the search path exists')
  const bad = await spillway(['check', file], folder, { ...accessTo(sandbox), SPILLWAY_TOKEN: 'another-one' })
  expect(bad.code).toBe(3)
  expect(bad.stdout).toMatch(/^no {2}service/m)
  expect(bad.stdout + bad.stderr).not.toContain('another-one')
})

const elsewhere: Readonly<Record<string, RequestListener>> = {
  'answers 404': (_request, response) => response.writeHead(404).end('{}'),
  'answers 403, as gateways do': (_request, response) => response.writeHead(403).end('{}'),
  'shows its page': (_request, response) => response.end('<!doctype html>'),
  'sends somewhere else': (_request, response) => response.writeHead(302, { location: '/' }).end(),
}

it.each(Object.entries(elsewhere))(
  'a service that %s there has no test, which is no fault',
  async (_, answer) => {
    const { baseUrl, asked } = await service((request, response) => {
      if (request.url === '/tokens/test') answer(request, response)
      else response.writeHead(405).end('{}')
    })
    const { code, stdout, stderr } = await check(baseUrl)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(
      `the token is not tested: there is no test at ${new URL('/tokens/test', baseUrl)}`,
    )
    expect(asked).toEqual(['GET /tokens/test', 'GET /firework/v4/credentials/global/_search'])
    // Where the file names the address, it is one.
    const configured = await check(baseUrl, '  token_test_url: /tokens/test')
    expect([1, 3]).toContain(configured.code)
  },
)

it.each([
  [401, 'yes'],
  [405, 'yes'],
  [422, 'yes'],
  [404, 'no'],
  [302, 'unknown'],
  [503, 'unknown'],
  [200, 'unknown'],
] as const)('the search path that answers %i to a GET is there: %s', async (status, found) => {
  const { baseUrl, asked } = await service((request, response) => {
    response.writeHead(request.url === '/tokens/test' ? 200 : status).end('{}')
  })
  const { code, stdout, stderr } = await check(baseUrl)
  expect(asked.at(-1)).toMatch(/^GET .*_search$/)
  expect(code).toBe(found === 'no' ? 2 : 0)
  expect(stdout.includes('the search path exists')).toBe(found === 'yes')
  expect(stdout.includes('the search path is not tested')).toBe(found === 'unknown')
  expect(stderr.includes('service.base_url')).toBe(found === 'no')
})

it('a service in trouble is asked once, and nobody speaks of an export', async () => {
  const { baseUrl, asked } = await service((_request, response) => response.writeHead(503).end('{}'))
  const { code, stdout, stderr } = await check(baseUrl)
  expect(code).toBe(1)
  expect(asked).toHaveLength(1)
  expect(stderr).toContain('503')
  expect(stdout + stderr).not.toMatch(/export|goes on|trying again/)
})

it('a service that is not there is said once', async () => {
  const { code, stdout, stderr } = await check('http://127.0.0.1:1/firework')
  expect(code).toBe(1)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(stdout + stderr).not.toMatch(/export|goes on|trying again/)
})

it('without a token the service is not asked', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder)
  const { code } = await spillway(['check', file], folder, { SPILLWAY_BASE_URL: sandbox.baseUrl })
  expect(code).toBe(2)
  expect(sandbox.requests).toEqual([])
})

it('--probe says what a page costs, by two requests, and nothing else asks for them', async () => {
  const sandbox = await sandboxWith({ records: 3000, quota: 1000 })
  const folder = workFolder()
  const file = await writePipeline(folder)
  const { code, stdout } = await spillway(['check', file, '--probe'], folder, accessTo(sandbox))
  expect({ code, searches: sandbox.requests.filter(({ kind }) => kind === 'search').length }).toEqual({
    code: 0,
    searches: 2,
  })
  expect(stdout).toMatch(/^ok {2}probe +each 100 rows are one search: \d+ searches at most for a page of/m)
})
