import { expect, test } from 'vitest'
import { serveSearches } from '../extract/support.ts'
import { startAttack } from '../fault/hostile-run.ts'
import { type Exchange, startService } from '../fault/hostile-service.ts'
import { exits } from '../support/run-cli.ts'
import { exportsTo, sandboxOf, worldAt } from './world.ts'

async function exported(respond: (exchange: Exchange) => void, count = 10) {
  const service = await startService(respond)
  const domains = Array.from({ length: count }, (_, i) => `d${i}.example`)
  const here = await worldAt(service.baseUrl, `domains: [${domains}], concurrency: 1`)
  const logged: string[] = []
  const onLog = (_level: string, message: string) => void logged.push(message)
  const summary = await here.run(undefined, undefined, { onLog })
  return { summary, logged, requests: service.requests.length }
}

const NOT_FOUND = { error: { code: 'NOT_FOUND', message: 'nothing here' } }

test('404 before a first page is the address: one request is sent, and it is said once', async () => {
  const { run: start, service } = await startAttack(({ json }) => json(NOT_FOUND, 404), {
    extract: { domains: Array.from({ length: 20 }, (_, i) => `d${i}.example`), concurrency: 8 },
  })
  const run = await exits(2, start())
  expect(service.requests).toHaveLength(1)
  expect(run.stderr.match(/with 404/g)).toHaveLength(1)
  expect(run.stderr).toContain('Correct service.base_url')
  expect(run.stderr).toContain('The response says: nothing here')
  expect(JSON.parse(run.stdout)).toMatchObject({
    error: { kind: 'config' },
    partitions: { total: 20, done: 0, failed: 0, pending: 20 },
  })
})

test('other refusals beside one 404 are reported each', async () => {
  const { summary, logged } = await exported(({ body, json }) => {
    if (body.query.fqdn === 'd1.example') json(NOT_FOUND, 404)
    else if (body.query.fqdn === 'd0.example') json({ items: [], next: null })
    else json({ detail: 'no' }, 400)
  }, 4)
  expect(summary.error).toBeNull()
  expect(summary.partitions).toMatchObject({ done: 1, pending: 0, failed: 3 })
  expect(logged.filter((message) => message.includes('404'))).toHaveLength(1)
})

test('404 for one query is its own failure once there was a page', async () => {
  for (const sick of ['d1.example', 'd4.example', 'd9.example']) {
    const { summary, logged } = await exported(({ body, json }) =>
      body.query.fqdn === sick ? json(NOT_FOUND, 404) : json({ items: [], next: null }),
    )
    expect(summary.partitions).toEqual({ total: 10, done: 9, failed: 1, pending: 0 })
    expect(logged.filter((message) => message.includes('404'))).toHaveLength(1)
  }
})

test('a host that was never reached stops the run at its first failure; a later run exports everything', async () => {
  const here = exportsTo()
  const extract = 'domains: [a.example, b.example, c.example], concurrency: 1'
  const summary = await here.run('http://127.0.0.1:1', 'token', extract)
  expect(summary).toMatchObject({ requests: 0, error: { kind: 'transient' } })
  expect(summary.error?.what).toContain('Nothing accepts connections at 127.0.0.1:1')
  expect(summary.partitions).toMatchObject({ failed: 1, pending: 2 })
  const sandbox = await sandboxOf({ domains: ['a.example', 'b.example', 'c.example'], records: 20 })
  const later = await here.run(sandbox.baseUrl, sandbox.token, extract)
  expect(later).toMatchObject({ status: 'complete', rows: 60 })
})

test('a web page in place of JSON is named, and stops the run after a few attempts', async () => {
  let requests = 0
  const server = await serveSearches((_request, response) => {
    requests++
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Sign in</title>')
  })
  const here = exportsTo()
  const domains = Array.from({ length: 12 }, (_, i) => `d${i}.example`).join(', ')
  const summary = await here.run(server.url, 'token', `domains: [${domains}]`)
  expect(summary.status).toBe('failed')
  expect(summary.error?.what).toContain('responded with 200 and an HTML page; failed after 3 attempts')
  expect(requests).toBeLessThanOrEqual(4 * 3)
  const retries = here.log.filter(({ message }) => message === 'trying again')
  for (const { fields } of retries) expect(fields).toMatchObject({ of: 2 })
})
