import { expect, test } from 'vitest'
import { serveSearches } from '../extract/support.ts'
import { startAttack } from '../fault/hostile-run.ts'
import { exits } from '../support/run-cli.ts'
import { exportsTo, sandboxOf } from './world.ts'

test('404 before a first page is the address: one request is sent, and it is said once', async () => {
  const notFound = { error: { code: 'NOT_FOUND', message: 'nothing here' } }
  const { run: start, service } = await startAttack(({ json }) => json(notFound, 404), {
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
