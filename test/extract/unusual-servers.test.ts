import { expect, it, onTestFinished, vi } from 'vitest'
import { fetchReport } from '../../src/extract/index.ts'
import { collect, domainChain, failure, open, serve } from './support.ts'

it('https to an http server fails at once and names the cause', async () => {
  const server = await serve((_request, response) => response.end('{}'))
  const service = open(server.url.replace('http:', 'https:'))
  const error = await failure(collect(service, domainChain()))
  expect(error).toMatchObject({ kind: 'config' })
  expect(error.what).toContain('does not use TLS')
  expect(service.counters.retries).toBe(0)
})

it('a time-out after the run was told to stop is an interruption, not a failure', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const stop = new AbortController()
  const server = await serve(() => {
    stop.abort()
    vi.advanceTimersByTime(10_000)
  })
  const service = open(server.url, { stop: stop.signal, settings: { retries: 0, timeoutMs: 10_000 } })
  expect(await failure(collect(service, domainChain()))).toMatchObject({ kind: 'interrupted' })
})

it('a report with another id than the requested one is an error', async () => {
  const server = await serve((_request, response) => response.end('{"report":{"id":7}}'))
  const service = open(server.url)
  expect(await fetchReport(service, 7)).toMatchObject({ id: 7 })
  expect(await failure(fetchReport(service, 1))).toMatchObject({ kind: 'data' })
})

it('a report that is not UTF-8 is requested again', async () => {
  const broken = Buffer.from('{"report":{"id":7,"title":"caf\u00e9"}}', 'latin1')
  const server = await serve((_request, response, index) =>
    response.end(index === 0 ? broken : '{"report":{"id":7,"title":"cafe"}}'),
  )
  const service = open(server.url, { settings: { retries: 1 } })
  expect(await fetchReport(service, 7)).toMatchObject({ title: 'cafe' })
})
